//! The executing CPU: the queues whose commands it executes, its budget, and the commands that
//! follow.
//!
//! A command that advances another queue makes that queue's commands executable. They are not
//! executed on the spot (queues that release each other would recurse without end). Instead the
//! queue is put on a list, which the CPU works through when the command has completed: each queue
//! is given a *turn* of a few commands, then goes to the end of the list. After a bounded amount of
//! work, the remaining queues are handed over to their owners, which continue when they next wait
//! for anything, or to the owners' progress threads.

mod work_list;

use super::{
    claim::{Attempt, DueCommand, Phase, TurnEnd},
    config::Stop,
    death::{self, DeathPoint},
    own::OwnQueues,
    view::{TcqEntry, View},
};
use crate::{
    job::Job,
    memory::{
        Mapping,
        inside::{self, Inside, RegionId},
        layout,
    },
    queues::format::{
        descriptor::{self, Descriptor},
        status::Status,
    },
};
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering::SeqCst};
use rdma_fabric::{
    Rank,
    control_queue::{Posting, QueueError, QueueId},
};
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

    /// Puts `id`, which may have executable commands, on the list.
    pub(crate) fn released(&self, id: QueueId, work: &mut WorkList<'_>) {
        if !work.push(id) {
            self.hand_over(id);
        }
    }

    /// Works off the list, on which the only queue, if any, is this rank's `queue`.
    #[inline]
    pub(crate) fn finish_own(&self, queue: &View<'_>, mut work: WorkList<'a>) {
        if work.pop().is_some() {
            work.routes = self.queues.routes();
            if queue.is_going() && self.turn_at(queue, &mut work) == TurnEnd::More {
                self.released(queue.id, &mut work);
            }
            self.finish(work);
        }
    }

    /// Works off the list.
    #[inline]
    pub(crate) fn finish(&self, work: WorkList<'a>) {
        if !work.is_empty() {
            self.work_off(work);
        }
    }

    #[inline(never)]
    fn work_off(&self, mut work: WorkList<'a>) {
        if work.routes.is_none() {
            work.routes = self.queues.routes();
        }
        while work.budget != 0 {
            let Some(id) = work.pop() else { return };
            if self.turn(id, &mut work) == TurnEnd::More {
                self.released(id, &mut work);
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

    /// Executes the commands of this rank's `queue`, one of which is due and whose claim the rank holds.
    pub(crate) fn execute_held(&self, queue: &View<'_>) {
        let mut work = WorkList::new();
        work.routes = self.queues.routes();
        let (turns, before) = (queue.turns(), queue.turns().read());
        turns.execute_due(&mut { TURN }, &mut |due| self.step(queue, due, &mut work));
        self.after_turn(queue, before, &mut work);
        self.finish(work);
    }

    /// Executes one command of a session queue, with its claim held.
    fn step(&self, queue: &View<'_>, due: DueCommand, work: &mut WorkList<'_>) -> Attempt {
        death::reach(DeathPoint::Claimed);
        // No command of a lost rank is started (E4).
        if queue.stopped().is_some() || self.job.is_lost(queue.id.rank()) {
            return Attempt::Stop;
        }
        if work.budget == 0 {
            return Attempt::Rest;
        }
        let DueCommand { position, ready, credit, phase } = due;
        let corrupt = |what| {
            queue.stop(Stop::Corrupt(what));
            Attempt::Stop
        };
        if ready > u64::from(queue.geometry.depth) {
            return corrupt("the transmit order queue");
        }
        let first = queue.read_slot(position);
        let Some(slots) = descriptor::slots(&first).filter(|&slots| slots <= ready) else {
            return corrupt("a descriptor");
        };
        if slots > credit {
            return Attempt::Wait;
        }
        if phase != Phase::Past
            && let Some(brief) = descriptor::brief(first)
            && self.step_fast(queue, position, &brief, work)
        {
            death::reach(DeathPoint::Completed);
            return Attempt::Took(slots);
        }
        let second = (slots == 2).then(|| queue.read_slot(position.wrapping_add(1)));
        let Some(posting) = descriptor::decode(&Descriptor { first, second }) else { return corrupt("a descriptor") };
        if phase == Phase::Past {
            self.bury(queue, position);
        } else if self.must_wait(queue, &posting, work) {
            return Attempt::Wait;
        } else {
            self.execute(queue, position, &posting, work);
        }
        death::reach(DeathPoint::Completed);
        Attempt::Took(slots)
    }

    /// Returns whether a command for another node has to wait: only its queue's owner passes it to
    /// the network, with a bounded number of commands in flight. The command continues when the
    /// queue is handed over to its owner, or when a command in flight completes.
    fn must_wait(&self, queue: &View<'_>, posting: &Posting, work: &mut WorkList<'_>) -> bool {
        if !posting.command.target().is_some_and(|to| self.job.is_remote(to.rank())) {
            return false;
        }
        work.leave = queue.owner() != self.me;
        work.leave || self.queues.remote(queue.id).is_some_and(|remote| remote.is_full())
    }

    fn execute(&self, queue: &View<'_>, position: u64, posting: &Posting, work: &mut WorkList<'_>) {
        let performed = self.perform(queue, posting, Some(position), work);
        // So that nothing is reported twice.
        queue.enter(position, Phase::Past);
        let entry = |kept, outcome| TcqEntry { position, kept, status: Status::encode(outcome) };
        let unheard = performed.unheard(posting);
        if let Some(number) = performed.later
            && let Some(remote) = self.queues.remote(queue.id)
        {
            remote.stand_in(position, number);
        }
        match performed.local {
            _ if unheard.is_some() => queue.complete(entry(true, unheard.map_or(Ok(()), Err))),
            local if posting.tcq_notice => queue.complete(entry(false, local)),
            _ => {}
        }
    }

    /// Reports a command whose executor died after the point from which it must not be repeated.
    #[cold]
    fn bury(&self, queue: &View<'_>, position: u64) {
        // Adding the entry is a command's last step, apart from moving to the next command.
        let last = queue.completed().checked_sub(1).map(|number| queue.completion(number));
        if last.is_none_or(|last| last.position != position) {
            let interrupted = QueueError::Interrupted { queue: queue.id, slot: position };
            queue.complete(TcqEntry { position, kept: false, status: Status::encode(Err(interrupted)) });
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
