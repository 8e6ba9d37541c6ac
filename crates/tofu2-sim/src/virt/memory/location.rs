//! A resolved place.

use rdma_fabric::{Location, Rank, RegionKey, RemoteAddr};

/// Some bytes of one region of one rank, checked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Loc {
    pub(in super::super) rank: u32,
    pub(super) index: u32,
    pub(in super::super) offset: u64,
    pub(in super::super) len: u64,
    generation: u32,
}

const _: () = assert!(size_of::<Loc>() <= 32);

impl Loc {
    pub(in super::super) fn new(rank: u32, key: RegionKey, offset: u64, len: u64) -> Self {
        Loc { rank, index: key.index, generation: key.generation, offset, len }
    }

    /// A place that is nowhere, for operations without one.
    pub(in super::super) fn nowhere() -> Self {
        Loc { rank: 0, index: 0, generation: 0, offset: 0, len: 0 }
    }

    #[inline]
    pub(in super::super) fn key(&self) -> RegionKey {
        RegionKey { index: self.index, generation: self.generation }
    }

    /// Whether both share a byte.
    #[inline]
    pub(in super::super) fn overlaps(&self, other: &Loc) -> bool {
        self.index == other.index
            && self.generation == other.generation
            && self.rank == other.rank
            && self.offset < other.offset + other.len
            && other.offset < self.offset + self.len
    }
}

impl Location for Loc {
    fn rank(&self) -> Rank {
        Rank::new(self.rank)
    }

    fn addr(&self) -> RemoteAddr {
        RemoteAddr { rank: Rank::new(self.rank), region: self.key(), offset: self.offset }
    }

    fn len(&self) -> usize {
        self.len as usize
    }

    fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let end = offset.checked_add(len)?;
        (end as u64 <= self.len).then_some(Loc { offset: self.offset + offset as u64, len: len as u64, ..*self })
    }
}
