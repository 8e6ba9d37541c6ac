//! Tables that select the algorithms of collectives.

use core::{fmt, ops::Range};
use rdma_fabric::{Caps, Multicasts};
use std::borrow::Cow;

/// A kind of collective.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Collective {
    /// [`Communicator::barrier`](crate::Communicator::barrier).
    Barrier,
    /// [`Communicator::broadcast`](crate::Communicator::broadcast).
    Broadcast,
    /// [`Communicator::reduce`](crate::Communicator::reduce).
    Reduce,
    /// [`Communicator::allreduce`](crate::Communicator::allreduce).
    Allreduce,
}

impl Collective {
    pub(super) const ALL: [Collective; 4] = [Self::Barrier, Self::Broadcast, Self::Reduce, Self::Allreduce];
}

impl fmt::Display for Collective {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Collective::Barrier => "barrier",
            Collective::Broadcast => "broadcast",
            Collective::Reduce => "reduction",
            Collective::Allreduce => "reduction to all",
        })
    }
}

/// An algorithm for collectives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Algorithm {
    /// Software: messages along a binomial tree. Supports all collectives.
    Tree,
    /// The members' barrier units ([`fabric_offload::barrier::Reduction`]): barriers, and those
    /// reductions of few elements whose results a unit computes exactly.
    Gates,
    /// The network's barrier by colour ([`fabric_offload::barrier::ColourBarrier`]): barriers.
    Colour,
    /// The network's multicast ([`rdma_fabric::MulticastSpan`]): broadcasts.
    Multicast,
    /// Messages up the tree, and multicasts down, to runs of members that each fill a box of the
    /// network: barriers whose members do not fill one together.
    Mixed,
    /// A counter at member 0, by which the last member to arrive releases the others: barriers, and
    /// broadcasts and reductions to all of up to 192 bytes. Longer ones use the tree. For jobs of up to 256
    /// ranks that outnumber the CPUs, in the [world](crate::Fmpl::world); communicators created later use the
    /// tree. Rules that select it apply to all lengths.
    Central,
}

impl Algorithm {
    /// Returns whether this algorithm can execute collectives of a kind.
    pub fn can(self, collective: Collective) -> bool {
        match self {
            Algorithm::Tree => true,
            Algorithm::Gates => collective != Collective::Broadcast,
            Algorithm::Colour | Algorithm::Mixed => collective == Collective::Barrier,
            Algorithm::Multicast => collective == Collective::Broadcast,
            Algorithm::Central => collective != Collective::Reduce,
        }
    }
}

/// How the algorithms of collectives are chosen
/// ([`Options::collectives`](crate::Options::collectives)).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum Choice {
    /// By the [table](Table::measured) that was measured on machines with the fabric's capabilities.
    #[default]
    Measured,
    /// Always software.
    Software,
    /// Always hardware. A collective that no hardware can execute is
    /// [`FmplError::NoHardware`](crate::FmplError::NoHardware).
    Hardware,
    /// By the program's own table.
    By(Table),
}

/// Rules that select the algorithm of collectives by kind, length and number of members. The first
/// rule that applies, and whose algorithm is available to the communicator, determines the choice;
/// if there is none, software is used.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Table {
    rules: Cow<'static, [Rule]>,
}

/// A line of a [`Table`].
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use]
pub struct Rule {
    pub(super) collective: Collective,
    pub(super) algorithm: Algorithm,
    /// The end of each range is exclusive.
    pub(super) members: (usize, usize),
    pub(super) bytes: (usize, usize),
}

impl Rule {
    /// Returns a rule that selects this algorithm for all collectives of a kind.
    pub const fn new(collective: Collective, algorithm: Algorithm) -> Self {
        Rule { collective, algorithm, members: (0, usize::MAX), bytes: (0, usize::MAX) }
    }

    /// Restricts the rule to communicators with a number of members in this range.
    pub const fn members(self, members: Range<usize>) -> Self {
        Rule { members: (members.start, members.end), ..self }
    }

    /// Restricts the rule to collectives with a number of bytes per member in this range. Barriers
    /// count as 0 bytes.
    pub const fn bytes(self, bytes: Range<usize>) -> Self {
        Rule { bytes: (bytes.start, bytes.end), ..self }
    }
}

impl FromIterator<Rule> for Table {
    fn from_iter<I: IntoIterator<Item = Rule>>(rules: I) -> Self {
        Table { rules: rules.into_iter().collect() }
    }
}

/// Machines with a hardware multicast and barriers by colour: the SR8000. Between two members the
/// single put of the tree, into the receiver's buffer, is faster than a multicast and a copy, once
/// the message is so long that the cost of announcing the algorithm is negligible.
const COLOURS: &[Rule] = &[
    Rule::new(Collective::Barrier, Algorithm::Colour).members(2..usize::MAX),
    Rule::new(Collective::Barrier, Algorithm::Mixed).members(3..usize::MAX),
    Rule::new(Collective::Broadcast, Algorithm::Tree).members(2..3).bytes(64 << 10..usize::MAX),
    Rule::new(Collective::Broadcast, Algorithm::Multicast).members(2..usize::MAX),
];

/// Machines with a barrier unit: Tofu2. A reduction that is too long for the unit takes one more
/// round of it, in which members compare their lengths; for two or three members this costs more
/// than the unit saves.
const UNITS: &[Rule] = &[
    Rule::new(Collective::Barrier, Algorithm::Gates).members(2..usize::MAX),
    Rule::new(Collective::Reduce, Algorithm::Gates).members(4..usize::MAX),
    Rule::new(Collective::Allreduce, Algorithm::Gates).members(2..usize::MAX),
];

/// Machines whose ranks outnumber the CPUs: in a tree, a message waits at each member until that member
/// runs.
const OVERSUBSCRIBED: &[Rule] = &[
    Rule::new(Collective::Barrier, Algorithm::Central).members(2..usize::MAX),
    Rule::new(Collective::Broadcast, Algorithm::Central).members(2..usize::MAX),
    Rule::new(Collective::Allreduce, Algorithm::Central).members(2..usize::MAX),
];

/// All collectives that hardware supports.
const HARDWARE: &[Rule] = &[
    Rule::new(Collective::Barrier, Algorithm::Gates),
    Rule::new(Collective::Barrier, Algorithm::Colour),
    Rule::new(Collective::Barrier, Algorithm::Mixed),
    Rule::new(Collective::Broadcast, Algorithm::Multicast),
    Rule::new(Collective::Reduce, Algorithm::Gates),
    Rule::new(Collective::Allreduce, Algorithm::Gates),
];

impl Table {
    const fn of(rules: &'static [Rule]) -> Self {
        Table { rules: Cow::Borrowed(rules) }
    }

    /// Returns the table that was measured for machines with these capabilities
    /// (`cargo xtask collectives`).
    pub const fn measured(caps: &Caps) -> Self {
        match (caps.multicasts, caps.hardware_gates) {
            (Multicasts::Hardware, _) => Self::of(COLOURS),
            (_, true) => Self::of(UNITS),
            (_, false) if caps.oversubscribed => Self::of(OVERSUBSCRIBED),
            (_, false) => Self::of(&[]),
        }
    }

    /// Returns its rules.
    pub fn rules(&self) -> &[Rule] {
        &self.rules
    }

    /// Returns whether a communicator with `members` members may use this algorithm; `None` means
    /// any number.
    pub(crate) fn wants(&self, algorithm: Algorithm, members: Option<usize>) -> bool {
        let applies = |rule: &Rule| members.is_none_or(|members| within(rule.members, members));
        self.rules.iter().any(|rule| rule.algorithm == algorithm && algorithm.can(rule.collective) && applies(rule))
    }
}

impl Choice {
    /// Returns the table that applies on a machine with these capabilities.
    pub fn table(&self, caps: &Caps) -> Table {
        match self {
            Choice::Measured => Table::measured(caps),
            Choice::Software => Table::default(),
            Choice::Hardware => Table::of(HARDWARE),
            Choice::By(table) => table.clone(),
        }
    }
}

pub(super) const fn within((from, to): (usize, usize), value: usize) -> bool {
    from <= value && value < to
}
