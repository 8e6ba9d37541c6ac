//! Layout of a rank's segment and of the job's control block.
//!
//! ```text
//! segment: | header | region table | notice ring | gates | directory of queues | heap: symmetric → … ← local |
//! control: | job | one control record per rank |
//! file:    | control | segment of rank 0 | … | segment of the last rank |
//! ```
//! (Where ranks are threads of one process there is no file.)
//!
//! *Protocol words* (everything but the heap) are only ever accessed as atomics, the heap only
//! through [`rdma_fabric::access`]. So no byte is ever accessed in both ways.

#![deny(clippy::arithmetic_side_effects)]

use super::inside::ANNOUNCEMENTS;
use crossbeam_utils::CachePadded;

/// Bytes that CPUs transfer as one unit, a power of two; words that different ranks write are at
/// least this far apart: the alignment of [`CachePadded`], such as 128 where lines are fetched in
/// pairs (x86-64), but never less than the 64 bytes of alignment that are guaranteed for regions.
pub(crate) const CACHE_LINE: usize = {
    let padding = align_of::<CachePadded<u8>>();
    if padding < 64 { 64 } else { padding }
};
/// Granularity of mappings and of page reservation, in bytes. A multiple of it is a multiple of
/// every page size up to 64 KiB, and no supported system has larger pages; where memory files are
/// used, the page size is checked at run time ([`check_page`]).
pub(crate) const PAGE: usize = 65_536;

/// Defines the fields of a layout by name, length in bytes and offset. Fails to compile unless each
/// ends before the next one starts.
macro_rules! fields {
    ($($(#[$doc:meta])* $name:ident: $len:expr, $at:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: usize = $at;)*
        const _: () = in_order([$(($name, $len)),*]);
    };
}

// ----- sizes -----

/// Bytes of a table entry.
pub(crate) const ENTRY: usize = 32;
/// Table entries for symmetric regions, which come first.
pub(crate) const SYMMETRIC_SLOTS: usize = 1024;
/// All table entries.
pub(crate) const SLOTS: usize = 8192;
/// The maximum number of bytes of a rank's message when it aborts the job; a multiple of 8.
pub(crate) const ABORT_BYTES: usize = 1024;
/// Bytes of a ring slot.
pub(crate) const RING_SLOT: usize = 32;
/// Notices that fit into a rank's ring; a power of two.
pub(crate) const RING_CAPACITY: usize = 4096;
/// Start/end gates of a rank.
pub(crate) const START_GATES: usize = 16;
/// All gates of a rank.
pub(crate) const GATES: usize = 64;
/// Bytes of a gate's signal.
pub(crate) const GATE_PACKET: usize = (rdma_fabric::barrier::Wave::WORDS * 8).next_multiple_of(CACHE_LINE);
/// Bytes of a gate record: a line of words and two signals.
pub(crate) const GATE_RECORD: usize = CACHE_LINE + 2 * GATE_PACKET;
/// Number of RDMA engines for which a directory has room.
pub(crate) const QUEUE_ENGINES: usize = 8;
/// Number of control queues per engine for which a directory has room.
pub(crate) const QUEUE_NUMBERS: usize = 16;
/// Number of queues sharing a control queue for which a directory has room.
pub(crate) const QUEUE_CONTEXTS: usize = 8;

// ----- a segment -----

fields! {
    /// `u64`, nonzero once the segment's rank is lost, or the job is aborted
    /// ([`crate::job::abort`]). On the doorbell's line, because a poster reads both.
    LOST: 8, 0;
    /// `u32`, the doorbell; the only word that is not 8 bytes long, accessed only through
    /// [`super::mapping::Mapping::doorbell`]. Unused in the control block.
    DOORBELL: 4, 8;
    /// `u64`, the bits of the parked rank's [`Watch`](crate::waiting::doorbell::Watch).
    WATCH: 8, 16;
    /// `u64`, position of the oldest notice; written by the owner, on a separate line.
    RING_HEAD: 8, CACHE_LINE;
    /// `u64`, the next free position of the notice ring and the rank that took the last one;
    /// written by producers.
    RING_TAIL: 8, 2 * CACHE_LINE;
    /// `u64`, the head as last read by a producer. On the tail's line, because only producers
    /// access it.
    RING_SEEN: 8, RING_TAIL + 8;
    /// `u64` each, the regions that the rank's operations in progress access; written by the rank.
    INSIDE: 8 * ANNOUNCEMENTS, 3 * CACHE_LINE;
    /// `u64`, nonzero if control queues of the rank have released commands that no rank is
    /// executing yet; written by any rank.
    QUEUES_PENDING: 8, (INSIDE + 8 * ANNOUNCEMENTS).next_multiple_of(CACHE_LINE);
    /// `u64`, how often the rank has started or stopped being parked without a deadline: odd while
    /// it is parked. This word and the `PARKED_` and `SEALED` words after it are written by the
    /// rank and read by the watchdog ([`crate::waiting::watchdog`]).
    PARKINGS: 8, QUEUES_PENDING + CACHE_LINE;
    /// `u64`, the number of times that the parked rank has checked again without success.
    PARKED_LOOKS: 8, PARKINGS + 8;
    /// `u64`, the event that the parked rank waits for.
    PARKED_WHAT: 8, PARKINGS + 16;
    /// `u64`, the ranks that the wait depends on, and the number of the rank's other waits.
    PARKED_WHOM: 8, PARKINGS + 24;
    /// `u64`, nonzero if something other than a rank may wake the parked rank.
    PARKED_OPEN: 8, PARKINGS + 32;
    /// `u64`, nonzero if the rank is a [`rdma_fabric::Program`], whose fabric no other code uses.
    SEALED: 8, PARKINGS + 40;
    /// `u64`, the process that is parked.
    PARKED_PROCESS: 8, PARKINGS + 48;
    /// `u64`, length in bytes of the rank's message when it aborts the job.
    ABORT_LEN: 8, PARKINGS + 56;
    /// The message, in UTF-8.
    ABORT_TEXT: ABORT_BYTES, PARKINGS + 64;
    /// First entry of the region table.
    TABLE: SLOTS * ENTRY, 4096;
    /// First slot of the notice ring.
    RING: RING_CAPACITY * RING_SLOT, TABLE + SLOTS * ENTRY;
    /// First claim word of the notice ring.
    RING_CLAIMS: 8 * RING_CAPACITY, RING + RING_CAPACITY * RING_SLOT;
    /// First gate record: the records of all gates, then those of the start/end gates' end halves.
    GATE_RECORDS: (GATES + START_GATES) * GATE_RECORD, (RING_CLAIMS + RING_CAPACITY * 8).next_multiple_of(CACHE_LINE);
    /// First word of the directory of control queues. Each word is the region key of a queue's
    /// words, or 0.
    QUEUES: QUEUE_ENGINES * QUEUE_NUMBERS * QUEUE_CONTEXTS * 8, GATE_RECORDS + (GATES + START_GATES) * GATE_RECORD;
    /// First word of the table of the ranks that own the node's control queues; in the segment of
    /// the node's first rank.
    NODE_QUEUES: QUEUE_ENGINES * QUEUE_NUMBERS * 8, QUEUES + QUEUE_ENGINES * QUEUE_NUMBERS * QUEUE_CONTEXTS * 8;
    /// First byte of the heap.
    HEAP: 0, (NODE_QUEUES + QUEUE_ENGINES * QUEUE_NUMBERS * 8).next_multiple_of(PAGE);
}

const _: () =
    on_own_lines([LOST, RING_HEAD, RING_TAIL, INSIDE, QUEUES_PENDING, PARKINGS, TABLE, RING, RING_CLAIMS, HEAP]);
const _: () = assert!(RING_SEEN / CACHE_LINE == RING_TAIL / CACHE_LINE && SYMMETRIC_SLOTS < SLOTS);
const _: () = assert!(CACHE_LINE.is_multiple_of(ENTRY) && CACHE_LINE.is_multiple_of(RING_SLOT));
const _: () = assert!(RING_CAPACITY.is_power_of_two() && HEAP.is_multiple_of(PAGE) && PAGE.is_multiple_of(CACHE_LINE));

/// Bytes at the start of a segment whose pages are reserved before any rank starts: all protocol
/// words. Peers access those of a rank that has not started yet, and such an access must find a
/// page.
pub(crate) const RESERVED: usize = (NODE_QUEUES + QUEUE_ENGINES * QUEUE_NUMBERS * 8).next_multiple_of(4096);
const _: () = assert!(RESERVED <= HEAP);

// ----- the control block -----

fields! {
    /// `u64`, [`MAGIC_VALUE`].
    MAGIC: 8, 0;
    /// `u64`, length of the heap of each segment, in bytes.
    HEAP_BYTES: 8, 16;
    /// `u64`, ranks per node.
    RANKS_PER_NODE: 8, 24;
    /// `u64`, monotonic clock at the job's start, ns.
    START: 8, 32;
    /// `u64`, nonzero if a process-wide barrier does not reach some process of the job.
    NO_HEAVY_BARRIER: 8, 40;
    /// `u64`, number of ranks.
    RANKS: 8, 48;
    /// `u64`, nonzero if the job has more ranks than CPUs. Set by the launcher, because a bound
    /// rank sees only its own CPUs.
    OVERSUBSCRIBED: 8, 56;
    /// `u64`, number of changes of any rank's state.
    CHANGES: 8, CACHE_LINE;
    /// `u64`, 1 + the first rank that was lost, or 0.
    FIRST_LOST: 8, CACHE_LINE + 8;
    /// `u64`, nonzero once any rank's process was reaped.
    ENDED: 8, CACHE_LINE + 16;
    /// `u64`, the number of waiting ranks, once the job is deadlocked.
    STUCK: 8, CACHE_LINE + 24;
    /// `u64`, the rank that aborts the job and the exit code, or 0.
    ABORTING: 8, CACHE_LINE + 32;
    /// `u64`, the same once no segment admits operations any longer; until then 0.
    ABORTED: 8, CACHE_LINE + 40;
    /// `u64`, number of arrivals at phases of symmetric allocations; only a hint for wake-ups.
    ARRIVALS: 8, 2 * CACHE_LINE;
    /// `u64`, the options of the job's control queues
    /// ([`crate::queues::config::QueueOptions`]); never changes.
    QUEUE_OPTIONS: 8, ARRIVALS + 8;
    /// `u64`, a random number that distinguishes the job from others; never changes. 0 if ranks
    /// share a process.
    JOB: 8, ARRIVALS + 16;
    /// `u64`, a random number that only processes of the job know; never changes. 0 if ranks share
    /// a process.
    SECRET: 8, ARRIVALS + 24;
    /// First control record.
    CONTROL_RECORDS: 0, 3 * CACHE_LINE;
}

// ----- the mirrors of gates of other nodes, which a rank keeps in a job of several nodes -----

/// The number of a rank's gate records; start/end gates have two each.
const RECORDS: usize = GATES + START_GATES;

/// Returns the position of mirror `number`: first the mirrors of each record's source, then those
/// of each record's destination, which have no packets. There is no mirror of a start half's
/// source, nor of an end half's destination; their positions would overlap others.
#[expect(clippy::arithmetic_side_effects, reason = "the number of a mirror, below `RECORDS + GATES`")]
pub(crate) const fn gate_mirror(number: usize) -> usize {
    match number {
        ..RECORDS => CACHE_LINE + number.saturating_sub(START_GATES) * GATE_RECORD,
        _ => CACHE_LINE + GATES * GATE_RECORD + (number - RECORDS) * CACHE_LINE,
    }
}

/// Bytes of a rank's mirrors.
pub(crate) const GATE_MIRRORS: usize = gate_mirror(RECORDS + GATES);
const _: () = assert!(GATE_MIRRORS.is_multiple_of(CACHE_LINE), "mirrors of several ranks follow each other");

const _: () = on_own_lines([MAGIC, CHANGES, ARRIVALS, CONTROL_RECORDS, CONTROL_RECORD]);

// ----- a control record, and the words that a rank publishes in a phase of symmetric allocation
// -----

fields! {
    /// `u64` in a control record: the rank's state.
    RECORD_STATE: 8, 0;
    /// `u64` in a control record: number of phases of symmetric allocations the rank has arrived
    /// at.
    RECORD_PHASE: 8, 8;
    /// `u64` in a control record: 1 once the rank's process was reaped, so none of its code runs;
    /// always 0 if ranks are threads.
    RECORD_ENDED: 8, 16;
    /// `u64` in a control record: the process of the rank ([`crate::job::holder::Holder`]);
    /// always 0 if ranks are threads.
    RECORD_HOLDER: 8, 24;
    /// `u64` in a control record: nonzero while any thread of the rank is parked or about to park.
    /// So a change of state need not touch the segments of all ranks, in most of which no thread
    /// waits.
    RECORD_PARKED: 8, 32;
    /// `u64` in a control record: the number of the rank's process in the system; 0 if it has not
    /// attached.
    RECORD_PROCESS: 8, 40;
}

/// In a control record: the words that the rank publishes in a phase. There are two sides, for even
/// and odd phases, so that a rank can continue with the next phase while others still read the last
/// one. They do not start on separate lines: a node of a job on several nodes has a control record
/// for each rank of the job.
pub(crate) const RECORD_SIDES: [usize; 2] = [RECORD_PROCESS + 8, RECORD_PROCESS + 8 + SIDE];
/// Bytes of a control record.
pub(crate) const CONTROL_RECORD: usize = (RECORD_SIDES[1] + SIDE).next_multiple_of(CACHE_LINE);
const _: () = in_order([(RECORD_PROCESS, 8), (RECORD_SIDES[0], SIDE), (RECORD_SIDES[1], SIDE), (CONTROL_RECORD, 0)]);

fields! {
    /// `u64` in a side: the number of bytes requested.
    SIDE_BYTES: 8, 0;
    /// `u64` in a side: in phase 1 the offset up to which the rank promises room, which is even,
    /// plus 1 ([`SIDE_RETIRED`]) if the rank has freed regions whose grace period has not ended; in
    /// phase 2 whether the rank succeeded (1).
    SIDE_VERDICT: 8, 8;
    /// Three `u64` in a side: the terms of a locked region ([`rdma_fabric::AccessPolicy::terms`]),
    /// or 0.
    SIDE_TERMS: 24, 16;
    /// Bit set in a side: the symmetric slots that the rank has dropped.
    SIDE_DROPPED: SYMMETRIC_SLOTS / 8, 40;
    /// Bytes of a side.
    SIDE: 0, SIDE_DROPPED + SYMMETRIC_SLOTS / 8;
}

/// The bit of [`SIDE_VERDICT`] that is set in phase 1 if more room will soon be free.
pub(crate) const SIDE_RETIRED: u64 = 1;
const _: () = assert!(super::heap::GRAIN.is_multiple_of(2), "what is promised is whole grains");

/// Value of [`MAGIC`]: name, version and line length of this layout.
pub(crate) const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"1sided\x0d\0") | (CACHE_LINE.ilog2() as u64) << 56;

/// Checks that [`PAGE`] is suitable for a system with pages of `bytes` bytes.
///
/// # Errors
/// [`rdma_fabric::FabricError::Unsupported`].
#[cfg(target_os = "linux")]
pub(crate) fn check_page(bytes: usize) -> Result<(), rdma_fabric::FabricError> {
    if bytes != 0 && PAGE.is_multiple_of(bytes) {
        Ok(())
    } else {
        Err(rdma_fabric::FabricError::Unsupported { feature: &"ranks as processes with pages longer than 64 KiB" })
    }
}

/// Fails to compile unless each part, given as its first byte and its length, ends before the next
/// one starts.
#[expect(clippy::arithmetic_side_effects, reason = "evaluated by the compiler, which reports overflow")]
const fn in_order<const N: usize>(parts: [(usize, usize); N]) {
    let mut next = 1;
    while next < N {
        let (start, len) = parts[next - 1];
        assert!(start + len <= parts[next].0, "parts overlap, or are not in order");
        next += 1;
    }
}

/// Fails to compile unless each offset starts a line.
#[expect(clippy::arithmetic_side_effects, reason = "evaluated by the compiler, which reports overflow")]
const fn on_own_lines<const N: usize>(starts: [usize; N]) {
    let mut next = 0;
    while next < N {
        assert!(starts[next].is_multiple_of(CACHE_LINE), "a part starts within a line");
        next += 1;
    }
}

/// Returns the length of a segment with a heap of `heap` bytes.
pub(crate) fn segment_bytes(heap: usize) -> Option<usize> {
    heap.checked_add(HEAP)?.checked_next_multiple_of(PAGE)
}

/// Returns the length of the control block of `ranks` ranks.
pub(crate) fn control_bytes(ranks: usize) -> Option<usize> {
    ranks.checked_mul(CONTROL_RECORD)?.checked_add(CONTROL_RECORDS)?.checked_next_multiple_of(PAGE)
}

/// Returns the offset of the segment of `rank` in the file of a job of `ranks` ranks; for `rank =
/// ranks`, the end of the file.
pub(crate) fn segment_at(ranks: usize, heap: usize, rank: usize) -> Option<usize> {
    segment_bytes(heap)?.checked_mul(rank)?.checked_add(control_bytes(ranks)?)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn pages_that_do_not_fit_are_refused() {
        for bytes in [4096, 8192, 16_384, 65_536] {
            assert_eq!(check_page(bytes), Ok(()));
        }
        for bytes in [0, 3000, 131_072] {
            assert!(matches!(check_page(bytes), Err(rdma_fabric::FabricError::Unsupported { .. })), "{bytes}");
        }
    }
}
