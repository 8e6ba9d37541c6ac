//! The state that a rank publishes about itself, in words of its own segment.
//!
//! `count` at the home is anonymous: it does not identify the ranks of the readers that it counts.
//! So each rank records, in words that others can read but only it writes, the numbers of its
//! readers that are arriving, inside and leaving, and the progress of the writer of each of its
//! queue nodes. When a rank has died, the survivors of a [`crate::locks::RecoverableLock`] derive
//! from these words which ranks may be inside, before they continue with the words of the next
//! epoch. No other lock reads them.
//!
//! They are written *before* the step that they announce, and again after the step's result is
//! known: [`Published::step`].
//!
//! # Lanes
//! A read-modify-write costs as much as the step itself, and publishing would need four of them. So
//! there are two words, and their sum counts: the thread that uses the lock first has one word to
//! itself and changes it by a load and a store; all other threads share the other word and a mutex.
//! One thread may subtract an amount that another has added: each lane wraps around, but the sum is
//! correct.

use super::{
    NodeId,
    layout::{self, NODES},
};
use crate::lock::holder_limit;
use core::{
    fmt, ptr,
    sync::atomic::{AtomicU64, AtomicUsize, Ordering::Relaxed},
};
use rdma_fabric::{Fabric, GroupMemory, LocalWord, Result};
use std::sync::{Mutex, PoisonError};

/// The positions of the reader counters, above the writers' bits. The number of readers inside is
/// limited by the count word ([`crate::lock::holder_limit`]), and more than 2⁵¹ would have to be arriving
/// for both counts together to overflow their 52 bits. No rank depends on leaving readers, so their
/// count may wrap.
const ARRIVING: u64 = 1 << 8;
const INSIDE: u64 = 1 << 32;
const LEAVING: u64 = 1 << 60;
const _: () = assert!(1 << (2 * NODES) <= ARRIVING && LEAVING / INSIDE >= 4 * holder_limit::MAX_HOLDERS);

/// A change of the published state.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Transition(u64);

impl Transition {
    /// A reader is about to be counted.
    pub(crate) const READER_ARRIVES: Transition = Transition(ARRIVING);
    pub(crate) const READER_ENTERS: Transition = Transition(INSIDE - ARRIVING);
    pub(crate) const READER_LEAVES: Transition = Transition(LEAVING.wrapping_sub(INSIDE));
    /// The reader is no longer counted.
    pub(crate) const READER_IS_GONE: Transition = Transition(LEAVING.wrapping_neg());
    /// The reader gave up; the rank that finds its node uncounts it.
    pub(crate) const READER_GIVES_UP: Transition = Transition(ARRIVING.wrapping_neg());

    /// Announces that the writer on `node` moves forward by one state: from nothing to arriving,
    /// inside, leaving. Two bits for each slot.
    #[inline(always)]
    pub(crate) fn writer_continues(node: NodeId) -> Transition {
        Transition(1 << (2 * node.slot()))
    }

    /// Announces that the writer on `node` moves back by `times` states.
    #[inline(always)]
    pub(crate) fn writer_returns(node: NodeId, times: u64) -> Transition {
        Transition((times << (2 * node.slot())).wrapping_neg())
    }

    #[inline(always)]
    pub(crate) fn undone(self) -> Transition {
        Transition(self.0.wrapping_neg())
    }
}

pub(crate) struct Published {
    /// The [thread](here) that used the lock first; 0 before that.
    owner: AtomicUsize,
    /// The published words; `None` unless other ranks read them. Boxed, because a simulated job has a
    /// lock at each of many ranks.
    lanes: Option<Box<Lanes>>,
}

struct Lanes {
    /// The owner's lane.
    word: LocalWord<u64>,
    /// The value of the owner's lane. Changed by the owner only.
    own: AtomicU64,
    /// The value of the others' lane.
    others: Mutex<Others>,
}

#[derive(Default)]
struct Others {
    sum: u64,
    /// Twice the number of changes of the sum, if other ranks read both lanes.
    version: u64,
}

/// Returns whether a rank that publishes `sum` is inside, or may be. A rank that is leaving has
/// completed all of its work inside.
pub(crate) fn is_inside(sum: u64) -> bool {
    let readers = sum & (LEAVING - ARRIVING) != 0;
    let writers = (0..NODES).any(|slot| matches!(sum >> (2 * slot) & 3, 1 | 2));
    readers || writers
}

impl fmt::Debug for Published {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sum = self.sum();
        write!(
            f,
            "readers {} arriving, {} inside, {} leaving; writers by node {:#b}",
            sum % INSIDE / ARRIVING,
            sum % LEAVING / INSIDE,
            sum / LEAVING,
            sum % ARRIVING
        )
    }
}

/// Identifies the calling thread among live threads, by the address of a thread-local variable.
#[inline(always)]
fn here() -> usize {
    thread_local!(static PLACE: u8 = const { 0 });
    PLACE.with(|place| ptr::from_ref(place).addr())
}

impl Published {
    /// Creates the state of a lock that publishes it if it is `recoverable`.
    pub(crate) fn new(fabric: &Fabric, memory: &GroupMemory, recoverable: bool) -> Result<Self> {
        let lanes = match recoverable {
            false => None,
            true => Some(Box::new(Lanes {
                word: fabric.local_word(memory.at(fabric.rank(), layout::published(0))?)?,
                own: AtomicU64::new(0),
                others: Mutex::default(),
            })),
        };
        Ok(Published { owner: AtomicUsize::new(0), lanes })
    }

    /// Returns whether the calling thread owns the first lane.
    #[inline(always)]
    pub(crate) fn is_owner(&self) -> bool {
        let (here, owner) = (here(), self.owner.load(Relaxed));
        here == owner || owner == 0 && self.owner.compare_exchange(0, here, Relaxed, Relaxed).is_ok()
    }

    /// Publishes a change, if the lock publishes any.
    #[inline(always)]
    pub(crate) fn step(&self, fabric: &Fabric, memory: &GroupMemory, step: Transition) -> Result<()> {
        let Some(lanes) = &self.lanes else { return Ok(()) };
        if !self.is_owner() {
            return lanes.step_of_others(fabric, memory, step);
        }
        // Neither another thread nor another task of this one can intervene.
        let value = lanes.own.load(Relaxed).wrapping_add(step.0);
        lanes.own.store(value, Relaxed);
        fabric.store_unwaited(&lanes.word, value)
    }

    /// Returns the sum of both lanes; 0 if the lock publishes nothing.
    pub(crate) fn sum(&self) -> u64 {
        self.lanes.as_ref().map_or(0, |lanes| lanes.sum())
    }
}

impl Lanes {
    #[cold]
    fn step_of_others(&self, fabric: &Fabric, memory: &GroupMemory, step: Transition) -> Result<()> {
        let mut others = self.others.lock().unwrap_or_else(PoisonError::into_inner);
        others.sum = others.sum.wrapping_add(step.0);
        let word = fabric.local_word(memory.at(fabric.rank(), layout::published(1))?)?;
        if memory.len() as u64 <= layout::VERSION {
            return fabric.store_unwaited(&word, others.sum);
        }
        // The version is odd while the lane changes. The stores take effect in this order
        // (release).
        let version = fabric.local_word(memory.at(fabric.rank(), layout::VERSION)?)?;
        others.version += 2;
        fabric.store_unwaited(&version, others.version - 1)?;
        fabric.store_unwaited(&word, others.sum)?;
        fabric.store_unwaited(&version, others.version)
    }

    fn sum(&self) -> u64 {
        let others = self.others.lock().unwrap_or_else(PoisonError::into_inner).sum;
        self.own.load(Relaxed).wrapping_add(others)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_number_of_readers_inside_looks_like_none() {
        for readers in [1, 1 << 15, 1 << 16, 1 << 24, holder_limit::MAX_HOLDERS, 4 * holder_limit::MAX_HOLDERS - 1] {
            assert!(is_inside(INSIDE.wrapping_mul(readers)), "{readers} inside");
            assert!(is_inside(Transition::READER_ARRIVES.0.wrapping_mul(readers)), "{readers} arriving");
        }
        assert!(!is_inside(LEAVING) && !is_inside(0));
    }
}
