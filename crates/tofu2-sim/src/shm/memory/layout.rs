//! Where things stand in a rank's segment and in the job's control block.
//!
//! ```text
//! segment: | header | region table | notice ring | gates | directory of queues | heap: symmetric → … ← local |
//! control: | job | one card per rank |
//! file:    | control | segment of rank 0 | … | segment of the last rank |
//! ```
//! (Where ranks are threads of one process there is no file.)
//! *Protocol words* (all but the heap) are atomics and nothing else; the heap is reached through
//! [`crate::shm::access`] and nothing else. So no byte is ever accessed in two ways.

use super::inside::ANNOUNCEMENTS;

/// Bytes that CPUs pass between them as one, a power of two: what different ranks write stands at least so far apart.
/// 128 where lines are fetched in pairs (x86-64) or are so long on some machines (aarch64, POWER), 256 on s390x, else 64:
/// as `crossbeam_utils::CachePadded`, but never less than a region's promised alignment of 64 bytes.
pub(crate) const CACHE_LINE: usize = if cfg!(target_arch = "s390x") {
    256
} else if cfg!(any(target_arch = "x86_64", target_arch = "aarch64", target_arch = "powerpc64")) {
    128
} else {
    64
};
/// Granule of mappings and of page reservation, in bytes. A multiple of it is a multiple of every page size up to 64
/// KiB, which is more than any supported system has; where memory files are used, the system is asked
/// ([`check_page`]).
pub(crate) const PAGE: usize = 65_536;

/// `u64`, not 0 once the segment's rank is lost. Same line as the bell: a poster looks at both.
pub(crate) const LOST: usize = 0;
/// `u32`, the doorbell; the only word that is not 8 bytes long, reached as [`super::mapping::Mapping::bell`] only. In the
/// control block nothing stands there.
pub(crate) const BELL: usize = 8;
/// `u64`, what a parked rank waits for.
pub(crate) const WATCH: usize = 16;
/// `u64`, position of the oldest notice; written by the owner, and on a line of its own.
pub(crate) const RING_HEAD: usize = CACHE_LINE;
/// `u64`, the next free position of the notice ring and who took the last; written by producers.
pub(crate) const RING_TAIL: usize = 2 * CACHE_LINE;
/// `u64`, what a producer found at the head last. On the tail's line: only producers touch it.
pub(crate) const RING_SEEN: usize = RING_TAIL + 8;
/// `u64` each, what operations of the rank that are under way are inside of; written by the rank.
pub(crate) const INSIDE: usize = 3 * CACHE_LINE;
/// `u64`, how often the rank has begun or ended to be parked without a deadline: odd while it is. It and the words behind it are written by the rank
/// and read by the watchdog: see [`crate::shm::waiting::watchdog`].
pub(crate) const PARKINGS: usize = QUEUES_PENDING + CACHE_LINE;
/// `u64`, how often the rank has looked again in vain and parked.
pub(crate) const PARKED_LOOKS: usize = PARKINGS + 8;
/// `u64`, what it waits for.
pub(crate) const PARKED_WHAT: usize = PARKINGS + 16;
/// `u64`, which ranks that depends on, and how many more waits it has.
pub(crate) const PARKED_WHOM: usize = PARKINGS + 24;
/// `u64`, not 0 if others than ranks may wake it.
pub(crate) const PARKED_OPEN: usize = PARKINGS + 32;
/// `u64`, not 0 if the rank is a [`rdma_fabric::Program`], which nobody else works for.
pub(crate) const SEALED: usize = PARKINGS + 40;
/// `u64`, the process that is parked.
pub(crate) const PARKED_PROCESS: usize = PARKINGS + 48;
/// First entry of the region table.
pub(crate) const TABLE: usize = 4096;
/// Bytes of a table entry.
pub(crate) const ENTRY: usize = 32;
/// Table entries for symmetric regions, the first ones.
pub(crate) const SYMMETRIC_SLOTS: usize = 1024;
/// All table entries.
pub(crate) const SLOTS: usize = 4096;
/// First slot of the notice ring.
pub(crate) const RING: usize = TABLE + SLOTS * ENTRY;
/// Bytes of a ring slot.
pub(crate) const RING_SLOT: usize = 32;
/// Notices that fit into a rank's ring; a power of two.
pub(crate) const RING_CAPACITY: usize = 4096;
/// First claim word of the notice ring.
pub(crate) const RING_CLAIMS: usize = RING + RING_CAPACITY * RING_SLOT;

// The barrier unit's gates: a table of records. See `gates::record`.

/// Start/end gates of a rank.
pub(crate) const START_GATES: usize = 16;
/// All gates of a rank.
pub(crate) const GATES: usize = 64;
/// Bytes of a gate's signal.
pub(crate) const GATE_PACKET: usize = (rdma_fabric::barrier::Wave::WORDS * 8).next_multiple_of(CACHE_LINE);
/// Bytes of a record: a line of words and two signals.
pub(crate) const GATE_RECORD: usize = CACHE_LINE + 2 * GATE_PACKET;
/// First record: those of all gates, then those of the start/end gates' end halves.
pub(crate) const GATE_RECORDS: usize = (RING_CLAIMS + RING_CAPACITY * 8).next_multiple_of(CACHE_LINE);
/// Behind the last record.
const GATES_END: usize = GATE_RECORDS + (GATES + START_GATES) * GATE_RECORD;

/// `u64`, not 0 if control queues of the rank wait for somebody to execute what was released; any rank writes it.
pub(crate) const QUEUES_PENDING: usize = (INSIDE + 8 * ANNOUNCEMENTS).next_multiple_of(CACHE_LINE);
/// First word of the directory of control queues: the region key of the queue's words, or 0.
pub(crate) const QUEUES: usize = GATES_END;
/// RDMA engines that a directory has room for.
pub(crate) const QUEUE_ENGINES: usize = 8;
/// Control queues of an engine that a directory has room for.
pub(crate) const QUEUE_NUMBERS: usize = 16;
/// Queues that share a control queue, for which a directory has room.
pub(crate) const QUEUE_CONTEXTS: usize = 8;
/// First word of the node's control queues, in the segment of its first rank: which rank has each.
pub(crate) const NODE_QUEUES: usize = QUEUES + QUEUE_ENGINES * QUEUE_NUMBERS * QUEUE_CONTEXTS * 8;
/// First byte of the heap.
pub(crate) const HEAP: usize = (NODE_QUEUES + QUEUE_ENGINES * QUEUE_NUMBERS * 8).next_multiple_of(PAGE);

/// `u64`, [`MAGIC_VALUE`].
pub(crate) const MAGIC: usize = 0;
/// `u64`, number of ranks.
pub(crate) const RANKS: usize = 48;
/// `u64`, length of the heap of each segment, in bytes.
pub(crate) const HEAP_BYTES: usize = 16;
/// `u64`, ranks per node.
pub(crate) const RANKS_PER_NODE: usize = 24;
/// `u64`, monotonic clock at the job's start, ns.
pub(crate) const START: usize = 32;
/// `u64`, not 0 if some process of the job can't be reached by a process-wide barrier.
pub(crate) const NO_HEAVY_BARRIER: usize = 40;
/// `u64`, not 0 if the job has more ranks than CPUs. Whoever started it says so: a bound rank sees only its own CPUs.
pub(crate) const OVERSUBSCRIBED: usize = 56;
/// `u64`, number of changes of any rank's state.
pub(crate) const CHANGES: usize = CACHE_LINE;
/// `u64`, 1 + the rank that was lost first, or 0.
pub(crate) const FIRST_LOST: usize = CACHE_LINE + 8;
/// `u64`, not 0 once any rank's process was reaped.
pub(crate) const ENDED: usize = CACHE_LINE + 16;
/// `u64`, how many ranks wait, once nothing can happen any more.
pub(crate) const STUCK: usize = CACHE_LINE + 24;
/// `u64`, number of arrivals at phases of symmetric allocations; only a hint whom to wake.
pub(crate) const ARRIVALS: usize = 2 * CACHE_LINE;
/// `u64`, what the job's control queues are like ([`crate::shm::queues::config::QueueOptions`]); never changes.
pub(crate) const QUEUE_OPTIONS: usize = ARRIVALS + 8;
/// `u64`, a random number that tells the job from others; never changes. 0 where ranks share a process, as is the next.
pub(crate) const JOB: usize = ARRIVALS + 16;
/// `u64`, a random number that only processes of the job know; never changes.
pub(crate) const SECRET: usize = ARRIVALS + 24;
/// First card.
pub(crate) const CARDS: usize = 3 * CACHE_LINE;

/// `u64` in a card: the rank's state.
pub(crate) const CARD_STATE: usize = 0;
/// `u64` in a card: number of phases of symmetric allocations the rank has arrived at.
pub(crate) const CARD_PHASE: usize = 8;
/// `u64` in a card: 1 once the rank's process was reaped, so that no code of it runs; 0 for ever where ranks are threads.
pub(crate) const CARD_ENDED: usize = 16;
/// `u64` in a card: which process the rank is ([`crate::shm::job::control::Holder`]); 0 for ever where ranks are threads.
pub(crate) const CARD_HOLDER: usize = 24;
/// `u64` in a card: not 0 while anybody of the rank is parked, or about to be. So changing a state need not touch the
/// segments of all ranks, in most of which no thread waits.
pub(crate) const CARD_PARKED: usize = 32;
/// In a card: what the rank says in a phase. Two of them, for even and odd phases, so that a rank can go on to the
/// next phase while others still read the last.
pub(crate) const CARD_SIDES: [usize; 2] = [CACHE_LINE, CACHE_LINE + SIDE];
/// `u64` in a side: bytes asked for.
pub(crate) const SIDE_BYTES: usize = 0;
/// `u64` in a side: in phase 1 up to where the rank promises room, in phase 2 whether all is well with it (1).
pub(crate) const SIDE_VERDICT: usize = 8;
/// `u64` in a side: 1 if the rank has freed regions whose grace period is not over.
pub(crate) const SIDE_RETIRED: usize = 16;
/// Three `u64` in a side: the terms of a locked region ([`rdma_fabric::Pact::terms`]), or 0.
pub(crate) const SIDE_TERMS: usize = 24;
/// Bit set in a side: symmetric slots that the rank has dropped.
pub(crate) const SIDE_DROPPED: usize = CACHE_LINE;
/// Bytes of a side.
const SIDE: usize = SIDE_DROPPED + SYMMETRIC_SLOTS / 8;
/// Bytes of a card.
pub(crate) const CARD: usize = CARD_SIDES[1] + SIDE;

/// What [`MAGIC`] holds: name, version and line length of this layout.
pub(crate) const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"1sided\x08\0") | (CACHE_LINE.ilog2() as u64) << 56;

/// Returns whether [`PAGE`] suits a system with pages of `bytes` bytes.
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

/// Refuses to compile unless each part, its first byte and its length, ends before the next one starts.
const fn in_order<const N: usize>(parts: [(usize, usize); N]) {
    let mut next = 1;
    while next < N {
        let (start, len) = parts[next - 1];
        assert!(start + len <= parts[next].0, "parts overlap, or are not in order");
        next += 1;
    }
}

/// Refuses to compile unless each of them starts a line.
const fn on_own_lines<const N: usize>(starts: [usize; N]) {
    let mut next = 0;
    while next < N {
        assert!(starts[next].is_multiple_of(CACHE_LINE), "a part starts within a line");
        next += 1;
    }
}

const RING_BYTES: usize = RING_CAPACITY * RING_SLOT;
const _: () = in_order([
    (LOST, 8),
    (BELL, 4),
    (WATCH, 8),
    (RING_HEAD, 8),
    (RING_TAIL, 8),
    (RING_SEEN, 8),
    (INSIDE, 8 * ANNOUNCEMENTS),
    (QUEUES_PENDING, 8),
    (PARKINGS, 56),
    (TABLE, SLOTS * ENTRY),
    (RING, RING_BYTES),
    (RING_CLAIMS, 8 * RING_CAPACITY),
    (GATE_RECORDS, (GATES + START_GATES) * GATE_RECORD),
    (QUEUES, QUEUE_ENGINES * QUEUE_NUMBERS * QUEUE_CONTEXTS * 8),
    (NODE_QUEUES, QUEUE_ENGINES * QUEUE_NUMBERS * 8),
    (HEAP, 0),
]);
const _: () =
    on_own_lines([LOST, RING_HEAD, RING_TAIL, INSIDE, QUEUES_PENDING, PARKINGS, TABLE, RING, RING_CLAIMS, HEAP]);
const _: () = assert!(RING_SEEN / CACHE_LINE == RING_TAIL / CACHE_LINE && SYMMETRIC_SLOTS < SLOTS);
const _: () = assert!(CACHE_LINE.is_multiple_of(ENTRY) && CACHE_LINE.is_multiple_of(RING_SLOT));
const _: () = assert!(RING_CAPACITY.is_power_of_two() && HEAP.is_multiple_of(PAGE) && PAGE.is_multiple_of(CACHE_LINE));

const _: () = in_order([
    (MAGIC, 8),
    (HEAP_BYTES, 8),
    (RANKS_PER_NODE, 8),
    (START, 8),
    (NO_HEAVY_BARRIER, 8),
    (RANKS, 8),
    (OVERSUBSCRIBED, 8),
    (CHANGES, 8),
    (FIRST_LOST, 8),
    (ENDED, 8),
    (STUCK, 8),
    (ARRIVALS, 8),
    (QUEUE_OPTIONS, 8),
    (JOB, 8),
    (SECRET, 8),
    (CARDS, 0),
]);
const _: () = on_own_lines([MAGIC, CHANGES, ARRIVALS, CARDS, CARD]);
const _: () = in_order([
    (CARD_STATE, 8),
    (CARD_PHASE, 8),
    (CARD_ENDED, 8),
    (CARD_HOLDER, 8),
    (CARD_PARKED, 8),
    (CARD_SIDES[0], SIDE),
    (CARD_SIDES[1], SIDE),
    (CARD, 0),
]);
const _: () = in_order([
    (SIDE_BYTES, 8),
    (SIDE_VERDICT, 8),
    (SIDE_RETIRED, 8),
    (SIDE_TERMS, 24),
    (SIDE_DROPPED, SYMMETRIC_SLOTS / 8),
    (SIDE, 0),
]);
const _: () = on_own_lines([CARD_STATE, CARD_SIDES[0], SIDE_DROPPED]);

/// Returns the length of a segment with a heap of `heap` bytes.
pub(crate) fn segment_bytes(heap: usize) -> Option<usize> {
    heap.checked_add(HEAP)?.checked_next_multiple_of(PAGE)
}

/// Returns the length of the control block of `ranks` ranks.
pub(crate) fn control_bytes(ranks: usize) -> Option<usize> {
    ranks.checked_mul(CARD)?.checked_add(CARDS)?.checked_next_multiple_of(PAGE)
}

/// Returns where the segment of `rank` starts in the file of a job of `ranks` ranks, and for `rank = ranks` where the file ends.
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
