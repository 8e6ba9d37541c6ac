//! Deferred work of control queues and gates, due after a message has arrived or an operation has
//! completed.
//!
//! This work may in turn execute commands and gates whose effects go to other nodes, so it is never
//! done while the lock of the rank's state is held. It is queued as [`Arrival`]s, which are
//! processed in order and by one thread at a time, after the lock has been released.

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
use tofu2_shm::part::{RemoteCommand, RemoteReply};

/// An item of deferred work.
#[derive(Debug)]
pub(super) enum Arrival {
    /// A message with a command.
    Command { head: Head, bytes: Vec<u8> },
    /// The bytes of a command have been moved, or can no longer be moved.
    Moved { moved: Box<Moved>, arrived: bool },
    /// A command of this rank has completed; `reply` is the answer of its target, if there was one.
    Replied { command: Box<RemoteCommand>, reply: Option<RemoteReply> },
    /// A message with updates of a gate.
    Gate { head: Head, news: Vec<u8> },
}

impl Arrival {
    /// Returns the rank of another node that requested the work.
    fn requester(&self) -> Option<u32> {
        match self {
            Arrival::Command { head, .. } | Arrival::Gate { head, .. } => Some(head.from),
            Arrival::Moved { .. } | Arrival::Replied { .. } => None,
        }
    }
}

impl Core {
    /// Queues the work that is due after a flight has ended.
    pub(super) fn ended(&mut self, flight: Flight) {
        let good = matches!(flight.outcome, Some(Ok(_)));
        match flight.job {
            Job::Command(command) => {
                let reply = RemoteReply::from_bytes(&flight.bytes).filter(|_| good);
                self.arrivals.push_back(Arrival::Replied { command, reply });
            }
            Job::Move(moved) => self.arrivals.push_back(Arrival::Moved { moved, arrived: good }),
            _ => {}
        }
    }

    /// Drops the work of lost ranks that has not begun.
    pub(super) fn drop_arrivals(&mut self, lost: &BTreeSet<u32>) {
        self.arrivals.retain(|arrival| arrival.requester().is_none_or(|requester| !lost.contains(&requester)));
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

    /// Processes all arrivals, unless another thread does. That thread checks again after it has
    /// released the bench, so no arrival is missed.
    pub(super) fn work_on_arrivals(&self) {
        while let Some(mut bench) = self.bench() {
            let arrivals = core::mem::take(&mut self.lock().core.arrivals);
            for arrival in arrivals {
                match arrival {
                    Arrival::Command { head, bytes } => bench.command(self, head, &bytes),
                    Arrival::Moved { moved, arrived } => bench.moved(self, &moved, arrived),
                    Arrival::Replied { command, reply } => {
                        let reply = reply.unwrap_or_else(|| RemoteReply::lost(&command));
                        self.part.replied(&command, &reply);
                    }
                    Arrival::Gate { head, news } => {
                        self.reply(&head, Answer::Good, self.receive_gate_update(&head, &news))
                    }
                }
            }
            drop(bench);
            if self.lock().core.arrivals.is_empty() {
                return;
            }
        }
    }

    /// Ensures that no further work of lost ranks takes effect.
    pub(super) fn forget_arrivals(&self, lost: &[Rank]) {
        let lost: BTreeSet<u32> = lost.iter().map(|rank| rank.number()).collect();
        // Waits for work in progress.
        let mut bench = self.bench.lock().unwrap_or_else(PoisonError::into_inner);
        self.lock().core.drop_arrivals(&lost);
        bench.forget(&lost);
    }

    /// Sends the answer to a message.
    pub(super) fn reply(&self, head: &Head, answer: Answer, bytes: Vec<u8>) {
        self.with(|state| {
            let core = &mut state.core;
            core.send_soon(head.from, answer_tag(head.from), head.answer(core.me, answer, 0, 0), bytes);
            state.flush_outbox();
        });
    }
}
