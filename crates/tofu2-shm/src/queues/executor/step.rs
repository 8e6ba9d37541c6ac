//! Execution of one command of a session queue.

use super::{Executor, WorkList};
use crate::queues::{
    claim::{Attempt, DueCommand, Phase},
    config::Stop,
    death::{self, DeathPoint},
    format::{
        descriptor::{self, Descriptor, Payload, SLOT},
        status::Status,
    },
    view::{TcqEntry, View},
};
use rdma_fabric::control_queue::{Posting, QueueError};

impl Executor<'_> {
    /// Executes one command of a session queue, with its claim held.
    #[inline]
    pub(super) fn step(&self, queue: &View<'_>, due: DueCommand, work: &mut WorkList<'_>) -> Attempt {
        death::reach(DeathPoint::Claimed);
        // No command of a lost rank is started (E4).
        if !queue.is_going() || queue.is_lost() {
            return Attempt::Stop;
        }
        if work.budget == 0 {
            return Attempt::Rest;
        }
        let DueCommand { position, ready, phase, .. } = due;
        if ready > u64::from(queue.geometry.depth) {
            queue.stop(Stop::Corrupt("the transmit order queue"));
            return Attempt::Stop;
        }
        let first = queue.read_slot(position);
        // Of one slot, for which there is credit.
        if phase != Phase::Past && self.step_known(queue, position, first, work) {
            death::reach(DeathPoint::Completed);
            return Attempt::Took(1);
        }
        self.step_unknown(queue, due, first, work)
    }

    /// Executes a command as [`Executor::step`] does, of which `first` is the first slot.
    #[inline(never)]
    fn step_unknown(
        &self,
        queue: &View<'_>,
        DueCommand { position, ready, credit, phase }: DueCommand,
        first: [u64; SLOT],
        work: &mut WorkList<'_>,
    ) -> Attempt {
        let corrupt = |what| {
            queue.stop(Stop::Corrupt(what));
            Attempt::Stop
        };
        let Some(slots) = descriptor::slots(&first).filter(|&slots| slots <= ready) else {
            return corrupt("a descriptor");
        };
        if slots > credit {
            return Attempt::Wait;
        }
        if phase != Phase::Past
            && let Some(brief) = descriptor::brief(first)
        {
            if let (true, Some(cached)) = (brief.payload != Payload::Nothing, work.cached.as_deref_mut()) {
                cached.known.remember(self.job, queue, first, &brief);
            }
            if self.step_fast(queue, position, &brief, work) {
                death::reach(DeathPoint::Completed);
                return Attempt::Took(slots);
            }
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
