//! The entry point for fuzzing the input of an attached process: the variable that leads to its
//! job, and the job's memory file, with words of any value. It is public only with `--cfg fuzzing`,
//! for the target in `fuzz/`, whose seeds a test replays.

use super::{
    endpoint::Endpoint,
    job::{Plan, holder::Holder},
    memory::{
        adopted::Outside,
        layout,
        place::{Bytes, LocatedPlace},
    },
    processes::{
        attach::{JobVariable, attach},
        start::{LaidOut, lay_out, monotonic_ns},
    },
    queues::config::QueueOptions,
};
use core::{
    future::Future,
    pin::pin,
    sync::atomic::Ordering::Relaxed,
    task::{Context, Poll, Waker},
};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, Group, Node, Rank, Refused, Region, RegionKey, RemoteAddr, RemoteSpan, Result,
    control_queue::{QueueMode, QueueSpec},
    op,
};
use rustix::io::pwrite;
use std::os::fd::{AsFd, AsRawFd};

const RANKS: usize = 2;
const HEAP: usize = 1 << 16;
/// Bytes of a change: a part of the file, an index, a value.
const CHANGE: usize = 11;
/// The maximum number of steps in an input.
const MOST: usize = 64;

/// A variable, or a job's memory file; the first byte selects which.
///
/// For the file, the bytes are two counts, then changes of [`CHANGE`] bytes that are applied before
/// the attached process attaches, and steps: actions of the attached process, and further changes.
///
/// # Panics
/// If an invariant does not hold.
pub fn control_block(bytes: &[u8]) {
    match bytes {
        [0, text @ ..] => variable(&String::from_utf8_lossy(text)),
        [_, both, before, steps @ ..] => memory_file(both % 2 == 1, usize::from(before % 16), steps),
        _ => {}
    }
}

fn variable(text: &str) {
    if let Ok(variable) = text.parse::<JobVariable>() {
        assert_eq!(variable.to_string().parse(), Ok(variable));
    }
}

/// Lays out a job, changes its file and attaches; the other rank exists if `both` is set.
fn memory_file(both: bool, before: usize, steps: &[u8]) {
    let plan = Plan { ranks: RANKS, ranks_per_node: RANKS, heap_bytes: HEAP, start_ns: monotonic_ns() };
    let plan = plan.checked().expect("a small job");
    let LaidOut { block, file, .. } = lay_out(&plan, QueueOptions::default()).expect("room for a small job");
    let job = block.word(layout::JOB).load(Relaxed);
    let of = |rank| JobVariable { rank, ranks: RANKS, segment_bytes: HEAP, memory: file.as_raw_fd(), job };
    let (changes, steps) = steps.split_at(steps.len().min(before * CHANGE));
    changes.as_chunks::<CHANGE>().0.iter().for_each(|change| apply(&file, &plan, change));
    let Ok(attached) = attach(&of(0), Holder::Attached).map(Endpoint::fabric) else { return };
    let other = both.then(|| attach(&of(1), Holder::Somebody).map(Endpoint::fabric));
    let mut attached = Attached { fabric: attached, regions: Vec::new(), spans: Vec::new() };
    let mut rest = steps;
    for _ in 0..MOST {
        match rest {
            [kind @ 0x80..=0xff, with, after @ ..] => {
                let _ = attached.act(kind & 0x7f, *with);
                rest = after;
            }
            [_, ..] => {
                let Some((change, after)) = rest.split_first_chunk() else { break };
                apply(&file, &plan, change);
                rest = after;
            }
            [] => break,
        }
    }
    drop(attached);
    drop(other);
}

/// Writes a word of the control block, a control record, a header, a table, the rings behind it, or
/// a heap.
fn apply(file: impl AsFd, plan: &Plan, change: &[u8; CHANGE]) {
    let [part, low, high, value @ ..] = *change;
    let (index, rank) = (8 * usize::from(u16::from_le_bytes([low, high])), usize::from(part >> 3 & 1));
    let segment = plan.segment_at(rank);
    let at = match part & 7 {
        0 => index % layout::CONTROL_RECORDS,
        1 => layout::CONTROL_RECORDS + rank * layout::CONTROL_RECORD + index % layout::CONTROL_RECORD,
        2 => segment + index % layout::TABLE,
        // Entries that are in use are the first of each kind.
        3 => segment + layout::TABLE + index % (8 * layout::ENTRY),
        4 => segment + layout::TABLE + layout::SYMMETRIC_SLOTS * layout::ENTRY + index % (8 * layout::ENTRY),
        5 => segment + layout::RING + index % (layout::RING_CAPACITY * layout::RING_SLOT),
        6 => segment + layout::GATE_RECORDS + index % (layout::HEAP - layout::GATE_RECORDS),
        _ => segment + layout::HEAP + index % HEAP,
    };
    pwrite(file, &value, at as u64).expect("inside the file");
}

/// A rank that uses all facilities and ignores errors.
struct Attached {
    fabric: Fabric,
    regions: Vec<Region>,
    spans: Vec<RemoteSpan<u64>>,
}

impl Attached {
    /// Performs one action that does not wait, or waits only briefly.
    fn act(&mut self, kind: u8, with: u8) -> Result<()> {
        let fabric = self.fabric.clone();
        let rank = Rank::new(u32::from(with & 3));
        let deps = if with & 4 == 0 { Deps::All } else { Deps::One(rank) };
        let number = usize::from(with >> 3);
        match kind % 16 {
            0 => self.regions.push(fabric.alloc(64 * usize::from(with))?),
            1 => self.regions.extend(a_little(fabric.alloc_symmetric(8 * number)).transpose()?),
            2 | 3 => self.reach(rank, number)?,
            4 => drop(a_little(Group::world(&fabric)).transpose()?),
            5 => drop(fabric.try_notice()?),
            6 => drop(a_little(fabric.next_notice(deps)).transpose()?),
            7 => drop(a_little(fabric.room(Some(rank))).transpose()?),
            8 => drop(a_little(fabric.flush(rank)).transpose()?),
            9 => self.looks_at_the_job(rank)?,
            10 => {
                let registered = fabric.register(vec![with; 64]).map_err(|refused| refused.error)?;
                fabric.holds(rank, registered.key())?;
                a_little(registered.take());
            }
            11 => {
                let mut spec = QueueSpec::new(QueueMode::Session).depth(2 << (with & 3));
                spec.mrq_depth = 8;
                let queues = fabric.provider().queues().expect("shared memory has queues");
                let queue = queues.open(spec)?;
                if let Some(region) = self.regions.first() {
                    queue.register(region, None)?;
                }
                let _ = (queue.poll_tcq()?, queue.poll_mrq()?);
                queue.close()?;
            }
            12 => {
                let unit = fabric.provider().gates().expect("shared memory has a unit");
                unit.free(&unit.take(number)?);
            }
            13 => {
                let Some(region) = self.regions.first() else { return Ok(()) };
                let word = region.word::<u64>(&fabric, 0)?;
                a_little(fabric.wait_until(&word, deps, |value| value == 1)).transpose()?;
            }
            14 if !self.regions.is_empty() => drop(self.regions.swap_remove(number % self.regions.len())),
            _ => self.transfer(number, with)?,
        }
        Ok(())
    }

    /// Resolves bytes of a region that may exist.
    fn reach(&mut self, rank: Rank, number: usize) -> Result<()> {
        let own = self.regions.get(number % 4).map(Region::key);
        let first = if number & 4 == 0 { 0 } else { layout::SYMMETRIC_SLOTS as u32 };
        let region = own.unwrap_or(RegionKey { index: first + number as u32 % 4, generation: 1 });
        let addr = RemoteAddr { rank, region, offset: 8 * (number as u64 & 3) };
        let span = self.fabric.remote_span::<u64>(addr, 1 + number % 5)?;
        let endpoint = Endpoint::of(&self.fabric).expect("a rank over shared memory");
        let piece = match LocatedPlace::of(endpoint.job(), span.place())?.bytes {
            Bytes::Segment(piece) => Some((piece.offset(), piece.len())),
            Bytes::Outside(Outside::Staged(piece)) => Some((piece.offset(), piece.len())),
            Bytes::Outside(_) => None,
        };
        let heap = layout::HEAP..=layout::HEAP + HEAP;
        let inside = |(at, len): (usize, usize)| heap.contains(&at) && heap.contains(&(at + len));
        assert!(piece.is_none_or(inside), "{:?} is outside the heap", span.place());
        self.spans.truncate(6);
        self.spans.insert(0, span);
        Ok(())
    }

    /// Puts, gets, or adds.
    fn transfer(&self, number: usize, with: u8) -> Result<()> {
        let Some(span) = self.spans.get(number % 8) else { return Ok(()) };
        let (fabric, words) = (&self.fabric, vec![u64::from(with); span.len()]);
        match with & 3 {
            0 => drop(fabric.try_post(op::Put { to: span, from: words, notice: None }).map_err(failure)?),
            1 => drop(fabric.try_post(op::Put { to: span, from: words, notice: Some(7) }).map_err(failure)?),
            2 => drop(fabric.try_post(op::Get { from: span, to: words }).map_err(failure)?),
            _ => {
                let word = fabric.remote_word::<u64>(span.addr())?;
                drop(fabric.try_atomic(&word, Amo::Add(1)).map_err(failure)?);
            }
        }
        Ok(())
    }

    /// Queries the values that were read from the control block.
    fn looks_at_the_job(&self, rank: Rank) -> Result<()> {
        let endpoint = Endpoint::of(&self.fabric).expect("a rank over shared memory");
        let job = endpoint.job();
        assert_eq!((job.plan.ranks, job.plan.heap_bytes, self.fabric.ranks()), (RANKS, HEAP, RANKS));
        for rank in 0..RANKS {
            let _ = (job.control.state(rank), job.control.has_ended(rank), job.control.is_attached_process(rank));
        }
        assert!(job.control.first_lost().is_none_or(|rank| rank < RANKS));
        let _ = (
            job.first_of_node(rank),
            self.fabric.facts().node_count(),
            self.fabric.facts().rank_on(Node::new(0), rank.index()),
        );
        self.fabric.node(rank)?;
        job.control.can_continue()?;
        job.outlook(Rank::new(0), &Deps::One(rank))
    }
}

fn failure<Op>(refused: Refused<Op>) -> FabricError {
    match refused {
        Refused::Failed(error, _) => error,
        Refused::Full(_) => FabricError::PeersLeft,
    }
}

/// Polls a future a few times and drops it.
fn a_little<F: Future>(future: F) -> Option<F::Output> {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    (0..4).find_map(|_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(out) => Some(out),
        Poll::Pending => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fabric_conformance::seeds::replay;

    #[test]
    fn seeds_of_fuzz_target_are_withstood() {
        replay(env!("CARGO_MANIFEST_DIR"), "control_block", control_block);
    }
}
