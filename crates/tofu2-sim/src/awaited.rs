//! What ranks wait for in a job in which nothing can happen any more.

use core::fmt;
use rdma_fabric::{Rank, RemoteAddr};

/// A rank that nobody will wake, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// Which rank.
    pub rank: Rank,
    /// What its wait is for.
    pub awaited: Awaited,
    /// Waits of the rank beside this one, which other futures that it polls together with it began.
    pub others: usize,
    /// Whom the wait depends on, where that is known.
    pub whom: Option<Whom>,
}

/// What a wait is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// A write to the word of the rank's own memory that begins here.
    Word(RemoteAddr),
    /// A notice.
    Notice,
    /// A completion, a notice or room of an own control queue.
    Queue,
    /// The end of an operation of barrier gates.
    Gate,
    /// Room in the notice queue of this rank.
    Room(Rank),
    /// The others, who have not all come to an allocation of symmetric memory.
    Allocation,
    /// Something else: a flush, room in an own queue, time.
    Other,
}

/// Whom a wait depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whom {
    /// Every other rank.
    Everybody,
    /// This rank.
    One(Rank),
    /// So many ranks.
    Several(usize),
}

impl Stuck {
    /// Ranks that are told by name. So many ranks may wait that nobody would read them all.
    pub(crate) const TOLD: usize = 16;
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} waits for {}", self.rank, self.awaited)?;
        match self.whom {
            None => {}
            Some(Whom::Everybody) => write!(f, ", which any rank may end")?,
            Some(Whom::One(rank)) => write!(f, ", which {rank} may end")?,
            Some(Whom::Several(ranks)) => write!(f, ", which any of {ranks} ranks may end")?,
        }
        match self.others {
            0 => Ok(()),
            others => write!(f, "; and for {others} more"),
        }
    }
}

impl fmt::Display for Awaited {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Awaited::Word(RemoteAddr { region, offset, .. }) => {
                write!(f, "the word at byte {offset} of its {region:?}")
            }
            Awaited::Notice => write!(f, "a notice"),
            Awaited::Queue => write!(f, "a control queue"),
            Awaited::Gate => write!(f, "a barrier gate"),
            Awaited::Room(rank) => write!(f, "room in the notice queue of {rank}"),
            Awaited::Allocation => write!(f, "the others to allocate symmetric memory"),
            Awaited::Other => write!(f, "something that is no word and no notice"),
        }
    }
}

/// The ranks of a deadlock, a line each.
pub(crate) struct Lines<'a> {
    pub(crate) stuck: &'a [Stuck],
    pub(crate) waiting: usize,
}

impl fmt::Display for Lines<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.stuck.iter().try_for_each(|stuck| write!(f, "\n  {stuck}"))?;
        match self.waiting.saturating_sub(self.stuck.len()) {
            0 => Ok(()),
            more => write!(f, "\n  and {more} more ranks wait"),
        }
    }
}
