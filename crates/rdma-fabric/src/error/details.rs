//! The details of larger errors, kept behind a box so that an error that any call can return stays
//! small.

use super::FabricError;
use crate::{
    Node, Rank, RegionKey, RemoteAddr,
    provider::{
        barrier::{ColourError, GateError},
        control_queue::QueueError,
    },
};
use std::borrow::Cow;

/// A range that is not inside its region. See [`FabricError::OutOfBounds`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("bytes {}..{} of {:?} of {} are outside its {region_len} bytes",
    .addr.offset, .addr.offset.saturating_add(*.len), .addr.region, .addr.rank)]
pub struct OutOfBounds {
    /// The first byte.
    pub addr: RemoteAddr,
    /// Number of bytes.
    pub len: u64,
    /// The region's length in bytes.
    pub region_len: u64,
}

/// An address that is not a multiple of the alignment of the element type. See
/// [`FabricError::Misaligned`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("byte {} of {:?} of {} is not aligned to {align} bytes", .addr.offset, .addr.region, .addr.rank)]
pub struct Misaligned {
    /// The address.
    pub addr: RemoteAddr,
    /// The alignment needed, in bytes.
    pub align: usize,
}

/// An access of a width other than that of the cells in which this build accesses shared memory
/// (portable access, Miri). See [`FabricError::CellWidth`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{wanted}-byte access to {region:?} of {rank}, whose cells have {cell} bytes on this target")]
pub struct CellWidth {
    /// The owner.
    pub rank: Rank,
    /// The region.
    pub region: RegionKey,
    /// Bytes per access asked for.
    pub wanted: usize,
    /// Bytes per cell.
    pub cell: usize,
}

/// An atomic on a word that has no atomics. See [`FabricError::NoAtomics`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no atomics at byte {} of {:?} of {}: {because}", .addr.offset, .addr.region, .addr.rank)]
pub struct NoAtomics {
    /// The address of the word.
    pub addr: RemoteAddr,
    /// The reason.
    pub because: NoAtomicsCause,
}

/// The reason why a word has no atomics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoAtomicsCause {
    /// The memory was registered for transfers only, and is reached by copies of the operating
    /// system.
    #[error("its memory is reached by cross-memory copies")]
    CrossCopy,
    /// The network has no atomics at all ([`crate::Atomics::None`]).
    #[error("this network has none")]
    Network,
}

/// A copy between a process and a peer's registered memory that the system refused or broke off.
/// See [`FabricError::CrossCopy`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{moved} of {len} bytes at byte {} of {:?} of {} were copied, then {call} failed: {}",
    .addr.offset, .addr.region, .addr.rank, std::io::Error::from_raw_os_error(*.errno))]
pub struct CrossCopy {
    /// The first byte.
    pub addr: RemoteAddr,
    /// Bytes asked for.
    pub len: u64,
    /// Bytes copied before the failure.
    pub moved: u64,
    /// The system call.
    pub call: &'static str,
    /// Its error number.
    pub errno: i32,
}

/// A source and a destination of different lengths. See [`FabricError::LengthMismatch`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{have} elements given where {want} are wanted")]
pub struct LengthMismatch {
    /// Elements given.
    pub have: usize,
    /// Elements wanted.
    pub want: usize,
}

/// The defect of the blocks of a put. See [`FabricError::Blocks`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlocksError {
    /// There are no blocks.
    #[error("a put of no blocks: there is to be one at least")]
    None,
    /// Each begins before the previous one ends.
    #[error("blocks of {len} bytes overlap, {stride} bytes apart")]
    Overlap {
        /// Bytes of a block.
        len: usize,
        /// Bytes from the start of one to the start of the next.
        stride: u64,
    },
    /// They do not begin at element boundaries.
    #[error("blocks that are {stride} bytes apart are not made of elements of {element} bytes")]
    Elements {
        /// Bytes from the start of one to the start of the next.
        stride: u64,
        /// Bytes of an element.
        element: usize,
    },
}

/// The reason why one multicast can't reach some ranks. See [`FabricError::Multicast`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MulticastError {
    /// Two of them are on one node, or are the same rank.
    #[error("no multicast reaches both {first} and {second}: they share {node:?}")]
    SameNode {
        /// One of them.
        first: Rank,
        /// The other.
        second: Rank,
        /// Their node.
        node: Node,
    },
    /// Their nodes do not fill a box of the network: a line, a rectangle, ….
    #[error("no multicast reaches these {members} ranks: their nodes do not fill a box of the network")]
    NoBox {
        /// The number of ranks.
        members: usize,
    },
    /// Not the same offset of the same region.
    #[error("no multicast writes byte {} of {:?} of {} and byte {} of {:?} of {}",
        .one.offset, .one.region, .one.rank, .other.offset, .other.region, .other.rank)]
    Elsewhere {
        /// The first address.
        one: RemoteAddr,
        /// An address that is another place.
        other: RemoteAddr,
    },
}

/// A registration for which no registered memory is left. See [`FabricError::OutOfMemory`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rank} cannot register {requested} bytes: {available} of its segment's {segment} are free")]
pub struct OutOfMemory {
    /// The rank that asked.
    pub rank: Rank,
    /// Bytes asked for.
    pub requested: usize,
    /// The largest free piece, in bytes.
    pub available: usize,
    /// The segment's size, in bytes.
    pub segment: usize,
}

/// A registration for which the segment has room, but the machine or a limit of this process leaves no
/// memory. See
/// [`FabricError::OutOfMachineMemory`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "{rank} cannot register {requested} bytes: {ranks} {} for as much on this machine, and {limit} leaves {available}",
    if *ranks == 1 { "rank asks" } else { "ranks ask" }
)]
pub struct OutOfMachineMemory {
    /// The rank that asked.
    pub rank: Rank,
    /// Bytes asked for.
    pub requested: usize,
    /// The number of ranks that ask for as much at the same time, this one included.
    pub ranks: usize,
    /// Bytes available according to the system.
    pub available: u64,
    /// The limit that leaves them: `MemAvailable in /proc/meminfo`, a file of a control group, ….
    pub limit: Cow<'static, str>,
}

/// Ranks that entered one collective operation with different arguments. See
/// [`FabricError::Mismatch`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rank} called {collective} with {argument}, {other} with {other_argument}")]
pub struct Mismatch {
    /// The collective's name.
    pub collective: &'static str,
    /// The rank that reports.
    pub rank: Rank,
    /// The argument of `rank`.
    pub argument: u64,
    /// A rank that differs.
    pub other: Rank,
    /// The argument of `other`.
    pub other_argument: u64,
}

/// A start-up setting that is missing, malformed or contradicts another. See
/// [`FabricError::Setting`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("setting {name}: {problem}")]
pub struct Setting {
    /// The environment variable or option.
    pub name: &'static str,
    /// A description of the problem.
    pub problem: String,
}

/// Boxes details on their way into the error.
macro_rules! boxed {
    ($($variant:ident($details:ty)),* $(,)?) => {$(
        impl From<$details> for FabricError {
            #[cold]
            fn from(details: $details) -> Self {
                FabricError::$variant(Box::new(details))
            }
        }
    )*};
}

boxed! {
    OutOfBounds(OutOfBounds),
    Misaligned(Misaligned),
    CellWidth(CellWidth),
    NoAtomics(NoAtomics),
    CrossCopy(CrossCopy),
    LengthMismatch(LengthMismatch),
    Blocks(BlocksError),
    Multicast(MulticastError),
    OutOfMemory(OutOfMemory),
    OutOfMachineMemory(OutOfMachineMemory),
    Mismatch(Mismatch),
    Setting(Setting),
    Queue(QueueError),
    Gate(GateError),
    Colour(ColourError),
}

impl From<Box<FabricError>> for FabricError {
    #[cold]
    fn from(error: Box<FabricError>) -> Self {
        *error
    }
}
