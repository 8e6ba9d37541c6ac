//! The executing CPU: the queues whose commands it executes, its budget, and the commands that
//! follow.
//!
//! A command that advances another queue makes that queue's commands executable. They are not
//! executed on the spot (queues that release each other would recurse without end). Instead the
//! queue is put on a list, which the CPU works through when the command has completed: each queue
//! is given a *turn* of a few commands, then goes to the end of the list. After a bounded amount of
//! work, the remaining queues are handed over to their owners, which continue when they next wait
//! for anything, or to the owners' progress threads.

mod step;
mod work_list;

use super::{claim::TurnEnd, own::OwnQueues, view::View};
use crate::{
    job::Job,
    memory::{
        Mapping,
        inside::{self, Inside, RegionId},
        layout,
    },
};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use rdma_fabric::{Rank, control_queue::QueueId};
pub(crate) use work_list::WorkList;

/// Maximum number of commands of a queue in one turn, before the others get theirs.
const TURN: u32 = 16;
/// The rank on whose behalf a CPU executes commands.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Executor<'a> {
    pub(crate) job: &'a Job,
    pub(crate) me: Rank,
    /// The rank's own segment.
    pub(crate) segment: &'a Mapping,
    /// Which of the segment's announcement words are in use, one bit each.
    pub(crate) taken: &'a AtomicU32,
    /// The rank's state of its own queues.
    pub(crate) queues: &'a OwnQueues,
}

impl<'a> Executor<'a> {
    pub(crate) fn announce<const N: usize>(&self, ids: [RegionId; N]) -> Inside<'a, AtomicU64, N> {
        inside::announce(self.segment.announcements(), self.taken, ids, std::thread::yield_now)
    }

    /// Returns whether no code of `rank` will ever run again, which holds for ranks that don't
    /// exist.
    pub(crate) fn has_ended(&self, rank: u32) -> bool {
        rank as usize >= self.job.plan.ranks || self.job.control.has_ended(rank as usize)
    }

    /// Executes all executable commands of `id` and the commands they release.
    pub(crate) fn help(&self, id: QueueId) {
        let mut work = WorkList::new();
        self.released(id, &mut work);
        self.finish(work);
    }

    /// Does what [`Executor::help`] does, with an empty list.
    pub(crate) fn help_with(&self, id: QueueId, work: &mut WorkList<'a>) {
        work.renew();
        self.released(id, work);
        self.work_off(work);
    }

    /// Puts `id`, which may have executable commands, on the list.
    pub(crate) fn released(&self, id: QueueId, work: &mut WorkList<'_>) {
        if !work.push(id) {
            self.hand_over(id);
        }
    }

    /// Gives this rank's `queue` a turn, and executes the commands that it releases.
    #[inline]
    pub(crate) fn turn_own(&self, queue: &View<'_>) {
        let mut work = WorkList::new();
        work.cached = self.queues.cached();
        if self.turn_at(queue, &mut work) == TurnEnd::More {
            self.released(queue.id, &mut work);
        }
        if !work.is_empty() {
            self.work_off(&mut work);
        }
    }

    /// Works off the list, on which the only queue, if any, is this rank's `queue`.
    #[inline]
    pub(crate) fn finish_own(&self, queue: &View<'_>, mut work: WorkList<'a>) {
        if work.pop().is_some() {
            work.cached = self.queues.cached();
            if queue.is_going() && self.turn_at(queue, &mut work) == TurnEnd::More {
                self.released(queue.id, &mut work);
            }
            self.finish(work);
        }
    }

    /// Works off the list.
    #[inline]
    pub(crate) fn finish(&self, mut work: WorkList<'a>) {
        if !work.is_empty() {
            self.work_off(&mut work);
        }
    }

    #[inline(never)]
    fn work_off(&self, work: &mut WorkList<'a>) {
        if work.cached.is_none() {
            work.cached = self.queues.cached();
        }
        while work.budget != 0 {
            let Some(id) = work.pop() else { return };
            if self.turn(id, work) == TurnEnd::More {
                self.released(id, work);
            }
        }
        while let Some(id) = work.pop() {
            self.hand_over(id);
        }
    }

    /// Leaves a queue to its owner.
    #[cold]
    fn hand_over(&self, id: QueueId) {
        if let Ok(segment) = self.job.segment(id.rank()) {
            // Before the rank is rung, like every write that a rank waits for.
            segment.word(layout::QUEUES_PENDING).store(1, SeqCst);
            segment.ring();
        }
    }

    /// Gives `id` a turn.
    fn turn(&self, id: QueueId, work: &mut WorkList<'_>) -> TurnEnd {
        match View::find(self.job, id) {
            Ok(queue) if queue.is_session() && queue.is_going() => self.turn_at(&queue, work),
            _ => TurnEnd::Nothing,
        }
    }

    /// Gives a session queue a turn.
    fn turn_at(&self, queue: &View<'_>, work: &mut WorkList<'_>) -> TurnEnd {
        let (turns, before) = (queue.turns(), queue.turns().read());
        let left = turns.turn(self.me.number(), |rank| self.has_ended(rank), TURN, |due| self.step(queue, due, work));
        self.after_turn(queue, before, work);
        left
    }

    /// Does what follows the execution of commands of `queue`, whose read pointer was `before`.
    #[inline]
    fn after_turn(&self, queue: &View<'_>, before: u64, work: &mut WorkList<'_>) {
        if core::mem::take(&mut work.leave) {
            self.hand_over(queue.id);
        }
        if queue.turns().read() != before {
            // Its owner may be waiting for room or for a completion.
            queue.segment.ring_for_notice();
        }
    }

    /// Executes the commands of this rank's `queue`, one of which is due and whose claim the rank
    /// holds, and the commands that they release. `work` is empty, before and afterwards.
    #[inline]
    pub(crate) fn execute_held(&self, queue: &View<'_>, work: &mut WorkList<'a>) {
        if work.cached.is_none() {
            work.cached = self.queues.cached();
        }
        work.renew();
        let (turns, before) = (queue.turns(), queue.turns().read());
        turns.execute_due(&mut { TURN }, &mut |due| self.step(queue, due, work));
        self.after_turn(queue, before, work);
        if !work.is_empty() {
            self.work_off(work);
        }
    }
}

impl Executor<'_> {
    /// Calls [`Executor::help`] if the queue's words show that it is worthwhile.
    pub(crate) fn help_if_due(&self, id: QueueId) {
        if View::find(self.job, id).is_ok_and(|queue| queue.is_session() && queue.turns().is_due()) {
            self.help(id);
        }
    }
}
