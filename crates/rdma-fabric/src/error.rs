//! The one error type of the ground floor.

use crate::{Rank, RegionKey, barrier::GateError, control_queue::QueueError};

/// What a fabric refuses or fails to do. Each variant carries the numbers a person needs to find the
/// cause.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FabricError {
    /// A rank that the operation or wait depends on died, panicked or returned an error.
    #[error("{rank} was lost")]
    PeerLost {
        /// The rank that is gone.
        rank: Rank,
    },
    /// Every rank that could have ended this wait has finished its program.
    #[error("the wait can never end: every rank it depends on has finished")]
    PeersLeft,
    /// A member of a group has finished its program without having come to what the group does together, which can't be completed
    /// any more.
    #[error("{rank} has finished without taking part: the group can't complete this any more")]
    MemberLeft {
        /// Who has left.
        rank: Rank,
    },
    /// The job can make no progress: nobody will ever end this wait.
    #[error("deadlock: nothing can happen any more and {waiting} ranks wait")]
    Deadlock {
        /// How many ranks wait.
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
    /// A rank that is no member of the group it was named in.
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
    /// The region has no key: only the capability it was allocated with leads there ([`crate::Fabric::keyless`]).
    #[error("{region:?} of {rank} is locked: it has no key, and is reached through what it was allocated with only")]
    Locked {
        /// The owner.
        rank: Rank,
        /// The key used.
        region: RegionKey,
    },
    /// The rank's part of a locked region has no address in this process: it is reached by copies only.
    #[error("{region:?} of {rank} is not mapped here: use get and put")]
    NotMapped {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
    },
    /// The range is not inside the region.
    #[error("bytes {offset}..{end} of {region:?} of {rank} are outside its {region_len} bytes", end = .offset.saturating_add(*.len))]
    OutOfBounds {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
        /// First byte.
        offset: u64,
        /// Number of bytes.
        len: u64,
        /// The region's length in bytes.
        region_len: u64,
    },
    /// The address is not a multiple of what the element type needs.
    #[error("byte {offset} of {region:?} of {rank} is not aligned to {align} bytes")]
    Misaligned {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
        /// The offset, in bytes.
        offset: u64,
        /// The alignment needed, in bytes.
        align: usize,
    },
    /// This build accesses shared memory in cells of another width (portable access, Miri).
    #[error("{wanted}-byte access to {region:?} of {rank}, whose cells have {cell} bytes on this target")]
    CellWidth {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
        /// Bytes per access asked for.
        wanted: usize,
        /// Bytes per cell.
        cell: usize,
    },
    /// The memory was registered for transfers only, and is reached by copies of the operating system.
    #[error("no atomics at byte {offset} of {region:?} of {rank}: its memory is reached by cross-memory copies")]
    NoAtomics {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
        /// The offset, in bytes.
        offset: u64,
    },
    /// The system can't copy between this process and a peer's registered memory.
    #[error("{moved} of {len} bytes at byte {offset} of {region:?} of {rank} were copied, then {call} failed: {}",
        std::io::Error::from_raw_os_error(*.errno))]
    CrossCopy {
        /// The owner.
        rank: Rank,
        /// The region.
        region: RegionKey,
        /// First byte.
        offset: u64,
        /// Bytes asked for.
        len: u64,
        /// Bytes copied before.
        moved: u64,
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
    /// Source and destination have different lengths.
    #[error("{have} elements given where {want} are wanted")]
    LengthMismatch {
        /// Elements given.
        have: usize,
        /// Elements wanted.
        want: usize,
    },
    /// No registered memory is left.
    #[error("{rank} cannot register {requested} bytes: {available} of its segment's {segment} are free")]
    OutOfMemory {
        /// The rank that asked.
        rank: Rank,
        /// Bytes asked for.
        requested: usize,
        /// The largest free piece, in bytes.
        available: usize,
        /// The segment's size, in bytes.
        segment: usize,
    },
    /// The segment has room, but this machine has no memory for it.
    #[error(
        "{rank} cannot register {requested} bytes: {ranks} ranks of this machine ask for that, and it has {available} left"
    )]
    OutOfMachineMemory {
        /// The rank that asked.
        rank: Rank,
        /// Bytes asked for.
        requested: usize,
        /// Ranks that ask for as much at the same time, this one included.
        ranks: usize,
        /// Bytes that the system says can be had.
        available: u64,
    },
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
    /// Another process is this rank, or was.
    #[error(
        "{rank} is another process of the job, or was one: a command is to start one program as each rank, and only once; \
             programs that are no ranks are started without the job's variable in their environment"
    )]
    RankTaken {
        /// The rank asked for.
        rank: Rank,
    },
    /// Ranks entered one collective operation with different arguments.
    #[error("{rank} called {collective} with {theirs}, {other} with {ours}")]
    Mismatch {
        /// The collective's name.
        collective: &'static str,
        /// Who reports.
        rank: Rank,
        /// Its argument.
        theirs: u64,
        /// Who differs.
        other: Rank,
        /// Its argument.
        ours: u64,
    },
    /// This provider can't do it; [`crate::Caps`] tells beforehand.
    #[error("this provider does not support {feature}")]
    Unsupported {
        /// What was asked for.
        feature: &'static str,
    },
    /// Shared control data holds something no well-behaved rank writes.
    #[error("control data of {rank} is damaged: {what}")]
    Corrupt {
        /// Whose data.
        rank: Rank,
        /// Which part.
        what: &'static str,
    },
    /// A control queue, or a command of it.
    #[error(transparent)]
    Queue(QueueError),
    /// Gates of a barrier unit.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// A start-up setting is missing, malformed or contradicts another.
    #[error("setting {name}: {problem}")]
    Setting {
        /// The environment variable or option.
        name: &'static str,
        /// What is wrong with it.
        problem: String,
    },
    /// The operating system refused.
    #[error("{call} failed: {}", std::io::Error::from_raw_os_error(*.errno))]
    System {
        /// The call.
        call: &'static str,
        /// Its error number.
        errno: i32,
    },
}

impl FabricError {
    /// The rank that is gone for this reason, with what it had registered: it was lost ([`FabricError::PeerLost`]), has finished
    /// ([`FabricError::MemberLeft`]), or has dropped the region that was asked for
    /// ([`FabricError::StaleRegion`], [`FabricError::NoSuchRegion`]), as a rank does when its program ends. Only the first says that nothing of it
    /// takes effect any more, and who never registered a region can't be told from who took it along.
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

/// A posting that did not happen. Nothing is lost: the operation comes back.
#[derive(Debug)]
pub enum Refused<Op> {
    /// The queue, or the target's notice queue, has no room now. Post again later.
    Full(Op),
    /// The operation is not possible.
    Failed(FabricError, Op),
}

impl<Op> Refused<Op> {
    /// The operation that was refused.
    pub fn into_inner(self) -> Op {
        match self {
            Refused::Full(op) | Refused::Failed(_, op) => op,
        }
    }

    /// The same refusal about another form of the operation.
    #[inline(always)]
    pub fn map<New>(self, f: impl FnOnce(Op) -> New) -> Refused<New> {
        match self {
            Refused::Full(op) => Refused::Full(f(op)),
            Refused::Failed(error, op) => Refused::Failed(error, f(op)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_is_gone_is_named_and_who_is_wrong_is_not() {
        let (rank, region) = (Rank::new(7), RegionKey::from_bits(5));
        let gone = [
            FabricError::PeerLost { rank },
            FabricError::MemberLeft { rank },
            FabricError::StaleRegion { rank, region },
            FabricError::NoSuchRegion { rank, region },
        ];
        for error in gone {
            assert_eq!(error.gone(), Some(rank), "{error}");
        }
        let there = [
            FabricError::PeersLeft,
            FabricError::NoSuchRank { rank, ranks: 4 },
            FabricError::NotInGroup { rank, members: 4 },
            FabricError::Locked { rank, region },
            FabricError::NotMapped { rank, region },
            FabricError::OutOfBounds { rank, region, offset: 8, len: 8, region_len: 8 },
        ];
        for error in there {
            assert_eq!(error.gone(), None, "{error}");
        }
    }
}
