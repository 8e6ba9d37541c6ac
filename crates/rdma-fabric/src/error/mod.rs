//! The one error type of the fabric layer: [`FabricError`], and the details of its larger variants.

use crate::{
    Rank, RegionKey, RemoteAddr,
    provider::{
        barrier::{ColourError, GateError},
        control_queue::QueueError,
    },
};

mod class;
mod details;

pub use class::ErrorClass;
pub use details::{
    BlocksError, CellWidth, CrossCopy, LengthMismatch, Misaligned, Mismatch, MulticastError, NoAtomics, NoAtomicsCause,
    OutOfBounds, OutOfMachineMemory, OutOfMemory, Setting,
};

/// A static text behind a thin pointer, written `&"control queues"`. It takes half the size of a
/// `&'static str`, so that an error that holds one stays small.
pub type Literal = &'static &'static str;

/// The error of a fabric call that was refused or failed. Each variant carries the numbers needed
/// to find the cause; [`FabricError::class`] groups them.
///
/// It is two words in size: a larger error would cost every call that succeeds. Details that don't
/// fit are boxed; they are converted to a `FabricError` by `From`.
///
/// ```
/// use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr, error::OutOfBounds};
///
/// let addr = RemoteAddr { rank: Rank::new(3), region: RegionKey { index: 1, generation: 1 }, offset: 8 };
/// let error = FabricError::from(OutOfBounds { addr, len: 8, region_len: 8 });
/// assert_eq!(error.to_string(), "bytes 8..16 of region 1.1 of rank 3 are outside its 8 bytes");
/// assert!(matches!(error, FabricError::OutOfBounds(outside) if outside.addr == addr));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A rank that the operation or wait depends on died, panicked or returned an error.
    #[error("{rank} was lost")]
    PeerLost {
        /// The lost rank.
        rank: Rank,
    },
    /// A [helper](crate::Fabric::helper) of this rank returned an error or panicked, so that this
    /// rank is about to be lost.
    #[error("a helper of {rank} failed, so the rank ends")]
    HelperFailed {
        /// This rank.
        rank: Rank,
    },
    /// A rank has ended the whole job ([`crate::Fabric::abort`]).
    #[error("{rank} aborted the job with code {code}")]
    Aborted {
        /// The rank that called it.
        rank: Rank,
        /// The code that it gave.
        code: i32,
    },
    /// Every rank that could have ended this wait has finished its program.
    #[error("the wait can never end: every rank it depends on has finished")]
    PeersLeft,
    /// A member of a group has finished its program without entering a collective of the group,
    /// which can therefore no longer be completed.
    #[error("{rank} has finished without taking part: the group can no longer complete this operation")]
    MemberLeft {
        /// The member that has left.
        rank: Rank,
    },
    /// The job can make no progress: no event can end this wait.
    #[error("deadlock: nothing can happen any more and {waiting} ranks wait")]
    Deadlock {
        /// The number of ranks that wait.
        waiting: usize,
    },
    /// There is no such rank.
    #[error("{rank} does not exist: the job has ranks 0 to {last}", last = .ranks.saturating_sub(1))]
    NoSuchRank {
        /// The rank asked for.
        rank: Rank,
        /// The number of ranks.
        ranks: usize,
    },
    /// The rank named is not a member of the group.
    #[error("{rank} is none of the group's {members} members")]
    NotInGroup {
        /// The rank named.
        rank: Rank,
        /// Members of the group.
        members: usize,
    },
    /// The rank never registered such a region.
    #[error("{rank} has no {region:?}")]
    NoSuchRegion {
        /// The supposed owner.
        rank: Rank,
        /// The key used.
        region: RegionKey,
    },
    /// The region was deregistered.
    #[error("{region:?} of {rank} was deregistered")]
    StaleRegion {
        /// The former owner.
        rank: Rank,
        /// The key used.
        region: RegionKey,
    },
    /// The region has no key: it is accessible only through the capability with which it was
    /// allocated ([`crate::Fabric::protected`]).
    #[error(
        "{region:?} of {rank} is protected: it has no key and is accessible only through the handle that allocated it"
    )]
    Locked {
        /// The owner.
        rank: Rank,
        /// The key used.
        region: RegionKey,
    },
    /// The rank's part of a locked region has no address in this process: it is accessible only by
    /// copies.
    #[error("{region:?} of {rank} is not mapped here: use get and put")]
    NotMapped {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
    },
    /// The range is not inside the region.
    #[error(transparent)]
    OutOfBounds(Box<OutOfBounds>),
    /// The address is not a multiple of the alignment of the element type.
    #[error(transparent)]
    Misaligned(Box<Misaligned>),
    /// This build accesses shared memory in cells of a different width (portable access, Miri).
    #[error(transparent)]
    CellWidth(Box<CellWidth>),
    /// The memory was registered for transfers only, and is accessed by copies of the operating
    /// system; or the network has no atomics ([`crate::Caps::atomics`]).
    #[error(transparent)]
    NoAtomics(Box<NoAtomics>),
    /// The system can't copy between this process and a peer's registered memory.
    #[error(transparent)]
    CrossCopy(Box<CrossCopy>),
    /// Source and destination have different lengths.
    #[error(transparent)]
    LengthMismatch(Box<LengthMismatch>),
    /// The blocks of a put are invalid.
    #[error(transparent)]
    Blocks(Box<BlocksError>),
    /// A single multicast can't reach these ranks, or these locations.
    #[error(transparent)]
    Multicast(Box<MulticastError>),
    /// No registered memory is left.
    #[error(transparent)]
    OutOfMemory(Box<OutOfMemory>),
    /// The segment has room, but this machine has no memory for it.
    #[error(transparent)]
    OutOfMachineMemory(Box<OutOfMachineMemory>),
    /// The table of regions is full.
    #[error("{rank} has registered {limit} regions, the most this provider allows")]
    TooManyRegions {
        /// The rank that asked.
        rank: Rank,
        /// The limit.
        limit: usize,
    },
    /// A notice carries more bits than this provider transports.
    #[error("notice data {data:#x} does not fit the provider's {bits} bits")]
    NoticeTooWide {
        /// The data given.
        data: u64,
        /// The bits available, [`crate::Caps::notice_bits`].
        bits: u32,
    },
    /// This rank is, or was, a different process.
    #[error(
        "{rank} is another process of the job, or was one: a command is to start one program as each rank, and only once; \
             programs that are no ranks are started without the job's variable in their environment"
    )]
    RankTaken {
        /// The rank asked for.
        rank: Rank,
    },
    /// Ranks entered one collective operation with different arguments.
    #[error(transparent)]
    Mismatch(Box<Mismatch>),
    /// This provider does not support it; [`crate::Caps`] reports this beforehand.
    #[error("this provider does not support {feature}")]
    Unsupported {
        /// The feature asked for.
        feature: Literal,
    },
    /// Shared control data contains a value that no well-behaved rank writes.
    #[error("control data of {rank} is damaged: {what}")]
    Corrupt {
        /// The owner of the data.
        rank: Rank,
        /// The damaged part.
        what: Literal,
    },
    /// A control queue, or one of its commands, failed.
    #[error(transparent)]
    Queue(Box<QueueError>),
    /// Gates of a barrier unit failed.
    #[error(transparent)]
    Gate(Box<GateError>),
    /// A hardware barrier failed.
    #[error(transparent)]
    Colour(Box<ColourError>),
    /// A start-up setting is missing, malformed or contradicts another.
    #[error(transparent)]
    Setting(Box<Setting>),
    /// The operating system refused.
    #[error("{call} failed: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// The call.
        call: Literal,
        /// Its error number.
        errno: i32,
    },
}

// The word that a load yields fits next to the error: no hot call returns a third word.
const _: () = assert!(size_of::<FabricError>() <= 16 && size_of::<Result<u64>>() <= 16);

impl FabricError {
    /// Creates the error for `len` bytes at `addr` that are not inside their region of `region_len`
    /// bytes.
    #[cold]
    pub fn out_of_bounds(addr: RemoteAddr, len: u64, region_len: u64) -> Self {
        OutOfBounds { addr, len, region_len }.into()
    }

    /// Creates the error for an address that is not a multiple of `align` bytes.
    #[cold]
    pub fn misaligned(addr: RemoteAddr, align: usize) -> Self {
        Misaligned { addr, align }.into()
    }

    /// Creates the error for an atomic at `addr`, where memory is accessible only by copies of the
    /// operating system.
    #[cold]
    pub fn no_atomics(addr: RemoteAddr) -> Self {
        NoAtomics { addr, because: NoAtomicsCause::CrossCopy }.into()
    }

    /// Creates the error for an atomic at `addr` over a network without atomics.
    #[cold]
    pub fn no_atomics_at_all(addr: RemoteAddr) -> Self {
        NoAtomics { addr, because: NoAtomicsCause::Network }.into()
    }

    /// Creates the error for `have` elements where `want` are required.
    #[cold]
    pub fn length_mismatch(have: usize, want: usize) -> Self {
        LengthMismatch { have, want }.into()
    }

    /// Creates the error for the setting `name`, which is missing, malformed or contradicts
    /// another.
    #[cold]
    pub fn setting(name: &'static str, problem: impl Into<String>) -> Self {
        Setting { name, problem: problem.into() }.into()
    }

    /// Returns the rank that no longer exists according to this error, or whose registered memory
    /// no longer exists: it was lost ([`FabricError::PeerLost`]), has finished
    /// ([`FabricError::MemberLeft`]), or has dropped the requested region
    /// ([`FabricError::StaleRegion`], [`FabricError::NoSuchRegion`]), as a rank does when its
    /// program ends. Only the first implies that none of its operations takes effect any longer. A
    /// rank that never registered a region cannot be distinguished from one that has dropped it.
    ///
    /// ```
    /// use rdma_fabric::{FabricError, Rank};
    ///
    /// let rank = Rank::new(3);
    /// assert_eq!(FabricError::PeerLost { rank }.gone(), Some(rank));
    /// assert_eq!(FabricError::PeersLeft.gone(), None);
    /// ```
    pub fn gone(&self) -> Option<Rank> {
        match self {
            FabricError::PeerLost { rank }
            | FabricError::MemberLeft { rank }
            | FabricError::StaleRegion { rank, .. }
            | FabricError::NoSuchRegion { rank, .. } => Some(*rank),
            _ => None,
        }
    }
}

/// Result of a fabric operation.
pub type Result<T, E = FabricError> = core::result::Result<T, E>;

#[cfg(test)]
mod tests;
