//! Where a window's elements are at each member.

use core::ops::Range;
use rdma_fabric::{
    Fabric, FabricError, GroupMemory, LocalSpan, Pod, Rank, RegionKey, Registered, RemoteAddr, RemoteSpan, Result,
};

/// A member's part, as others reach it.
#[derive(Clone, Copy, Debug)]
pub(super) struct MemberPart {
    pub(super) key: RegionKey,
    pub(super) elements: u64,
}

pub(super) enum WindowMemory<T: Pod> {
    /// As many elements at each member.
    Allocated { memory: GroupMemory, elements: usize },
    /// What each member brought, by its number. The group's other memory numbers the members.
    Attached { members: GroupMemory, mine: Registered<T>, parts: Box<[MemberPart]> },
}

/// The elements from `at` on.
pub(super) fn range(at: usize, len: usize) -> Range<usize> {
    at..at.saturating_add(len)
}

impl<T: Pod> WindowMemory<T> {
    fn members(&self) -> &GroupMemory {
        match self {
            WindowMemory::Allocated { memory, .. } | WindowMemory::Attached { members: memory, .. } => memory,
        }
    }

    /// Where a member's part begins, and how many elements it has.
    pub(super) fn part(&self, rank: Rank) -> Result<(RemoteAddr, usize)> {
        match self {
            WindowMemory::Allocated { memory, elements } => {
                // A job's own memory would take any rank.
                self.number(rank)?;
                Ok((memory.at(rank, 0)?, *elements))
            }
            WindowMemory::Attached { parts, .. } => {
                let MemberPart { key, elements } = parts[self.number(rank)?];
                Ok((RemoteAddr { rank, region: key, offset: 0 }, elements as usize))
            }
        }
    }

    fn number(&self, rank: Rank) -> Result<usize> {
        let members = self.members();
        members.number(rank).ok_or(FabricError::NotInGroup { rank, members: members.members() })
    }

    /// A member's whole part.
    pub(super) fn span(&self, fabric: &Fabric, rank: Rank) -> Result<RemoteSpan<T>> {
        let (addr, elements) = self.part(rank)?;
        fabric.remote_span(addr, elements)
    }

    /// Own elements.
    pub(super) fn own(&self, fabric: &Fabric, elements: Range<usize>) -> Result<LocalSpan<T>> {
        let (addr, len) = self.part(fabric.rank())?;
        self.check(fabric.rank(), &elements)?;
        fabric.local_span::<T>(addr, len)?.slice(elements)
    }

    /// Whether a member has these elements.
    pub(super) fn check(&self, rank: Rank, elements: &Range<usize>) -> Result<()> {
        let (addr, len) = self.part(rank)?;
        if elements.start <= elements.end && elements.end <= len {
            return Ok(());
        }
        let bytes = |elements: usize| (elements as u64).saturating_mul(size_of::<T>() as u64);
        let start = RemoteAddr { rank, offset: addr.offset.saturating_add(bytes(elements.start)), ..addr };
        Err(FabricError::out_of_bounds(
            start,
            bytes(elements.end.saturating_sub(elements.start)),
            addr.offset + bytes(len),
        ))
    }

    /// The key and length of own memory.
    pub(super) fn card(mine: &Registered<T>) -> MemberPart {
        MemberPart { key: mine.key(), elements: mine.elements() as u64 }
    }
}
