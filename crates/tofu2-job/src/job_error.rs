//! The reasons why a job ended without a result, including the waits of the ranks of a deadlocked
//! job.

use crate::BadFault;
use core::fmt;
use rdma_fabric::{FabricError, Rank, RemoteAddr};
use std::{borrow::Cow, error::Error};

/// A job that failed. When several ranks failed, the error names the first one.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JobError {
    /// A rank's program returned an error.
    #[error("{rank} failed: {error}")]
    RankFailed {
        /// The rank.
        rank: Rank,
        /// The error that it returned.
        error: Box<dyn Error + Send + Sync>,
    },
    /// A rank's program panicked.
    #[error("{rank} panicked: {message}")]
    RankPanicked {
        /// The rank.
        rank: Rank,
        /// The panic's message, if it was text.
        message: String,
    },
    /// The ranks are waiting for each other, and nothing else can happen.
    #[error("deadlock at {at}: nothing can happen any more and {waiting} ranks wait, {first} first{}", Lines { stuck, waiting: *waiting })]
    Deadlock {
        /// When the deadlock was found: virtual time, or wall-clock time since the job's start.
        at: rdma_fabric::Time,
        /// The number of ranks that are waiting.
        waiting: usize,
        /// The lowest-numbered waiting rank.
        first: Rank,
        /// The waits of the first sixteen of them, in rank order.
        stuck: Vec<Stuck>,
    },
    /// A rank aborted the job ([`Fabric::abort`](rdma_fabric::Fabric::abort)).
    #[error("{rank} aborted the job with code {code}: {text}")]
    Aborted {
        /// The rank.
        rank: Rank,
        /// Its message; over shared memory the first 1024 bytes of it.
        text: String,
        /// Its exit code; not 0.
        code: i32,
    },
    /// This machine has too little memory for the simulation. (When a *simulated* machine runs out
    /// of memory, the error is [`FabricError::OutOfMemory`].)
    #[error("too little memory for {what}: {needed} bytes are needed, and {limit} leaves {available}")]
    TooLittleMemory {
        /// The purpose of the memory.
        what: String,
        /// Bytes needed: an estimated lower bound.
        needed: u64,
        /// Bytes that are available.
        available: u64,
        /// The limit that leaves this amount.
        limit: Cow<'static, str>,
    },
    /// The job has more ranks than this machine, or a limit of this process, has room for. Nothing
    /// was started.
    #[error(
        "{ranks} ranks need {needed} {what}, and {limit} leaves {available}: start fewer, with smaller segments, or \
         simulate them (the program's option `--fabric virt`)"
    )]
    TooManyRanks {
        /// The number of ranks.
        ranks: usize,
        /// The resource that they need, in the plural: `bytes of memory`, `file descriptors`, ….
        what: &'static str,
        /// The amount needed: an estimated lower bound.
        needed: u64,
        /// The amount available.
        available: u64,
        /// The limit that leaves this amount.
        limit: Cow<'static, str>,
    },
    /// A fault names a node, rank or queue that the job does not have.
    #[error("{0}")]
    Fault(#[from] BadFault),
    /// The job could not be started.
    #[error("{0}")]
    Fabric(#[from] FabricError),
}

impl JobError {
    /// Returns the exit code of a command that ran this job: that of the rank that aborted it, if
    /// one did and its code is one that processes can have (1 to 255); otherwise 1.
    pub fn exit_code(&self) -> u8 {
        match self {
            JobError::Aborted { code, .. } => u8::try_from(*code).unwrap_or(1).max(1),
            _ => 1,
        }
    }
}

/// A rank that waits forever, and the event it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Stuck {
    /// The rank.
    pub rank: Rank,
    /// The event that it waits for.
    pub awaited: Awaited,
    /// The number of the rank's other waits: those begun by futures that it polls together with
    /// this one.
    pub others: usize,
    /// The ranks that the wait depends on, where known.
    pub whom: Option<Whom>,
}

/// The event that a wait waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Awaited {
    /// A write to the word at this address in the rank's own memory.
    Word(RemoteAddr),
    /// A notice.
    Notice,
    /// A completion, a notice or room in one of the rank's own control queues.
    Queue,
    /// The end of a barrier-gate operation.
    Gate,
    /// Room in the notice queue of this rank.
    Room(Rank),
    /// The other ranks, not all of which have reached an allocation of symmetric memory.
    Allocation,
    /// Something else: a flush, room in one of the rank's own queues, or time.
    Other,
}

/// The ranks that a wait depends on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Whom {
    /// Every other rank.
    Everybody,
    /// This rank.
    One(Rank),
    /// This many ranks.
    Several(usize),
}

impl Stuck {
    /// The maximum number of ranks that an error lists: a complete list of a large job would be too
    /// long to read.
    #[doc(hidden)]
    pub const TOLD: usize = 16;

    /// Creates it from its parts.
    #[doc(hidden)]
    pub fn new(rank: Rank, awaited: Awaited, others: usize, whom: Option<Whom>) -> Self {
        Stuck { rank, awaited, others, whom }
    }
}

impl fmt::Display for Stuck {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Stuck { rank, awaited, .. } = self;
        match self.whom {
            None => write!(f, "{rank} waits for {awaited}")?,
            Some(Whom::Everybody) => write!(f, "{rank} waits for any rank ({awaited})")?,
            Some(Whom::One(peer)) => write!(f, "{rank} waits for {peer} ({awaited})")?,
            Some(Whom::Several(ranks)) => write!(f, "{rank} waits for any of {ranks} ranks ({awaited})")?,
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

/// The ranks of a deadlock, one per line.
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
