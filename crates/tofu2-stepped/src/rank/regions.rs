//! Registered memory of this process, which the simulator reads and writes.
//!
//! # Safety
//! The bytes of a region are valid from its entry in [`OwnRegions`] to its removal, and accessed by this
//! process through [`rdma_fabric::access`] only. The simulator accesses them while the process waits for
//! the reply to a request. Every access here is by the table, whose lock it holds, inside the bounds of
//! the region. A [`Place`] that is made here contains an address, but no access by it is possible: its
//! generation word never holds a generation.

#![allow(unsafe_code)]

use super::link::Link;
use crate::wire::{FabricCall, Target};
use core::{
    ptr::{self, NonNull},
    sync::atomic::{AtomicU32, AtomicU64},
};
use memmap2::{MmapOptions, MmapRaw};
use rdma_fabric::{
    Existing, FabricError, OwnedMemory, Rank, Region, RegionKey, RemoteAddr, Result, access,
    error::OutOfMemory,
    provider::{KeepAlive, Place},
};
use std::{
    collections::HashMap,
    sync::{Arc, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The regions of this process, by index and generation.
#[derive(Debug, Default)]
pub(super) struct OwnRegions(RwLock<HashMap<(u32, u32), Bytes>>);

/// An address of this process and a length.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bytes {
    pub(super) start: usize,
    pub(super) len: usize,
}

/// A registration. Dropping it deregisters.
#[derive(Debug)]
pub(super) struct Registered {
    link: Arc<Link>,
    regions: Arc<OwnRegions>,
    key: RegionKey,
    pub(super) bytes: Bytes,
    memory: Memory,
}

/// The owner of a region's bytes.
#[derive(Debug)]
pub(super) enum Memory {
    /// The program's.
    Program,
    /// Adopted; `None` once it was given back.
    Owned(Option<OwnedMemory>),
    Mapped {
        _pages: MmapRaw,
    },
}

/// The generation word and the doorbell of all places.
static NEVER: AtomicU64 = AtomicU64::new(u64::MAX);
static SILENT: AtomicU32 = AtomicU32::new(0);

impl OwnRegions {
    // A panic leaves the map as it was before or after a change.
    fn read(&self) -> RwLockReadGuard<'_, HashMap<(u32, u32), Bytes>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, HashMap<(u32, u32), Bytes>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Maps and registers zeroed bytes.
    pub(super) fn alloc(self: &Arc<Self>, link: &Arc<Link>, bytes: usize, is_symmetric: bool) -> Result<Region> {
        let refused = || OutOfMemory { rank: link.rank, requested: bytes, available: 0, segment: 0 };
        let pages = MmapOptions::new().len(bytes.max(1)).map_anon().map_err(|_| refused())?;
        let pages = MmapRaw::from(pages);
        let start = pages.as_mut_ptr().expose_provenance();
        self.add(link, Bytes { start, len: bytes }, Memory::Mapped { _pages: pages }, is_symmetric)
    }

    /// Registers memory that exists.
    ///
    /// # Safety
    /// Until the region ends, the bytes stay mapped, and are accessed by no reference.
    pub(super) unsafe fn share(self: &Arc<Self>, link: &Arc<Link>, bytes: Bytes) -> Result<Region> {
        self.add(link, bytes, Memory::Program, false)
    }

    /// Registers a buffer.
    pub(super) fn adopt(
        self: &Arc<Self>,
        link: &Arc<Link>,
        mut memory: OwnedMemory,
    ) -> Result<Region, (FabricError, OwnedMemory)> {
        let bytes = Bytes { start: memory.bytes_mut().as_mut_ptr().expose_provenance(), len: memory.len() };
        let registered = register(link, bytes, false);
        match registered {
            Ok(key) => Ok(self.keep(link, key, bytes, Memory::Owned(Some(memory)), Some(Existing::Direct))),
            Err(error) => Err((error, memory)),
        }
    }

    fn add(self: &Arc<Self>, link: &Arc<Link>, bytes: Bytes, memory: Memory, is_symmetric: bool) -> Result<Region> {
        let key = register(link, bytes, is_symmetric)?;
        let existing = matches!(memory, Memory::Program).then_some(Existing::Direct);
        Ok(self.keep(link, key, bytes, memory, existing))
    }

    fn keep(
        self: &Arc<Self>,
        link: &Arc<Link>,
        key: RegionKey,
        bytes: Bytes,
        memory: Memory,
        existing: Option<Existing>,
    ) -> Region {
        self.write().insert((key.index, key.generation), bytes);
        let registered = Registered { link: link.clone(), regions: self.clone(), key, bytes, memory };
        Region::new(key, bytes.len, existing, registered)
    }

    /// Resolves `len` bytes of this process, at an address of its rank `me`.
    pub(super) fn place(&self, addr: RemoteAddr, len: usize, align: usize, keep_alive: KeepAlive) -> Result<Place> {
        let bytes = self.read().get(&(addr.region.index, addr.region.generation)).copied();
        let Some(bytes) = bytes else { return Err(FabricError::StaleRegion { rank: addr.rank, region: addr.region }) };
        check(addr, len, align, bytes.len)?;
        let start = ptr::with_exposed_provenance_mut(bytes.start.wrapping_add(addr.offset as usize));
        // Not null: the bytes are at an address of the process. A region without any may be anywhere.
        let start = NonNull::new(start).unwrap_or(NonNull::dangling());
        // SAFETY: both words are statics, and the first never holds a generation.
        let place =
            unsafe { Place::mapped(start, len, NonNull::from(&NEVER), NonNull::from(&SILENT), addr, keep_alive) };
        Ok(place.hidden())
    }

    /// Calls `access` with the address of a place of this process.
    fn with<T>(&self, target: &Target, access: impl FnOnce(*mut u8) -> T) -> Result<T> {
        let Target { at, len, .. } = *target;
        let regions = self.read();
        let found = regions.get(&(at.region.index, at.region.generation));
        let Some(bytes) = found else { return Err(FabricError::StaleRegion { rank: at.rank, region: at.region }) };
        check(at, len, 1, bytes.len)?;
        Ok(access(ptr::with_exposed_provenance_mut(bytes.start.wrapping_add(at.offset as usize))))
    }

    /// Copies out of a place, which has as many bytes.
    pub(super) fn copy_out(&self, from: &Target, into: &mut [u8]) -> Result<()> {
        same_length(into.len(), from.len)?;
        // SAFETY: the bytes are in a region whose entry is locked, and there are as many.
        self.with(from, |start| unsafe { access::copy_out(into.as_mut_ptr(), start, into.len()) })
    }

    /// Copies into a place, which has as many bytes.
    pub(super) fn copy_in(&self, to: &Target, from: &[u8]) -> Result<()> {
        same_length(from.len(), to.len)?;
        // SAFETY: as in `copy_out`.
        self.with(to, |start| unsafe { access::copy_in(start, from.as_ptr(), from.len()) })
    }
}

fn register(link: &Arc<Link>, bytes: Bytes, is_symmetric: bool) -> Result<RegionKey> {
    link.fabric(FabricCall::Register { start: bytes.start as u64, len: bytes.len, is_symmetric })
}

fn same_length(have: usize, want: usize) -> Result<()> {
    if have == want { Ok(()) } else { Err(FabricError::length_mismatch(have, want)) }
}

/// Checks that `len` bytes at `addr` are inside a region, and aligned.
pub(super) fn check(addr: RemoteAddr, len: usize, align: usize, region: usize) -> Result<()> {
    if addr.offset.checked_add(len as u64).is_none_or(|end| end > region as u64) {
        return Err(FabricError::out_of_bounds(addr, len as u64, region as u64));
    }
    if align > 1 && !addr.offset.is_multiple_of(align as u64) {
        return Err(FabricError::misaligned(addr, align));
    }
    Ok(())
}

impl Registered {
    /// Ends the registration of adopted memory, and returns it; `None` for other memory.
    pub(super) fn release(mut self) -> Option<OwnedMemory> {
        match &mut self.memory {
            Memory::Owned(memory) => memory.take().inspect(|_| self.end()),
            Memory::Program | Memory::Mapped { .. } => None,
        }
    }

    /// Deregisters, once.
    fn end(&self) {
        if self.regions.write().remove(&(self.key.index, self.key.generation)).is_some() {
            // Fails only if the simulator has ended, which then accesses nothing any more.
            let _ = self.link.fabric::<()>(FabricCall::Deregister { key: self.key });
        }
    }
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.end();
    }
}

/// The lengths of other ranks' regions, valid as long as none is deregistered.
#[derive(Debug, Default)]
pub(super) struct RemoteRegions {
    deregistered: u64,
    known: HashMap<(u32, u32, u32), usize>,
}

impl RemoteRegions {
    /// Returns the length of a region in bytes.
    pub(super) fn len_of(&mut self, link: &Arc<Link>, rank: Rank, key: RegionKey) -> Result<usize> {
        if self.deregistered != link.deregistered() {
            self.known.clear();
        }
        let name = (rank.number(), key.index, key.generation);
        if let Some(len) = self.known.get(&name) {
            return Ok(*len);
        }
        let len = link.fabric(FabricCall::RegionLen { rank, key })?;
        // The reply may have reported another number.
        if self.deregistered != link.deregistered() {
            self.known.clear();
            self.deregistered = link.deregistered();
        }
        self.known.insert(name, len);
        Ok(len)
    }
}
