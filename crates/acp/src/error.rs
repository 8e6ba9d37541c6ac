//! The errors of calls.

use crate::{GlobalAddress, Handle};
use rdma_fabric::{FabricError, Rank};

/// The result of a call to this crate.
pub type Result<T, E = AcpError> = core::result::Result<T, E>;

/// The error of a call. Unless a variant says otherwise, the call has moved no data.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum AcpError {
    /// The underlying fabric failed. A lost rank is reported here as [`FabricError::PeerLost`], by
    /// its number in [`Acp`](crate::Acp); all other errors contain the fabric's rank numbers, which
    /// a [reset](crate::Acp::reset) does not change.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// The address names a rank that the job does not have.
    #[error("{rank} does not exist: the job has ranks 0 to {last}", last = .ranks.saturating_sub(1))]
    NoSuchRank {
        /// The requested rank.
        rank: Rank,
        /// The number of ranks.
        ranks: usize,
    },
    /// The region was never registered, or has been unregistered.
    #[error("{address}: {} has no such region", .address.rank())]
    NoSuchRegion {
        /// An address in it.
        address: GlobalAddress,
    },
    /// The bytes are not all inside the region.
    #[error(transparent)]
    OutOfBounds(Box<OutOfBounds>),
    /// The address is not a multiple of the alignment that the operation needs.
    #[error("{address} is not aligned to {align} bytes")]
    Misaligned {
        /// The address.
        address: GlobalAddress,
        /// The alignment needed.
        align: u8,
    },
    /// The address must be the calling rank's own.
    #[error("{address} is not memory of the calling rank")]
    NotOwn {
        /// The address.
        address: GlobalAddress,
    },
    /// The rank's directory has no entry left for another region.
    #[error("{rank} has registered {limit} regions, as many as its directory holds")]
    DirectoryFull {
        /// The calling rank.
        rank: Rank,
        /// The number of entries.
        limit: usize,
    },
    /// No free block of the rank's heap is large enough.
    #[error("the heap of {rank} has no {bytes} bytes left in one piece")]
    HeapExhausted {
        /// The heap's owner.
        rank: Rank,
        /// The number of bytes requested.
        bytes: u64,
    },
    /// The address is not the start of an allocation in a heap, or the allocation has been freed.
    #[error("{address} is not the start of anything allocated")]
    NotAllocated {
        /// The address.
        address: GlobalAddress,
    },
    /// The words there are invalid: they have been overwritten.
    #[error("the words at {address} have been overwritten")]
    Damaged {
        /// Their address.
        address: GlobalAddress,
    },
    /// The container does not have such an element, or no longer has it.
    #[error("{address} is not an element of the container")]
    NoSuchElement {
        /// The expected address of the element.
        address: GlobalAddress,
    },
    /// The bytes of the element are not a value of the requested type.
    #[error("the element at {address} was stored as another type")]
    OtherType {
        /// The address of the element.
        address: GlobalAddress,
    },
    /// The container has no such position; nothing has changed.
    #[error("there is no position {position} in {len} elements")]
    OutOfRange {
        /// The requested position, or the end of the range.
        position: u64,
        /// The number of elements.
        len: u64,
    },
    /// A collective call created nothing, because this rank could not register its part or passed
    /// different arguments.
    #[error("{rank} has no memory for its part, or has asked for something else")]
    NoPart {
        /// The rank.
        rank: Rank,
    },
    /// There is no such colour.
    #[error("there is no colour {colour}: there are {colours}")]
    NoSuchColour {
        /// The requested colour.
        colour: usize,
        /// The number of colours.
        colours: usize,
    },
    /// The numbers given to a reset are not a permutation of the ranks; nothing has changed.
    #[error("{rank} is what no rank, or more than one, is to be after the reset")]
    NoPermutation {
        /// A number that is missing.
        rank: Rank,
    },
    /// An option is out of range.
    #[error(transparent)]
    Option(Box<OptionError>),
    /// [`Mode::Split`](crate::Mode::Split) was requested, but control queues do not share their
    /// rank's address space.
    #[error(
        "the helper that serves can't use the addresses in a request: {rank}'s control queues have address spaces of \
         their own"
    )]
    SeparateAddressSpaces {
        /// The calling rank.
        rank: Rank,
    },
    /// The value was created for one thread ([`crate::Threads::One`]) and used by another.
    #[error("this was made for one thread, and is used by another: choose Threads::Many")]
    OtherThread,
    /// A collective call was made while another one of this rank was in progress.
    #[error("{what} while another collective call of this rank is in progress")]
    Overlapping {
        /// The call.
        what: &'static str,
    },
    /// The operation was not started, because an operation that its order waits for has failed.
    #[error("not started: {because:?}, which its order waits for, has failed")]
    NotStarted {
        /// The operation that failed.
        because: Handle,
    },
    /// A channel needs two ranks.
    #[error("{rank} has no channel with itself")]
    SelfChannel {
        /// The calling rank.
        rank: Rank,
    },
    /// The end of a channel was freed, or was created before a reset.
    #[error("there is no channel {number}")]
    NoSuchChannel {
        /// Its number.
        number: u64,
    },
    /// The end of a channel is not of the kind that the call is for.
    #[error("channel {number} is not of this kind at this end")]
    WrongEnd {
        /// Its number.
        number: u64,
    },
    /// The channel has ended: the peer has freed its end, or has left.
    #[error("{peer} has disconnected")]
    Disconnected {
        /// The rank at the other end.
        peer: Rank,
    },
    /// The segmented buffer is not connected, or no longer connected.
    #[error("the segmented buffer is not connected with {peer}")]
    NotConnected {
        /// The rank at the other side.
        peer: Rank,
    },
    /// The segmented buffer has to be disconnected first.
    #[error("the segmented buffer is still connected with {peer}")]
    StillConnected {
        /// The rank at the other side.
        peer: Rank,
    },
    /// The source has no free segment, or the destination has none to take.
    #[error("the segmented buffer shared with {peer} has no segment for this")]
    NoSegment {
        /// The rank at the other side.
        peer: Rank,
    },
    /// The two sides of a segmented buffer were created with different segments.
    #[error(transparent)]
    SegmentsDiffer(Box<SegmentsDiffer>),
}

/// The segments of the two sides of a segmented buffer: the size and the number of segments.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "there are {} segments of {} bytes here, and {} of {} at {peer}",
    .here.1, .here.0, .there.1, .there.0
)]
pub struct SegmentsDiffer {
    /// The rank at the other side.
    pub peer: Rank,
    /// At this side.
    pub here: (u64, u64),
    /// At the other side.
    pub there: (u64, u64),
}

/// Bytes that are not all inside their region.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{bytes} bytes from {address} on are not inside the region's {region_bytes} bytes")]
pub struct OutOfBounds {
    /// The first byte.
    pub address: GlobalAddress,
    /// The number of bytes.
    pub bytes: u64,
    /// The size of the region.
    pub region_bytes: u64,
}

/// An option that is out of range.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{option} must be {range}, and is {value}")]
pub struct OptionError {
    /// Its name.
    pub option: &'static str,
    /// The allowed values.
    pub range: &'static str,
    /// The given value.
    pub value: usize,
}

const _: () = assert!(size_of::<AcpError>() <= 24);

impl AcpError {
    #[cold]
    pub(crate) fn option(option: &'static str, range: &'static str, value: usize) -> Self {
        AcpError::Option(Box::new(OptionError { option, range, value }))
    }

    #[cold]
    pub(crate) fn out_of_bounds(address: GlobalAddress, bytes: u64, region_bytes: u64) -> Self {
        AcpError::OutOfBounds(Box::new(OutOfBounds { address, bytes, region_bytes }))
    }
}
