//! A resolved place.

use rdma_fabric::{Rank, RegionKey, RemoteAddr};

/// Some bytes of one region of one rank, checked once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct Loc {
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

    pub(in super::super) fn addr(&self) -> RemoteAddr {
        RemoteAddr { rank: Rank::new(self.rank), region: self.key(), offset: self.offset }
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
