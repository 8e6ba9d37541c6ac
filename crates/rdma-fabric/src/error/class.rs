//! The classes of errors.

use super::FabricError;

/// The class of a [`FabricError`]: which calls return it, and the state afterwards.
///
/// | class | returned by | state afterwards |
/// |---|---|---|
/// | [`Loss`](ErrorClass::Loss) | waits, operations, collectives | other ranks continue |
/// | [`Job`](ErrorClass::Job) | waits, operations, collectives | the whole job ends |
/// | [`Argument`](ErrorClass::Argument) | any call with an address, a length, a rank or a setting | nothing was done |
/// | [`Unsupported`](ErrorClass::Unsupported) | calls that a [capability](crate::Caps) rules out | nothing was done |
/// | [`Resource`](ErrorClass::Resource) | registrations, queues, gates, starts | nothing was done; possible again later |
/// | [`Offload`](ErrorClass::Offload) | control queues, gates, hardware barriers | as its own error states |
/// | [`Damage`](ErrorClass::Damage) | any call that reads shared control data | the job cannot be trusted |
///
/// ```
/// use rdma_fabric::{FabricError, Rank, error::ErrorClass};
///
/// let rank = Rank::new(3);
/// assert_eq!(FabricError::PeerLost { rank }.class(), ErrorClass::Loss);
/// assert_eq!(FabricError::NoSuchRank { rank, ranks: 2 }.class(), ErrorClass::Argument);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum ErrorClass {
    /// A rank that the call depends on is lost, or has left.
    Loss,
    /// The job was aborted, or its ranks are deadlocked.
    Job,
    /// An argument is wrong, or contradicts that of another rank.
    Argument,
    /// The provider, or this memory, does not support the call.
    Unsupported,
    /// Memory or another resource is exhausted, or the operating system refused it.
    Resource,
    /// A control queue, a gate or a hardware barrier failed.
    Offload,
    /// Control data that ranks share is damaged.
    Damage,
}

impl FabricError {
    /// Returns the error's class.
    pub const fn class(&self) -> ErrorClass {
        match self {
            FabricError::PeerLost { .. }
            | FabricError::HelperFailed { .. }
            | FabricError::PeersLeft
            | FabricError::MemberLeft { .. } => ErrorClass::Loss,
            FabricError::Aborted { .. } | FabricError::Deadlock { .. } => ErrorClass::Job,
            FabricError::NoSuchRank { .. }
            | FabricError::NotInGroup { .. }
            | FabricError::NoSuchRegion { .. }
            | FabricError::StaleRegion { .. }
            | FabricError::Locked { .. }
            | FabricError::OutOfBounds(_)
            | FabricError::Misaligned(_)
            | FabricError::LengthMismatch(_)
            | FabricError::Blocks(_)
            | FabricError::Multicast(_)
            | FabricError::NoticeTooWide { .. }
            | FabricError::RankTaken { .. }
            | FabricError::Mismatch(_)
            | FabricError::Setting(_) => ErrorClass::Argument,
            FabricError::NotMapped { .. }
            | FabricError::CellWidth(_)
            | FabricError::NoAtomics(_)
            | FabricError::CrossCopy(_)
            | FabricError::Unsupported { .. } => ErrorClass::Unsupported,
            FabricError::OutOfMemory(_)
            | FabricError::OutOfMachineMemory(_)
            | FabricError::TooManyRegions { .. }
            | FabricError::System { .. } => ErrorClass::Resource,
            FabricError::Queue(_) | FabricError::Gate(_) | FabricError::Colour(_) => ErrorClass::Offload,
            FabricError::Corrupt { .. } => ErrorClass::Damage,
        }
    }
}
