//! Faults: what can go wrong in a simulated machine, when, and to whom.
//!
//! A [`Fault`] is a time and what happens from then on. A job gets a [list of them](Faults), written down or [drawn](Faults::drawn) from a
//! seed; the list is a text, one line per fault, and a run is replayed from the job and the list alone. Faults are events like any other,
//! so they are part of the trace hash, and a timeline marks them.
//!
//! # What they do
//! * [`FaultKind::NodeStop`]: the node's ranks are lost in the middle of whatever they do. What has left the node and not arrived
//!   never does, since the loss is known at once.
//! * [`FaultKind::LinkSlow`], [`FaultKind::LinkDown`]: whatever goes from one node to another takes longer, or waits until the link is up again. Order on
//!   the way is kept. (Between *ends*, whatever the route: the latency model has no links.)
//! * [`FaultKind::MrqOverflow`]: the next notice for any control queue of the rank finds the MRQ full.
//! * [`FaultKind::LateCompletion`]: the rank's next completion in a TCQ comes late.
//! * [`FaultKind::LateCredit`]: the next advance of a session offset of the rank happens late, bytes and notice do not. For ever is a stall.
//! * [`FaultKind::QueueStall`]: a control queue's commands start later, so that those of other queues overtake them.
//! * [`FaultKind::PartialPut`]: the first half of the next long put for the rank is seen while the rest is still on its way. Not of puts
//!   in strong order, whose bytes would be seen before what comes first.
//!
//! "The next" is the first after the fault's time. A fault that finds nothing to disturb does nothing; [`FaultReport`] tells.

mod apply;
mod check;
mod drawn;
mod text;

pub(super) use check::Limits;
pub use drawn::Odds;
pub use text::BadFault;

use rdma_fabric::Time;
use std::{collections::VecDeque, time::Duration};

/// What goes wrong. Ranks and nodes are numbers of the job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum FaultKind {
    /// A node stops.
    NodeStop {
        /// Which.
        node: u32,
    },
    /// What goes from one node to another takes `extra` longer, for a time.
    LinkSlow {
        /// Where it comes from.
        from: u32,
        /// Where it goes.
        to: u32,
        /// How much longer each message takes.
        extra: Duration,
        /// For how long.
        lasts: Duration,
    },
    /// What goes from one node to another waits until the link is up again.
    LinkDown {
        /// Where it comes from.
        from: u32,
        /// Where it goes.
        to: u32,
        /// For how long.
        lasts: Duration,
    },
    /// The next notice overflows an MRQ.
    MrqOverflow {
        /// Whose.
        rank: u32,
    },
    /// The next completion in a TCQ is late.
    LateCompletion {
        /// Whose.
        rank: u32,
        /// By how much.
        by: Duration,
    },
    /// The next advance of a session offset is late.
    LateCredit {
        /// Whose.
        rank: u32,
        /// By how much.
        by: Duration,
    },
    /// A control queue's commands start no earlier than the end of the stall.
    QueueStall {
        /// Whose.
        rank: u32,
        /// Its engine.
        engine: u8,
        /// Its number there.
        number: u8,
        /// For how long.
        lasts: Duration,
    },
    /// The first half of the next long put is seen early.
    PartialPut {
        /// At which rank.
        rank: u32,
    },
}

/// Something that goes wrong at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fault {
    /// From when on.
    pub at: Time,
    /// What.
    pub kind: FaultKind,
}

/// The faults of a run, in the order of their times.
#[derive(Clone, Debug, Default)]
pub struct Faults(Vec<Fault>, Lines);

/// Of each fault, the number of its line in the text it comes from.
type Lines = Vec<Option<usize>>;

impl PartialEq for Faults {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl Eq for Faults {}

impl Faults {
    /// These.
    pub fn new(faults: Vec<Fault>) -> Self {
        Self::of_lines(faults.into_iter().map(|fault| (fault, None)).collect())
    }

    fn of_lines(mut faults: Vec<(Fault, Option<usize>)>) -> Self {
        faults.sort_by_key(|(fault, _)| fault.at);
        let (faults, lines) = faults.into_iter().unzip();
        Faults(faults, lines)
    }

    /// The faults.
    pub fn as_slice(&self) -> &[Fault] {
        &self.0
    }

    /// Without the one at `index`: to find out which of them matters.
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

/// What became of a run's faults.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FaultReport {
    /// All that the job had. Its text, given to [`super::Job::faults`] again, replays the run.
    pub faults: Faults,
    /// Of each, whether it disturbed anything.
    pub struck: Vec<bool>,
}

/// The machine's view of its faults.
#[derive(Debug, Default)]
pub(super) struct Trouble {
    faults: Vec<Fault>,
    struck: Vec<bool>,
    /// Links that are slow or down, with the fault's index.
    links: Vec<(usize, Link)>,
    /// Queues that start later.
    stalls: Vec<(usize, Stall)>,
    /// Faults that wait for the first thing they fit.
    armed: VecDeque<(usize, FaultKind)>,
    /// Advances that are late: the queue's slot and generation, and by how much it will move.
    credits: Vec<(u32, u32, u8)>,
    /// Nodes that have stopped and whose ranks are still to be ended.
    pub(super) stopped: Vec<u32>,
}

#[derive(Clone, Copy, Debug)]
struct Link {
    from: u32,
    to: u32,
    /// Picoseconds.
    until: u64,
    /// `None`: down.
    extra: Option<u64>,
    /// When the last message that this link held back arrives.
    last: u64,
}

#[derive(Clone, Copy, Debug)]
struct Stall {
    rank: u32,
    engine: u8,
    number: u8,
    until: u64,
}

impl Trouble {
    pub(super) fn new(faults: &Faults) -> Self {
        Trouble { faults: faults.0.clone(), struck: vec![false; faults.0.len()], ..Trouble::default() }
    }

    /// When each fault begins.
    pub(super) fn times(&self) -> impl Iterator<Item = u64> + '_ {
        self.faults.iter().map(|fault| fault.at.as_picos())
    }

    pub(super) fn report(self) -> FaultReport {
        FaultReport { faults: Faults::new(self.faults), struck: self.struck }
    }

    /// Takes the first armed fault that `fits`.
    fn take<T>(&mut self, fits: impl Fn(FaultKind) -> Option<T>) -> Option<T> {
        let (place, found) = self.armed.iter().enumerate().find_map(|(i, (_, kind))| Some((i, fits(*kind)?)))?;
        let (index, _) = self.armed.remove(place)?;
        self.struck[index] = true;
        Some(found)
    }
}

/// A duration in picoseconds.
fn picos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX / 4)
}
