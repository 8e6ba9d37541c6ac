//! Memory: registering it, and resolving what others registered.

use super::Fabric;
use crate::{
    AtomicWord, FabricError, LocalSpan, LocalWord, Mapped, OwnedMemory, Pact, Pod, Rank, Region, RegisterError,
    Registered, RemoteAddr, RemoteSpan, RemoteWord, Result, Uses, provider::Place,
};
use core::future::Future;

impl Fabric {
    /// Register `bytes` zeroed bytes of own memory. Local: peers learn the key by other means.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`], [`FabricError::TooManyRegions`].
    pub fn alloc(&self, bytes: usize) -> Result<Region> {
        self.provider().alloc(bytes)
    }

    /// Register `bytes` zeroed bytes on *every* rank under one key.
    ///
    /// Collective: all ranks call it, in the same order relative to other symmetric allocations and
    /// with the same size. When it returns, every rank's part can be reached. Dropping a symmetric region
    /// frees the rank's own part; its place is used again only for symmetric allocations and only after all parts
    /// are dropped in the same order everywhere.
    ///
    /// # Errors
    /// As [`Fabric::alloc`], and [`FabricError::Mismatch`] when sizes differ.
    pub fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<Region>> {
        self.provider().alloc_symmetric(bytes)
    }

    /// Register memory that this rank has: it is handed over, peers reach it by key like any region, and
    /// [`Registered::take`] gives it back. A boxed slice becomes a vector by `into_vec`, which moves no bytes.
    ///
    /// Local: peers learn the key by other means. [`crate::Caps::register_existing`] tells how it is reached; where that is
    /// [`crate::Existing::CrossCopy`], atomics on it are refused.
    ///
    /// # Errors
    /// [`RegisterError`] with the memory: [`FabricError::Unsupported`], [`FabricError::OutOfMemory`],
    /// [`FabricError::TooManyRegions`], [`FabricError::System`].
    pub fn register<T: Pod + Send + Sync>(&self, memory: Vec<T>) -> Result<Registered<T>, RegisterError<T>> {
        Registered::new(self, memory, Uses::Transfers)
    }

    /// [`Fabric::register`] for memory that peers use with atomics: staged where it can't have them itself.
    ///
    /// # Errors
    /// As [`Fabric::register`].
    pub fn register_for_atomics<T: Pod + Send + Sync>(
        &self,
        memory: Vec<T>,
    ) -> Result<Registered<T>, RegisterError<T>> {
        Registered::new(self, memory, Uses::Atomics)
    }

    /// Register memory that was allocated elsewhere: for who has no vector.
    ///
    /// # Errors
    /// As [`Fabric::register`], with the memory.
    pub fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<Region, (FabricError, OwnedMemory)> {
        self.provider().adopt(memory, uses)
    }

    /// Deregister what [`Fabric::adopt`] registered, wait until no operation is inside, and give it back: what a
    /// provider implements of [`crate::Registered::take`].
    ///
    /// # Errors
    /// As [`crate::Registered::take`].
    pub fn release(&self, region: Region) -> impl Future<Output = Result<OwnedMemory>> {
        self.provider().release(region)
    }

    /// Another handle of this rank, whose [symmetric allocations](Fabric::alloc_symmetric) are *locked regions*: they have no key
    /// for others. This handle and its clones resolve addresses in them; every other handle of any rank, control queues too, refuses with
    /// [`FabricError::Locked`]. All else it does as this one, but that it has no local allocations and registers nothing.
    ///
    /// Ranks allocate together that have made their handles with the same [`Pact`], and have allocated as often through them;
    /// otherwise it is a [`FabricError::Mismatch`]. [`crate::Caps::locked_memory`] tells whether there is such memory.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`].
    pub fn keyless(&self, pact: Pact) -> Result<Self> {
        let keyless = self.provider().keyless().ok_or(FabricError::Unsupported { feature: &"memory without a key" })?;
        keyless.open(self, if self.shared.vouched { pact } else { pact.without_references() })
    }

    /// Where `rank`'s part of a region is in this process's memory, if the region was allocated through this handle, that was made
    /// with a pact that [allows references](Pact::references), and the provider maps it.
    ///
    /// # Errors
    /// [`FabricError::NotMapped`], [`FabricError::NoSuchRank`], [`FabricError::PeerLost`].
    pub fn mapped(&self, region: &Region, rank: Rank) -> Result<Mapped> {
        match self.provider().keyless() {
            Some(keyless) if self.shared.vouched => keyless.mapped(region, rank),
            _ => Err(FabricError::NotMapped { rank, region: region.key() }),
        }
    }

    /// Resolve `len` bytes at `addr`, aligned to `align`, for accesses of `width` bytes.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::NoSuchRegion`], [`FabricError::StaleRegion`], [`FabricError::Locked`],
    /// [`FabricError::OutOfBounds`], [`FabricError::Misaligned`], [`FabricError::CellWidth`], [`FabricError::PeerLost`].
    pub fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<Place> {
        self.provider().resolve(addr, len, align, width)
    }

    /// Resolve a word of some rank's memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub fn remote_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<RemoteWord<W>> {
        self.provider().resolve(addr, W::BYTES, W::BYTES, W::BYTES).map(RemoteWord::new)
    }

    /// Resolve `len` elements of some rank's memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`].
    pub fn remote_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<RemoteSpan<T>> {
        self.provider()
            .resolve(addr, bytes_of::<T>(addr, len)?, align_of::<T>(), size_of::<T>())
            .map(|place| RemoteSpan::new(place, len))
    }

    /// Resolve a word of own memory.
    ///
    /// # Errors
    /// As [`Fabric::locate`], and [`FabricError::Unsupported`] if `addr` is another rank's.
    pub fn local_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<LocalWord<W>> {
        own(self.rank(), addr)?;
        self.provider().resolve(addr, W::BYTES, W::BYTES, W::BYTES).map(LocalWord::new)
    }

    /// Resolve `len` elements of own memory.
    ///
    /// # Errors
    /// As [`Fabric::local_word`].
    pub fn local_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<LocalSpan<T>> {
        own(self.rank(), addr)?;
        self.provider()
            .resolve(addr, bytes_of::<T>(addr, len)?, align_of::<T>(), size_of::<T>())
            .map(|place| LocalSpan::new(place, len))
    }
}

fn own(me: Rank, addr: RemoteAddr) -> Result<()> {
    if addr.rank == me {
        Ok(())
    } else {
        Err(FabricError::Unsupported { feature: &"local access to another rank's memory" })
    }
}

fn bytes_of<T>(addr: RemoteAddr, len: usize) -> Result<usize> {
    len.checked_mul(size_of::<T>()).ok_or_else(|| FabricError::out_of_bounds(addr, u64::MAX, 0))
}
