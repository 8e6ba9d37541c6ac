//! A resolved place: the argument of every operation that moves bytes.
//!
//! # One comparison
//! A place of mapped memory points to the word of the owner's table that holds its region's
//! generation. As long as that word holds the generation that the place was resolved with, the
//! region is registered, its rank lives, and the bytes may be accessed *directly*, on any provider.
//! If memory is not mapped, or a wrapper has to observe every access, the place points to a word
//! that never holds a generation. So the comparison that detects a stale region detects these cases
//! as well, and an access that passes it does not call the provider.
//!
//! # One truth
//! A place holds an address, a length and, mostly, a pointer, which must agree. Its [`KeepAlive`]
//! is the seal that certifies this: only a provider's own code has the provider's keep-alives, and
//! a place never exposes its keep-alive. So safe code can pass places on, [narrow](Place::part)
//! them and [hide](Place::hidden) them, but cannot assemble one that a provider accepts as its own.
//!
//! # Safety
//! [`Place::mapped`] is the only way to create a place whose comparison can succeed; its caller
//! guarantees that the memory is valid as long as it succeeds. [`Place::part`] checks against the
//! place.

#![allow(unsafe_code)]

mod blocks;
mod direct;
mod within;

use super::KeepAlive;
use crate::{Rank, RegionKey, RemoteAddr};
use core::{
    any::Any,
    fmt,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};

/// The generation word of places whose accesses are not direct: no place expects its value.
static NEVER: AtomicU64 = AtomicU64::new(u64::MAX);
/// A bit of a place's expected generation: the place is not an aligned word of 8 bytes.
const NO_WORD: u64 = 1 << 63;
/// Bit of a place's offset: the place is the target of a prepared descriptor.
const PREPARED: u64 = 1 << 63;
/// A doorbell without an owner.
static SILENT: AtomicU32 = AtomicU32::new(0);

/// The start of places in memory that is not mapped: as aligned as their offset.
const NOWHERE: NonNull<u8> = NonNull::<Page>::dangling().cast();
#[repr(align(4096))]
struct Page;

/// The longest copy that is executed directly, in bytes: such copies take few instructions, and the
/// owner is not notified of them.
pub const SHORT: usize = 64;

/// Some bytes of a region of a rank, checked when they were resolved.
///
/// A place keeps its memory alive but not its region, which may be deregistered; from then on every
/// access fails.
#[derive(Clone)]
pub struct Place {
    /// Holds the region's generation if accesses are direct.
    live: NonNull<AtomicU64>,
    /// The start of the `len` bytes, where memory is mapped.
    start: NonNull<u8>,
    /// Bit 0 is set if the owner may be parked.
    doorbell: NonNull<AtomicU32>,
    keep_alive: KeepAlive,
    len: u64,
    /// Offset in the region, in bytes, with [`PREPARED`] set where it applies: direct accesses do
    /// not use the offset.
    offset: u64,
    rank: Rank,
    /// The region's index.
    index: u32,
    /// The region's generation, with [`NO_WORD`] set where it applies, so that an 8-byte word is
    /// accessed after a single comparison.
    expected: u64,
}

const _: () = assert!(size_of::<Place>() <= 64);

// SAFETY: the pointers point into the value kept by `keep_alive`, which may be used by any thread,
// or to statics.
unsafe impl Send for Place {}
// SAFETY: as above.
unsafe impl Sync for Place {}

impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let RemoteAddr { rank, region, offset } = self.addr();
        write!(f, "Place({rank} {region:?}+{offset}, {} bytes)", self.len)
    }
}

impl Place {
    /// Creates a place that is usable only by the provider that created `keep_alive`, which has
    /// checked `addr` and `len`. Any other provider refuses it.
    pub fn remote(addr: RemoteAddr, len: usize, keep_alive: KeepAlive) -> Self {
        let (live, doorbell) = (NonNull::from(&NEVER), NonNull::from(&SILENT));
        let start = NOWHERE.map_addr(|page| page | (addr.offset as usize % align_of::<Page>()));
        Place::of(live, start, doorbell, keep_alive, (addr, len))
    }

    #[inline]
    fn of(
        live: NonNull<AtomicU64>,
        start: NonNull<u8>,
        doorbell: NonNull<AtomicU32>,
        keep_alive: KeepAlive,
        (addr, len): (RemoteAddr, usize),
    ) -> Self {
        let RemoteAddr { rank, region, offset } = addr;
        let expected = expected(region.generation, start, len);
        Place { live, start, doorbell, keep_alive, len: len as u64, offset, rank, index: region.index, expected }
    }

    /// Creates a place in memory of this process: the `len` bytes at `start`, which can be used as
    /// long as `live` holds the generation of `addr`'s region. Bit 0 of `doorbell` is set if the
    /// owner must be [woken](crate::provider::Provider::wake) after a write.
    ///
    /// # Safety
    /// As long as `keep_alive` is kept, `live` and `doorbell` are valid; whenever `live` holds the
    /// generation, the bytes are valid too. All accesses to them go through [`access`](crate::access).
    #[inline]
    pub unsafe fn mapped(
        start: NonNull<u8>,
        len: usize,
        live: NonNull<AtomicU64>,
        doorbell: NonNull<AtomicU32>,
        addr: RemoteAddr,
        keep_alive: KeepAlive,
    ) -> Self {
        Place::of(live, start, doorbell, keep_alive, (addr, len))
    }

    /// Returns this place with all accesses going through the provider, for wrappers that have to
    /// observe them.
    #[must_use]
    pub fn hidden(mut self) -> Self {
        (self.live, self.doorbell) = (NonNull::from(&NEVER), NonNull::from(&SILENT));
        self
    }

    /// Returns the first byte if memory is mapped; otherwise meaningless. For the provider.
    #[inline]
    pub fn start(&self) -> NonNull<u8> {
        self.start
    }

    /// Returns the value that the provider keeps for this place, if it is a `T`.
    #[inline]
    pub fn keep_alive<T: Any>(&self) -> Option<&T> {
        self.keep_alive.get()
    }

    /// Returns whether the place was created with this keep-alive or a clone of it.
    #[inline]
    pub fn has_keep_alive(&self, keep_alive: &KeepAlive) -> bool {
        self.keep_alive.is(keep_alive)
    }
}

/// Returns the value that the generation word of a place that starts here must hold, for accesses
/// to 8 bytes.
#[inline]
fn expected(generation: u32, start: NonNull<u8>, len: usize) -> u64 {
    let is_word = len == 8 && start.addr().get().is_multiple_of(8);
    u64::from(generation) | if is_word { 0 } else { NO_WORD }
}

impl Place {
    /// Returns the rank whose memory contains the place.
    #[inline]
    pub fn rank(&self) -> Rank {
        self.rank
    }

    /// Returns the address of the first byte.
    #[inline]
    pub fn addr(&self) -> RemoteAddr {
        let region = RegionKey { index: self.index, generation: self.expected as u32 };
        RemoteAddr { rank: self.rank, region, offset: self.offset & !PREPARED }
    }

    /// Returns this place as the target of a descriptor that was built before
    /// ([`Prepared`](crate::Prepared)): for providers that forward operations.
    #[must_use]
    pub fn prepared(mut self) -> Self {
        self.offset |= PREPARED;
        self
    }

    /// Returns whether the operation that has this target was prepared, so that posting it needs no
    /// new descriptor. For providers to which that makes a difference.
    #[inline]
    pub fn is_prepared(&self) -> bool {
        self.offset & PREPARED != 0
    }

    /// Returns the length in bytes.
    #[inline]
    pub fn len(&self) -> usize {
        self.len as usize
    }

    /// Returns whether the place has no bytes.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns whether the `len` bytes starting at `offset` are inside.
    #[inline(always)]
    pub(super) fn contains(&self, offset: usize, len: usize) -> bool {
        offset.checked_add(len).is_some_and(|end| end as u64 <= self.len)
    }

    /// Returns whether the place starts at a multiple of `align` bytes, both in its region and, if
    /// it is mapped, in this process.
    #[inline(always)]
    pub(super) fn is_aligned(&self, align: usize) -> bool {
        (self.offset as usize | self.start.addr().get()).is_multiple_of(align)
    }

    /// Returns the `len` bytes starting at `offset`, which must be inside.
    #[inline(always)]
    pub(super) fn narrowed(mut self, offset: usize, len: usize) -> Self {
        // Both are inside the place, so neither can overflow; if nothing is mapped, the pointer is
        // not used.
        self.offset += offset as u64;
        self.start = NonNull::new(self.start.as_ptr().wrapping_add(offset)).unwrap_or(self.start);
        self.len = len as u64;
        self.expected = expected(self.expected as u32, self.start, len);
        self
    }

    /// Returns the `len` bytes starting at `offset`; `None` if they are not inside.
    pub fn part(&self, offset: usize, len: usize) -> Option<Self> {
        self.contains(offset, len).then(|| self.clone().narrowed(offset, len))
    }
}
