//! What there is to do for control queues and gates when messages have come or operations are over.
//!
//! To do it may execute commands and gates in turn, whose effects go to other nodes. So nothing of this
//! is done while the lock of the rank's share is held: it is noted as [`Arrival`]s, and worked on, in
//! their order and by one thread at a time, when the lock was given back.

use super::{
    commands::Bench,
    core::Core,
    flight::{Flight, Job, Moved},
    message::{Answer, Head},
    net::Net,
    outbox::answer_tag,
};
use rdma_fabric::Rank;
use std::{
    collections::BTreeSet,
    sync::{MutexGuard, PoisonError, TryLockError},
};
use tofu2_sim::shm::part::{FarCommand, FarReply};

/// Something to do.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A message with a command.
    Command { head: Head, bytes: Vec<u8> },
    /// The bytes of a command were moved, or never will be.
    Moved { moved: Box<Moved>, arrived: bool },
    /// A command of this rank is over: what its target replied, if it did.
    Replied { command: Box<FarCommand>, reply: Option<FarReply> },
    /// A message with news of a gate.
    Gate { head: Head, news: Vec<u8> },
}

impl Arrival {
    /// Returns the rank of another node that wants something done.
    fn asker(&self) -> Option<u32> {
        match self {
            Arrival::Command { head, .. } | Arrival::Gate { head, .. } => Some(head.from),
            Arrival::Moved { .. } | Arrival::Replied { .. } => None,
        }
    }
}

impl Core {
    /// Notes what there is to do now that a flight has ended.
    pub(super) fn ended(&mut self, flight: Flight) {
        let good = matches!(flight.outcome, Some(Ok(_)));
        match flight.job {
            Job::Command(command) => {
                let reply = FarReply::from_bytes(&flight.bytes).filter(|_| good);
                self.arrivals.push_back(Arrival::Replied { command, reply });
            }
            Job::Move(moved) => self.arrivals.push_back(Arrival::Moved { moved, arrived: good }),
            _ => {}
        }
    }

    /// Drops what lost ranks wanted done and was not begun.
    pub(super) fn drop_arrivals(&mut self, lost: &BTreeSet<u32>) {
        self.arrivals.retain(|arrival| arrival.asker().is_none_or(|asker| !lost.contains(&asker)));
    }
}

impl Net {
    fn bench(&self) -> Option<MutexGuard<'_, Bench>> {
        match self.bench.try_lock() {
            Ok(bench) => Some(bench),
            Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }

    /// Works on all arrivals, unless a thread does. That one looks again after it has given the
    /// bench back, so none is forgotten.
    pub(super) fn work_on_arrivals(&self) {
        while let Some(mut bench) = self.bench() {
            let arrivals = core::mem::take(&mut self.lock().core.arrivals);
            for arrival in arrivals {
                match arrival {
                    Arrival::Command { head, bytes } => bench.command(self, head, &bytes),
                    Arrival::Moved { moved, arrived } => bench.moved(self, &moved, arrived),
                    Arrival::Replied { command, reply } => {
                        let reply = reply.unwrap_or_else(|| FarReply::lost(&command));
                        self.part.replied(&command, &reply);
                    }
                    Arrival::Gate { head, news } => self.reply(&head, Answer::Good, self.hear_gate(&head, &news)),
                }
            }
            drop(bench);
            if self.lock().core.arrivals.is_empty() {
                return;
            }
        }
    }

    /// Sees to it that nothing that lost ranks wanted done takes effect any more.
    pub(super) fn forget_arrivals(&self, lost: &[Rank]) {
        let lost: BTreeSet<u32> = lost.iter().map(|rank| rank.number()).collect();
        // Waits for what is being done at this moment.
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().core.drop_arrivals(&lost);
        bench.forget(&lost);
    }

    /// Answers a message.
    pub(super) fn reply(&self, head: &Head, answer: Answer, bytes: Vec<u8>) {
        self.with(|state| {
            let core = &mut state.core;
            core.send_soon(head.from, answer_tag(head.from), head.answer(core.me, answer, 0, 0), bytes);
            state.flush_outbox();
        });
    }
}
