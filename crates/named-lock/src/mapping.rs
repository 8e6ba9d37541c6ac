//! A lock's file, mapped: its words, and the parts of its ranks.
//!
//! # Safety
//! `base..base + len` is mapped, shared and writable, from [`Mapping::new`] until the last owner is
//! dropped; `base` is aligned to a page, and `len` is [`layout::file_bytes`]. Words, which precede
//! [`layout::PARTS`], are accessed as atomics only, each always with the same width:
//! [`Mapping::word`] refuses doorbells, and [`Mapping::doorbell`] returns only doorbells. The parts
//! behind them are accessed through [`access`] only. Wherever an address is computed from an
//! offset, the offset is checked. Other processes may write anything at any time, which for atomics
//! and `access` is a value like any other. (If a process truncates the file, the system raises a
//! fatal signal in every process that accesses the missing pages; no access reaches other memory.)

#![allow(unsafe_code)]

use crate::{
    Error, Result,
    layout::{self, ALIVE, RANKS},
};
use core::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, AtomicU64},
};
use memmap2::{MmapOptions, MmapRaw};
use rdma_fabric::{
    Amo, RemoteAddr, access,
    provider::{KeepAlive, Place},
};
use std::{os::fd::OwnedFd, path::Path, sync::Arc};

/// A mapped file.
#[derive(Debug)]
pub(crate) struct Mapping {
    base: NonNull<u8>,
    map: MmapRaw,
}

// SAFETY: all accesses are atomics or go through `access`, which any thread may use at any time;
// unmapped when the last owner is dropped.
unsafe impl Send for Mapping {}
// SAFETY: as for `Send`.
unsafe impl Sync for Mapping {}

impl Mapping {
    /// Maps a file whose length was compared with [`layout::file_bytes`].
    pub(crate) fn new(file: &OwnedFd, path: &Path) -> Result<Arc<Self>> {
        let refused = |cause| Error::System { call: "mmap", path: path.to_owned(), cause };
        let map = MmapOptions::new().len(layout::file_bytes()).map_raw(file).map_err(refused)?;
        let base = NonNull::new(map.as_mut_ptr()).ok_or_else(|| Error::foreign(path, "was mapped at address 0"))?;
        Ok(Arc::new(Mapping { base, map }))
    }

    /// Returns the 8-byte word at `at`.
    ///
    /// # Panics
    /// If there is no word at `at`; all offsets are from [`layout`] and checked ranks.
    #[inline(always)]
    pub(crate) fn word(&self, at: usize) -> &AtomicU64 {
        let is_doorbell = at >= layout::slot(0) && at % layout::SLOT == layout::DOORBELL;
        assert!(at.is_multiple_of(8) && at + 8 <= layout::PARTS && !is_doorbell);
        // SAFETY: inside the mapping, before the parts, aligned, and not a doorbell: by the
        // assertion.
        unsafe { AtomicU64::from_ptr(self.base.as_ptr().add(at).cast()) }
    }

    /// Returns a word of a rank's slot.
    ///
    /// # Panics
    /// As [`Mapping::word`].
    #[inline(always)]
    pub(crate) fn slot_word(&self, rank: usize, word: usize) -> &AtomicU64 {
        assert!(rank < RANKS && word < layout::SLOT);
        self.word(layout::slot(rank) + word)
    }

    /// Returns a rank's doorbell.
    ///
    /// # Panics
    /// If `rank` is out of range.
    #[inline(always)]
    pub(crate) fn doorbell(&self, rank: usize) -> &AtomicU32 {
        assert!(rank < RANKS);
        // SAFETY: inside the mapping, before the parts, and aligned; accessed here only.
        unsafe { AtomicU32::from_ptr(self.base.as_ptr().add(layout::slot(rank) + layout::DOORBELL).cast()) }
    }

    /// Returns the location of `len` bytes at an address in the lock's parts; `None` if they are
    /// not inside the rank's part.
    fn part(&self, addr: RemoteAddr, len: usize) -> Option<NonNull<u8>> {
        let (rank, bytes) = (addr.rank.index(), layout::part_bytes());
        let offset = usize::try_from(addr.offset).ok()?;
        offset.checked_add(len).filter(|&end| end <= bytes && rank < RANKS)?;
        let at = layout::PARTS + rank * bytes + offset;
        assert!(at + len <= self.map.len());
        // SAFETY: inside the mapping, by the assertion.
        Some(unsafe { self.base.add(at) })
    }

    /// Returns the place of bytes in the lock's parts; `None` if they are not inside the rank's
    /// part, or if the keep-alive does not hold this mapping.
    pub(crate) fn place(&self, addr: RemoteAddr, len: usize, keep_alive: &KeepAlive) -> Option<Place> {
        keep_alive.get::<Arc<Mapping>>().filter(|kept| ptr::eq(&***kept, self))?;
        let start = self.part(addr, len).filter(|_| addr.region.generation == ALIVE)?;
        let rank = addr.rank.index();
        let live = NonNull::from(self.slot_word(rank, layout::LIVE));
        let doorbell = NonNull::from(self.doorbell(rank));
        // SAFETY: the keep-alive keeps alive the mapping, which contains all of these; the bytes
        // are valid for every value of `live`, and accessed through `access` only.
        Some(unsafe { Place::mapped(start, len, live, doorbell, addr, keep_alive.clone()) })
    }

    /// Copies bytes out of the lock's parts. Returns false if the range is not inside a part.
    pub(crate) fn copy_out(&self, from: RemoteAddr, to: &mut [u8]) -> bool {
        let Some(start) = self.part(from, to.len()) else { return false };
        // SAFETY: the range has `to.len()` bytes of a part.
        unsafe { access::copy_out(to.as_mut_ptr(), start.as_ptr(), to.len()) };
        true
    }

    /// Copies bytes into the lock's parts. Returns false if the range is not inside a part.
    pub(crate) fn copy_in(&self, to: RemoteAddr, from: &[u8]) -> bool {
        let Some(start) = self.part(to, from.len()) else { return false };
        // SAFETY: the range has `from.len()` bytes of a part.
        unsafe { access::copy_in(start.as_ptr(), from.as_ptr(), from.len()) };
        true
    }

    /// Modifies an 8-byte word of the lock's parts; returns `None` if there is none at the address.
    pub(crate) fn modify(&self, word: RemoteAddr, amo: Amo<u64>) -> Option<u64> {
        let start = self.part(word, 8).filter(|start| start.addr().get().is_multiple_of(8))?;
        // SAFETY: 8 aligned bytes of a part.
        Some(unsafe { access::rmw(start.as_ptr(), 8, amo) })
    }
}

#[cfg(test)]
impl Mapping {
    /// Maps a new file of zeros with the length of a lock's file.
    pub(crate) fn blank() -> Arc<Self> {
        let file = tempfile::tempfile().expect("a file");
        file.set_len(layout::file_bytes() as u64).expect("long enough");
        Mapping::new(&file.into(), Path::new("blank")).expect("mapped")
    }
}
