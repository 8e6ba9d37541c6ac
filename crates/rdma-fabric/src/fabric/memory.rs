//! Memory: registering it, resolving addresses in it, and reading and writing the rank's own.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    Fabric,
    direct::{get_now, put_now, same_length},
    wait_future::read_word,
};
use crate::{
    AccessPolicy, AtomicWord, FabricError, LocalSpan, LocalWord, Pod, Rank, Region, RegionKey, RegisterError,
    Registered, RemoteAddr, RemoteSpan, RemoteWord, Result, Uses,
    provider::{Place, Sink, Source},
};
use core::future::Future;

impl Fabric {
    /// Registers `bytes` zeroed bytes of this rank's own memory. Local: the program sends the key
    /// to peers.
    ///
    /// # Errors
    /// [`FabricError::OutOfMemory`], [`FabricError::TooManyRegions`].
    pub fn alloc(&self, bytes: usize) -> Result<Region> {
        self.provider().alloc(bytes)
    }

    /// Registers `bytes` zeroed bytes on *every* rank under one key.
    ///
    /// Collective: all ranks call it, in the same order relative to other symmetric allocations and
    /// with the same size. When it returns, every rank's part is accessible. Dropping a symmetric
    /// region frees the rank's own part; the room is reused only for symmetric allocations, and
    /// only after all parts were dropped, in the same order on every rank.
    ///
    /// # Errors
    /// As [`Fabric::alloc`], and [`FabricError::Mismatch`] when sizes differ.
    pub fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<Region>> {
        self.provider().alloc_symmetric(bytes)
    }

    /// Registers memory that this rank already has. The buffer is moved in, peers access it by key
    /// like any region, and [`Registered::take`] returns it. A boxed slice becomes a vector by
    /// `into_vec`, which moves no bytes.
    ///
    /// Local: the program sends the key to peers. [`crate::Caps::register_existing`] states how
    /// peers access it; if that is [`crate::Existing::CrossCopy`], atomics on it are refused:
    /// [`Registered::new`] has the memory staged instead.
    ///
    /// # Errors
    /// [`RegisterError`] with the memory: [`FabricError::Unsupported`],
    /// [`FabricError::OutOfMemory`], [`FabricError::TooManyRegions`], [`FabricError::System`].
    pub fn register<T: Pod + Send + Sync>(&self, memory: Vec<T>) -> Result<Registered<T>, RegisterError<T>> {
        Registered::new(self, memory, Uses::Transfers)
    }

    /// Creates another handle of this rank, whose allocations are *locked regions*: they have no
    /// key that others could use. Addresses in its [symmetric allocations](Fabric::alloc_symmetric)
    /// are resolved by this handle and its clones; addresses in regions that it
    /// [allocates](Fabric::alloc) by itself are resolved by handles of any rank whose access policy
    /// is the same. Every other handle of any rank, and every control queue, refuses with
    /// [`FabricError::Locked`]. Otherwise the handle behaves like this one, except that it does not
    /// register existing memory, and that it supports only symmetric allocations unless memory is
    /// [mapped](crate::LockedMemory::Mapped).
    ///
    /// Ranks that allocate together must have created their handles with the same [`AccessPolicy`],
    /// and must have performed the same number of allocations through them; otherwise the
    /// allocation is a [`FabricError::Mismatch`]. [`crate::Caps::locked_memory`] reports whether
    /// such memory exists.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`].
    pub fn protected(&self, policy: AccessPolicy) -> Result<Self> {
        let protected = self.provider().protected().ok_or(FabricError::Unsupported { feature: &"protected memory" })?;
        protected.open(self, if self.inner.trusted { policy } else { policy.without_references() })
    }

    /// Returns whether `region` is memory that `rank` allocated by itself through a handle with the
    /// access policy of this handle: all code that can write it adheres to the access policy.
    ///
    /// # Errors
    /// As [`Fabric::remote_word`].
    pub fn holds(&self, rank: Rank, region: RegionKey) -> Result<bool> {
        match self.provider().protected() {
            Some(protected) if self.inner.trusted => protected.holds(rank, region),
            _ => Ok(false),
        }
    }

    /// Resolves a word of some rank's memory.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`], [`FabricError::NoSuchRegion`], [`FabricError::StaleRegion`],
    /// [`FabricError::Locked`], [`FabricError::OutOfBounds`], [`FabricError::Misaligned`],
    /// [`FabricError::CellWidth`], [`FabricError::PeerLost`].
    pub fn remote_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<RemoteWord<W>> {
        self.provider().resolve(addr, W::BYTES, W::BYTES, W::BYTES).map(RemoteWord::new)
    }

    /// Resolves `len` elements of any rank's memory.
    ///
    /// # Errors
    /// As [`Fabric::remote_word`].
    pub fn remote_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<RemoteSpan<T>> {
        self.provider()
            .resolve(addr, bytes_of::<T>(len), align_of::<T>(), size_of::<T>())
            .map(|place| RemoteSpan::new(place, len))
    }

    /// Resolves a word of this rank's own memory.
    ///
    /// # Errors
    /// As [`Fabric::remote_word`], and [`FabricError::Unsupported`] if `addr` is another rank's.
    pub fn local_word<W: AtomicWord>(&self, addr: RemoteAddr) -> Result<LocalWord<W>> {
        own(self.rank(), addr)?;
        self.provider().resolve(addr, W::BYTES, W::BYTES, W::BYTES).map(LocalWord::new)
    }

    /// Resolves `len` elements of this rank's own memory.
    ///
    /// # Errors
    /// As [`Fabric::local_word`].
    pub fn local_span<T: Pod>(&self, addr: RemoteAddr, len: usize) -> Result<LocalSpan<T>> {
        own(self.rank(), addr)?;
        self.provider()
            .resolve(addr, bytes_of::<T>(len), align_of::<T>(), size_of::<T>())
            .map(|place| LocalSpan::new(place, len))
    }
}

/// The rank's own memory, which is read and written by copying.
impl Fabric {
    /// Loads a word of this rank's own memory. Observes the values of peers' visible puts and
    /// atomics, and everything that they made visible before (acquire).
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub fn load<W: AtomicWord>(&self, word: &LocalWord<W>) -> Result<W> {
        match word.place().load(W::BYTES) {
            Some(bits) => Ok(W::from_bits(bits)),
            // Destructured, so that a value that is loaded immediately stays in registers.
            None => match read_word(self, word.place(), false) {
                Ok(value) => Ok(value),
                Err(error) => Err(error),
            },
        }
    }

    /// Stores a word of this rank's own memory, after everything stored before (release). Not
    /// atomic with respect to peers' read-modify-writes unless [`crate::Caps::coherent_atomics`]
    /// holds.
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`].
    #[inline(always)]
    pub fn store<W: AtomicWord>(&self, word: &LocalWord<W>, value: W) -> Result<()> {
        if word.place().store(W::BYTES, value.to_bits()).is_some() {
            self.wake_if_parked(word.place());
            return Ok(());
        }
        self.write_word(word.place(), value, true)
    }

    /// Stores a word of this rank's own memory for which no task of this rank waits, nor a
    /// [helper](Fabric::helper); otherwise like [`Fabric::store`]. A task that waits for the word
    /// need not be woken by it.
    ///
    /// # Errors
    /// As [`Fabric::store`].
    #[inline(always)]
    pub fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<W>, value: W) -> Result<()> {
        match word.place().store(W::BYTES, value.to_bits()) {
            Some(()) => Ok(()),
            None => self.write_word(word.place(), value, false),
        }
    }

    /// Copies this rank's own registered memory out. If peers write it concurrently, each byte is
    /// either old or new.
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`], [`crate::FabricError::LengthMismatch`].
    #[inline]
    pub fn read<T: Pod>(&self, span: &LocalSpan<T>, into: &mut [T]) -> Result<()> {
        let elements = into.len();
        let bytes = bytemuck::cast_slice_mut(into);
        if get_now(span.place(), Sink::Bytes(bytes)) {
            return Ok(());
        }
        same_length::<T>(elements, span.place())?;
        self.provider().read(span.place(), bytes, false)
    }

    /// Copies into this rank's own registered memory.
    ///
    /// # Errors
    /// [`crate::FabricError::StaleRegion`], [`crate::FabricError::LengthMismatch`].
    #[inline]
    pub fn write<T: Pod>(&self, span: &LocalSpan<T>, from: &[T]) -> Result<()> {
        let bytes = bytemuck::cast_slice(from);
        if put_now(self, span.place(), Source::Bytes(bytes)) {
            return Ok(());
        }
        same_length::<T>(from.len(), span.place())?;
        self.provider().write(span.place(), bytes, true)
    }

    #[cold]
    #[inline(never)]
    fn write_word<W: AtomicWord>(&self, word: &Place, value: W, waited: bool) -> Result<()> {
        self.provider().write(word, bytemuck::bytes_of(&value), waited)
    }
}

fn own(me: Rank, addr: RemoteAddr) -> Result<()> {
    if addr.rank == me {
        Ok(())
    } else {
        Err(FabricError::Unsupported { feature: &"local access to another rank's memory" })
    }
}

/// Returns the bytes of `len` elements. On overflow, returns a number that exceeds every region:
/// the provider, which knows the region's length, refuses it.
#[inline]
fn bytes_of<T>(len: usize) -> usize {
    len.saturating_mul(size_of::<T>())
}

/// Returns the bytes that hold `len` elements in whole words, at least one. On overflow, returns a
/// number that exceeds the memory of every provider.
pub(crate) fn whole_words<T>(len: usize) -> usize {
    bytes_of::<T>(len).max(1).checked_next_multiple_of(8).unwrap_or(usize::MAX)
}
