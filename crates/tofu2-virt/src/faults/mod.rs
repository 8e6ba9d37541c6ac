//! Faults of a simulated machine: their kinds, times and places.
//!
//! A [`Fault`] is a time and a kind of fault that begins then. A job takes a [list of
//! them](Faults), either written down or [drawn](Faults::drawn) from a seed. The list is text, one
//! line per fault, and a run can be replayed from the job and the list alone. Faults are events
//! like any other: they are part of the trace hash, and a timeline marks them.
//!
//! # Effects
//! * [`FaultKind::NodeStop`]: the node's ranks are lost, regardless of their current activity.
//!   Messages that have left the node but not arrived never arrive, since the loss is known
//!   immediately.
//! * [`FaultKind::LinkSlow`], [`FaultKind::LinkDown`]: messages from one node to another take
//!   longer, or wait until the link is up again. Messages keep their order. (The nodes are the two
//!   *ends*, regardless of the route between them: the latency model has no links.)
//! * [`FaultKind::MrqOverflow`]: the next notice for any control queue of the rank finds the MRQ
//!   full.
//! * [`FaultKind::LateCompletion`]: the rank's next completion in a TCQ is late.
//! * [`FaultKind::LateCredit`]: the next advance of a session offset of the rank is late, but the
//!   put's bytes and notice are not. A delay without end is a stall.
//! * [`FaultKind::QueueStall`]: a control queue's commands start later, so that those of other
//!   queues overtake them.
//! * [`FaultKind::PartialPut`]: the first half of the next long put to the rank becomes visible
//!   while the rest is still in flight. Puts in strong order are exempt: their bytes would be
//!   visible before those that they must follow.
//!
//! "The next" is the first one after the fault's time. A fault that nothing matches has no effect;
//! [`FaultReport`] lists these.

#![deny(clippy::arithmetic_side_effects)]

mod drawn;
mod injector;
mod text;

pub use drawn::Odds;
pub(super) use injector::{Injector, LateCredit, Struck};
pub use tofu2_job::BadFault;

use rdma_fabric::Time;
use std::time::Duration;

/// The kind of a fault. Ranks and nodes are given by their numbers in the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// A node stops.
    NodeStop {
        /// The node.
        node: u32,
    },
    /// Messages from one node to another take `extra` longer, for a time.
    LinkSlow {
        /// The sending node.
        from: u32,
        /// The receiving node.
        to: u32,
        /// The extra time that each message takes.
        extra: Duration,
        /// How long the fault lasts.
        lasts: Duration,
    },
    /// Messages from one node to another wait until the link is up again.
    LinkDown {
        /// The sending node.
        from: u32,
        /// The receiving node.
        to: u32,
        /// How long the fault lasts.
        lasts: Duration,
    },
    /// The next notice overflows an MRQ.
    MrqOverflow {
        /// The rank that it affects.
        rank: u32,
    },
    /// The next completion in a TCQ is late.
    LateCompletion {
        /// The rank that it affects.
        rank: u32,
        /// The delay.
        by: Duration,
    },
    /// The next advance of a session offset is late.
    LateCredit {
        /// The rank that it affects.
        rank: u32,
        /// The delay.
        by: Duration,
    },
    /// A control queue's commands start no earlier than the end of the stall.
    QueueStall {
        /// The rank that it affects.
        rank: u32,
        /// The control queue's engine.
        engine: u8,
        /// The control queue's number on that engine.
        number: u8,
        /// How long the fault lasts.
        lasts: Duration,
    },
    /// The first half of the next long put becomes visible early.
    PartialPut {
        /// The put's target.
        rank: u32,
    },
}

/// A fault that begins at a given time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The time at which the fault begins.
    pub at: Time,
    /// The kind of the fault.
    pub kind: FaultKind,
}

/// The faults of a run, in time order, each with its line number if it comes from a text.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>, Vec<Option<usize>>);

impl PartialEq for Faults {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Faults {}

impl Faults {
    /// Creates a list of faults, sorted by time.
    pub fn new(faults: Vec<Fault>) -> Self {
        Self::of_lines(faults.into_iter().map(|fault| (fault, None)).collect())
    }

    fn of_lines(mut faults: Vec<(Fault, Option<usize>)>) -> Self {
        faults.sort_by_key(|(fault, _)| fault.at);
        let (faults, lines) = faults.into_iter().unzip();
        Faults(faults, lines)
    }

    /// Returns the faults.
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// Returns the faults without the one at `index`, to find out which of them have an effect.
    #[must_use]
    pub fn without(&self, index: usize) -> Self {
        let mut rest = self.clone();
        if index < rest.0.len() {
            rest.0.remove(index);
            rest.1.remove(index);
        }
        rest
    }
}

/// The faults of a run, and whether each had an effect.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultReport {
    /// All faults of the job. Passing their text to [`super::Job::faults`] again replays the run.
    pub faults: Faults,
    /// Whether each fault had an effect, in the same order.
    pub struck: Vec<bool>,
}

/// The numbers of nodes, ranks and queues of a job that a fault can refer to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) ranks: u32,
    pub(super) nodes: u32,
    /// Engines of each node.
    pub(super) engines: u32,
    /// Control queues of each engine.
    pub(super) queues: u32,
}

impl Limits {
    /// Returns the item that `kind` refers to but the job does not have: its name, its number, and
    /// the number of such items in the job.
    fn missing(&self, kind: FaultKind) -> Option<(&'static str, u128, u32)> {
        let named = kind.in_words().1.into_iter().filter_map(|(key, number)| match key {
            "rank" => Some(("rank", number, self.ranks)),
            "node" | "from" | "to" => Some(("node", number, self.nodes)),
            "engine" => Some(("engine", number, self.engines)),
            "number" => Some(("queue", number, self.queues)),
            _ => None,
        });
        named.into_iter().find(|(_, number, there)| *number >= u128::from(*there))
    }
}

impl Faults {
    /// Checks that the job has all items that the faults refer to.
    ///
    /// # Errors
    /// The first fault that refers to another item.
    pub(super) fn check(&self, limits: Limits) -> Result<(), BadFault> {
        for (fault, &number) in self.0.iter().zip(&self.1) {
            if let Some((what, named, there)) = limits.missing(fault.kind) {
                let problem = match there {
                    1 => format!("there is no {what} {named}, only {what} 0"),
                    there => format!("there is no {what} {named}, only 0 to {}", there.saturating_sub(1)),
                };
                return Err(BadFault { number, line: fault.to_string(), problem });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_job_has_not_is_named_with_its_line() {
        let limits = Limits { ranks: 8, nodes: 4, engines: 4, queues: 12 };
        for (line, problem) in [
            ("5 node-stop node=4", "there is no node 4, only 0 to 3"),
            ("5 link-down from=0 to=9 lasts=1", "there is no node 9, only 0 to 3"),
            ("5 link-slow from=4 to=0 extra=1 lasts=1", "there is no node 4, only 0 to 3"),
            ("5 mrq-overflow rank=8", "there is no rank 8, only 0 to 7"),
            ("5 late-completion rank=8 by=1", "there is no rank 8, only 0 to 7"),
            ("5 late-credit rank=8 by=1", "there is no rank 8, only 0 to 7"),
            ("5 partial-put rank=4000000000", "there is no rank 4000000000, only 0 to 7"),
            ("5 queue-stall rank=8 engine=0 number=0 lasts=1", "there is no rank 8, only 0 to 7"),
            ("5 queue-stall rank=0 engine=4 number=0 lasts=1", "there is no engine 4, only 0 to 3"),
            ("5 queue-stall rank=0 engine=0 number=12 lasts=1", "there is no queue 12, only 0 to 11"),
        ] {
            // Preceded by a fault that is later and valid.
            let faults: Faults = format!("9 node-stop node=3\n\n{line}\n").parse().unwrap();
            let error = faults.check(limits).unwrap_err();
            assert_eq!((error.number, error.problem.as_str()), (Some(3), problem), "{line}");
            assert_eq!(error.line.replacen(".000", "", 1), line);
        }
        assert_eq!(Faults::drawn(1, &Odds::new(8, 2)).check(limits), Ok(()));
        let alone = Limits { ranks: 1, nodes: 1, ..limits };
        let error = "1 partial-put rank=1".parse::<Faults>().unwrap().check(alone).unwrap_err();
        assert_eq!(error.problem, "there is no rank 1, only rank 0");
    }
}
