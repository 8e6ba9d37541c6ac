//! The control queues of a node, which its ranks share: who has which.
//!
//! A word for each, in the segment of the node's first rank: 0, or 1 + the rank. A rank whose process was reaped has none any
//! more; whoever wants one of those takes it.

use crate::control_queue::QueueMachine;
use crate::shm::{job::Job, layout, mapping::Mapping};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed},
};
use rdma_fabric::Rank;

/// The control queues of a rank's node.
#[derive(Debug)]
pub(super) struct NodeQueues<'a> {
    job: &'a Job,
    segment: &'a Mapping,
    machine: QueueMachine,
}

impl<'a> NodeQueues<'a> {
    /// Of the node of `rank`; `None` if there is no such rank.
    pub(super) fn of(job: &'a Job, rank: Rank) -> Option<Self> {
        let first = rank.index() / job.plan.ranks_per_node * job.plan.ranks_per_node;
        let segment = job.segment(Rank::new(first as u32)).ok()?;
        Some(NodeQueues { job, segment, machine: job.queues.machine })
    }

    /// Of those in the machine's table.
    fn word(&self, engine: u8, number: u8) -> &AtomicU64 {
        let index = usize::from(engine) % layout::QUEUE_ENGINES * layout::QUEUE_NUMBERS
            + usize::from(number) % layout::QUEUE_NUMBERS;
        self.segment.word(layout::NODE_QUEUES + index * 8)
    }

    /// Whether a word's value says that somebody has the control queue.
    fn is_held(&self, value: u64) -> bool {
        let holder = usize::try_from(value).unwrap_or(0).checked_sub(1);
        holder.is_some_and(|rank| rank < self.job.plan.ranks && !self.job.control.has_ended(rank))
    }

    pub(super) fn is_free(&self, engine: u8, number: u8) -> bool {
        !self.is_held(self.word(engine, number).load(Relaxed))
    }

    /// How many of an engine are taken.
    pub(super) fn taken(&self, engine: u8) -> u32 {
        (0..self.machine.queues_per_engine).filter(|&number| !self.is_free(engine, number)).count() as u32
    }

    /// How many of all are not.
    pub(super) fn free(&self) -> u32 {
        (0..self.machine.engines).map(|engine| u32::from(self.machine.queues_per_engine) - self.taken(engine)).sum()
    }

    /// Take one for `me`. Whether it was free.
    pub(super) fn take(&self, engine: u8, number: u8, me: Rank) -> bool {
        let word = self.word(engine, number);
        let now = word.load(Acquire);
        !self.is_held(now) && word.compare_exchange(now, u64::from(me.number()) + 1, AcqRel, Relaxed).is_ok()
    }

    /// Give one back that `me` has.
    pub(super) fn give_back(&self, engine: u8, number: u8, me: Rank) {
        // Of a damaged word nothing is given back.
        let _ = self.word(engine, number).compare_exchange(u64::from(me.number()) + 1, 0, AcqRel, Relaxed);
    }
}
