//! Registered memory and its addresses.
//!
//! A *region* is memory that a rank registered with the fabric, so that peers can access it. Its
//! *key* is a plain value that can be sent anywhere; with a rank and an offset it forms a
//! [`RemoteAddr`]. A region of a *symmetric* allocation has the same key on every rank, so that no
//! table of keys is needed.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    AtomicWord, Existing, Fabric, FabricError, LocalSpan, LocalWord, Mapped, Rank, RemoteSpan, RemoteWord, Result,
    provider::Registration,
};
use bytemuck::{Pod, Zeroable};
use core::{any::Any, fmt};

/// Identifies a region of a rank. Plain data: exchange it like any other value.
///
/// The generation changes when a region is deregistered, so that a key that has outlived its region
/// is an error ([`FabricError::StaleRegion`]) and never an access to other memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Pod, Zeroable)]
#[repr(C)]
pub struct RegionKey {
    /// Index in the owner's region table; its meaning is up to the provider.
    pub index: u32,
    /// The number of times this entry had been reused when the region was registered.
    pub generation: u32,
}

impl RegionKey {
    /// Returns the key in one word, for exchange through a remote word.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        (self.generation as u64) << 32 | self.index as u64
    }

    /// Restores the key from [`RegionKey::to_bits`].
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

impl RemoteAddr {
    /// Checks that `len` bytes starting here are inside a region of `region_len` bytes, and start
    /// at a multiple of `align`. For providers.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
    pub fn fits(self, len: usize, align: usize, region_len: u64) -> Result<()> {
        let offset = self.offset;
        if offset.checked_add(len as u64).is_none_or(|end| end > region_len) {
            return Err(FabricError::out_of_bounds(self, len as u64, region_len));
        }
        if !offset.is_multiple_of(align.max(1) as u64) {
            return Err(FabricError::misaligned(self, align));
        }
        Ok(())
    }
}

/// Memory that this rank registered. Dropping it deregisters it: later operations on it, by any
/// rank, fail with [`FabricError::StaleRegion`].
///
/// A region is zeroed when it is allocated and aligned to at least 64 bytes.
/// [Registered](Fabric::register) memory keeps its contents and its address.
///
/// ```
/// use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
///
/// /// Each rank gets its neighbour's first words into a vector, and its last ones into own memory.
/// async fn read(fabric: Fabric) -> ProgramResult<()> {
///     let mut world = Group::world(&fabric).await?;
///     let region = fabric.alloc_symmetric(64 * 8).await?; // zeroed, at the same key at every rank
///     fabric.write(&region.span::<u64>(&fabric, 0, 64)?, &[7; 64])?;
///     world.barrier().await?;
///
///     let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
///     let first = fabric.remote_span::<u64>(region.at(next, 0), 4)?;
///     assert_eq!(fabric.get(&first, vec![0; 4]).await?, [7; 4]);
///
///     let own = fabric.alloc(4 * 8)?;
///     let sink = own.span::<u64>(&fabric, 0, 4)?;
///     fabric.get(&fabric.remote_span(region.at(next, 60 * 8), 4)?, sink).await?;
///
///     // 4 words from the last but one: beyond the end.
///     assert!(fabric.remote_span::<u64>(region.at(next, 62 * 8), 4).is_err());
///     Ok(world.barrier().await?)
/// }
/// # tofu2_sim::shm::Threads::new(2).run(&read).unwrap();
/// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 2).run(&read).unwrap();
/// ```
#[derive(Debug)]
pub struct Region {
    key: RegionKey,
    len: usize,
    existing: Option<Existing>,
    /// Deregisters when dropped.
    registration: Box<dyn Registration>,
}

impl Region {
    /// Creates a region, for providers. `existing` states how peers access existing memory that was
    /// registered.
    pub fn new(key: RegionKey, len: usize, existing: Option<Existing>, registration: impl Registration) -> Self {
        Region { key, len, existing, registration: Box::new(registration) }
    }

    /// Returns the provider's registration of the region, if it is a `T`.
    pub fn registration<T: Any>(&self) -> Option<&T> {
        let registration: &dyn Any = &*self.registration;
        registration.downcast_ref()
    }

    /// Returns the provider's registration of the region, if it is a `T`.
    ///
    /// # Errors
    /// The region, unchanged.
    pub fn into_registration<T: Any>(self) -> Result<T, Self> {
        if self.registration::<T>().is_none() {
            return Err(self);
        }
        let registration: Box<dyn Any> = self.registration;
        Ok(*registration.downcast().expect("the types were compared"))
    }

    /// Returns the key peers use.
    #[inline]
    pub fn key(&self) -> RegionKey {
        self.key
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the region has no bytes at all.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns how peers access [registered existing memory](Fabric::register); `None` if the
    /// region was allocated.
    pub fn existing(&self) -> Option<Existing> {
        self.existing
    }

    /// Returns the address `offset` bytes into `rank`'s part. Meaningful for this rank, and for
    /// every rank if the allocation was symmetric.
    pub fn at(&self, rank: Rank, offset: u64) -> RemoteAddr {
        RemoteAddr { rank, region: self.key, offset }
    }

    /// Resolves the word `offset` bytes into `rank`'s part of a symmetric allocation.
    ///
    /// # Errors
    /// As [`Fabric::remote_word`].
    pub fn word_of<W: AtomicWord>(&self, fabric: &Fabric, rank: Rank, offset: usize) -> Result<RemoteWord<W>> {
        fabric.remote_word(self.at(rank, offset as u64))
    }

    /// Resolves `len` elements, starting `offset` bytes into `rank`'s part of a symmetric
    /// allocation.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`].
    pub fn span_of<T: Pod>(&self, fabric: &Fabric, rank: Rank, offset: usize, len: usize) -> Result<RemoteSpan<T>> {
        fabric.remote_span(self.at(rank, offset as u64), len)
    }

    /// Resolves this rank's own word `offset` bytes into the region.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
    pub fn word<W: AtomicWord>(&self, fabric: &Fabric, offset: usize) -> Result<LocalWord<W>> {
        fabric.local_word(self.at(fabric.rank(), offset as u64))
    }

    /// Resolves `len` elements of this rank's own, starting `offset` bytes into the region.
    ///
    /// Memory that others may write is never exposed as a slice, not even to its owner: it is read
    /// and written by copying, through the fabric.
    ///
    /// # Errors
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
    pub fn span<T: Pod>(&self, fabric: &Fabric, offset: usize, len: usize) -> Result<LocalSpan<T>> {
        fabric.local_span(self.at(fabric.rank(), offset as u64), len)
    }

    /// Returns the location of `rank`'s part in this process's memory, if the region was allocated
    /// through this handle, the handle was [created](Fabric::protected) with an access policy that
    /// [allows references](crate::AccessPolicy::references), and the provider maps it.
    ///
    /// # Errors
    /// [`FabricError::NotMapped`], [`FabricError::NoSuchRank`], [`FabricError::PeerLost`].
    pub fn mapped(&self, fabric: &Fabric, rank: Rank) -> Result<Mapped> {
        match fabric.provider().protected() {
            Some(protected) if fabric.is_trusted() => protected.mapped(self, rank),
            _ => Err(FabricError::NotMapped { rank, region: self.key }),
        }
    }

    /// Deregisters memory that was allocated through this handle, which is [`Fabric::protected`].
    /// Its bytes are never reused, because operations on them may still be in flight.
    pub fn abandon(self, fabric: &Fabric) {
        match fabric.provider().protected() {
            Some(protected) => protected.abandon(self),
            None => drop(self),
        }
    }
}
