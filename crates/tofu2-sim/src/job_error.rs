//! Why a job ended without a result, and what its ranks waited for if nothing could happen any
//! more.

use crate::virt::BadFault;
use core::fmt;
use rdma_fabric::{FabricError, Rank, RemoteAddr};
use std::error::Error;

/// A job that did not end well. When several ranks failed, the first one is named.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A rank's program returned an error.
    #[error("{rank} failed: {error}")]
    RankFailed {
        /// Which rank.
        rank: Rank,
        /// What it returned.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A rank's program panicked.
    #[error("{rank} panicked: {message}")]
    RankPanicked {
        /// Which rank.
        rank: Rank,
        /// The panic's message, if it was text.
        message: String,
    },
    /// The ranks wait for each other and nothing else will happen.
    #[error("deadlock at {at}: nothing can happen any more and {waiting} ranks wait, {first} first{}", Lines { stuck, waiting: *waiting })]
    Deadlock {
        /// When that was found: virtual time, or since the job's start.
        at: rdma_fabric::Time,
        /// How many ranks wait.
        waiting: usize,
        /// The lowest of them.
        first: Rank,
        /// What they wait for; of the first sixteen, in rank order.
        stuck: Vec<Stuck>,
    },
    /// This machine has too little memory for the simulation. (A simulated machine's is
    /// [`FabricError::OutOfMemory`].)
    #[error("too little memory for {what}: {needed} bytes are needed and {available} can be had")]
    TooLittleMemory {
        /// What for.
        what: String,
        /// Bytes needed. An estimate, of what is needed at least.
        needed: u64,
        /// Bytes that the system says can be had.
        available: u64,
    },
    /// A fault is of a node, rank or queue that the job hasn't.
    #[error(transparent)]
    Fault(#[from] BadFault),
    /// The job could not be started.
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

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
    /// The most ranks that are listed: a job may have more than anybody would read.
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
struct Lines<'a> {
    stuck: &'a [Stuck],
    waiting: usize,
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
