//! Resolved places, as the core stores them.

use super::SYMMETRIC;
use rdma_fabric::{Rank, RegionKey, RemoteAddr};

/// Some bytes of one region of one rank: the form in which the core stores a `Place`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Loc {
    pub(crate) rank: u32,
    pub(super) index: u32,
    pub(crate) offset: u64,
    pub(crate) len: u64,
    generation: u32,
}

const _: () = assert!(size_of::<Loc>() <= 32);

impl Loc {
    pub(crate) fn new(rank: u32, key: RegionKey, offset: u64, len: u64) -> Self {
        Loc { rank, index: key.index, generation: key.generation, offset, len }
    }

    #[inline]
    pub(crate) fn key(&self) -> RegionKey {
        RegionKey { index: self.index, generation: self.generation }
    }

    /// Returns the number of the symmetric region, if it is one.
    #[inline]
    pub(super) fn symmetric(&self) -> Option<usize> {
        (self.index & SYMMETRIC != 0).then_some((self.index & !SYMMETRIC) as usize)
    }

    pub(crate) fn addr(&self) -> RemoteAddr {
        RemoteAddr { rank: Rank::new(self.rank), region: self.key(), offset: self.offset }
    }

    /// Returns whether the two have a byte in common.
    #[inline]
    pub(crate) fn overlaps(&self, other: &Loc) -> bool {
        self.index == other.index
            && self.generation == other.generation
            && self.rank == other.rank
            && self.offset < other.offset + other.len
            && other.offset < self.offset + self.len
    }
}
