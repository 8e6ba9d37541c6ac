//! Registered memory and its addresses.
//!
//! A *region* is memory that a rank registered with the fabric, so that peers may reach it. Its
//! *key* is a plain value that can be sent anywhere; with a rank and an offset it makes a
//! [`RemoteAddr`]. A region of a *symmetric* allocation has the same key on every rank, so that no
//! table of keys is needed.

use crate::{Existing, Rank, fabric::Fabric, pointer::LocalSpan, pointer::LocalWord};
use bytemuck::{Pod, Zeroable};
use core::fmt;

/// Names a region of some rank. Plain data: exchange it like any other value.
///
/// The generation moves when a region is deregistered, so that a key that outlived its region is
/// an error ([`crate::FabricError::StaleRegion`]) and never an access to somebody else's memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct RegionKey {
    /// Place in the owner's region table; providers give it meaning.
    pub index: u32,
    /// How often this place had been reused when the region was registered.
    pub generation: u32,
}

impl RegionKey {
    /// The key in one word, for exchange through a remote word.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// The inverse of [`RegionKey::to_bits`].
    #[inline]
    pub const fn from_bits(bits: u64) -> Self {
        RegionKey { index: bits as u32, generation: (bits >> 32) as u32 }
    }
}

impl fmt::Debug for RegionKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "region {}.{}", self.index, self.generation)
    }
}

/// A byte of registered memory somewhere in the job: rank, region, offset in bytes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct RemoteAddr {
    /// The owner.
    pub rank: Rank,
    /// The region, in the owner's numbering.
    pub region: RegionKey,
    /// Bytes from the start of the region.
    pub offset: u64,
}

/// Memory that this rank registered. Dropping it deregisters it: later operations on it fail with
/// [`crate::FabricError::StaleRegion`] at whoever posts them.
///
/// A region is zeroed when it is allocated and aligned to at least 64 bytes. [Registered](Fabric::register) memory is
/// as it was, and where it was.
pub trait Region: fmt::Debug {
    /// The key peers use.
    fn key(&self) -> RegionKey;

    /// Length in bytes.
    fn len(&self) -> usize;

    /// The address `offset` bytes into `rank`'s part. Meaningful for the own rank, and for every rank if the
    /// allocation was symmetric.
    fn at(&self, rank: Rank, offset: u64) -> RemoteAddr {
        RemoteAddr { rank, region: self.key(), offset }
    }

    /// How peers reach it if it is memory that [existed before](Fabric::register); `None` if it was allocated.
    fn existing(&self) -> Option<Existing> {
        None
    }

    /// Whether the region has no bytes at all.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// Typed access to own regions, for every fabric.
///
/// Own memory that others may write is never handed out as a slice: it is read and written by
/// copying, through the fabric.
pub trait RegionAccess<F: Fabric> {
    /// The word at `offset` bytes.
    ///
    /// # Errors
    /// [`crate::FabricError::OutOfBounds`], [`crate::FabricError::Misaligned`].
    fn word<W: crate::AtomicWord>(&self, fabric: &F, offset: usize) -> crate::Result<LocalWord<F, W>>;

    /// `len` elements from `offset` bytes on.
    ///
    /// # Errors
    /// [`crate::FabricError::OutOfBounds`], [`crate::FabricError::Misaligned`].
    fn span<T: Pod>(&self, fabric: &F, offset: usize, len: usize) -> crate::Result<LocalSpan<F, T>>;
}

impl<F: Fabric> RegionAccess<F> for F::Region {
    fn word<W: crate::AtomicWord>(&self, fabric: &F, offset: usize) -> crate::Result<LocalWord<F, W>> {
        fabric.local_word(RemoteAddr { rank: fabric.rank(), region: self.key(), offset: offset as u64 })
    }

    fn span<T: Pod>(&self, fabric: &F, offset: usize, len: usize) -> crate::Result<LocalSpan<F, T>> {
        fabric.local_span(RemoteAddr { rank: fabric.rank(), region: self.key(), offset: offset as u64 }, len)
    }
}
