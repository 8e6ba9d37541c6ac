//! Access to memory that existed before it was registered.
//!
//! | way | when | an operation |
//! |---|---|---|
//! | direct | the poster shares the owner's address space | accesses the buffer itself, counted by a [`UseCount`] |
//! | cross copy | processes, if the probe at first use succeeded | one `pread` or `pwrite` of the owner's memory image, announced ([`super::inside`]) |
//! | staged | processes otherwise, or for atomics; cells (Miri) that the buffer does not fill | accesses an extent of the owner's segment, announced |
//!
//! No address is ever read from shared memory: for direct access it is in a table of the process
//! ([`Job::adopted`]); for cross copies it is in a private table of the owner, read through the
//! memory image.
//!
//! # Safety
//! A buffer that was moved in is accessed only through [`rdma_fabric::access`] until it is taken,
//! which happens only once its use count is closed and no operation is inside.

#![allow(unsafe_code)]

use super::{
    inside::{RegionId, UseCount},
    mapping::{Mapping, Piece},
    regions,
};
use crate::{endpoint::Endpoint, job::Job};
use core::{fmt, ptr::NonNull};
use rdma_fabric::{FabricError, OwnedMemory, Rank, RegionKey, RemoteAddr, Result};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_os = "linux")]
use crate::processes::cross_copy::CrossPlace;
#[cfg(not(target_os = "linux"))]
use no_processes::CrossPlace;

/// A buffer that was moved in.
pub(crate) struct Adopted {
    /// `len` bytes of `memory`, accessed through `access` by the operations that `uses` counts, and
    /// by nothing else while the fabric owns the buffer.
    start: NonNull<u8>,
    len: usize,
    pub(crate) uses: UseCount,
    /// The owner of the bytes, which are not accessed through it; `None` once taken.
    memory: Mutex<Option<OwnedMemory>>,
    /// The generation of the key under which it is registered.
    generation: u32,
    /// Whether atomics may be posted to it.
    atomics: bool,
}

// SAFETY: the pointer leads into `memory`, which is `Send`; see the field.
unsafe impl Send for Adopted {}
// SAFETY: as for `Send`; `access` may be used by any thread at any time.
unsafe impl Sync for Adopted {}

impl fmt::Debug for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adopted({} bytes)", self.len)
    }
}

impl Adopted {
    pub(crate) fn new(mut memory: OwnedMemory, generation: u32, atomics: bool) -> Self {
        let bytes = memory.bytes_mut();
        let len = bytes.len();
        let start = NonNull::from(bytes).cast();
        Adopted { start, len, uses: UseCount::default(), memory: Mutex::new(Some(memory)), generation, atomics }
    }

    /// Returns the buffer's address, for copies by the operating system.
    #[cfg(target_os = "linux")]
    pub(crate) fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// Takes the buffer if its use count is closed and no operation is inside.
    pub(crate) fn take(&self) -> Option<OwnedMemory> {
        // No operation can enter any more, so from here on only the caller accesses the bytes.
        let quiescent = self.uses.is_quiescent();
        quiescent.then(|| self.memory.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten()
    }
}

/// Bytes of a buffer of this process.
#[derive(Clone, Debug)]
pub(crate) struct DirectPlace {
    /// The bytes; valid while counted among the uses of `memory`.
    piece: Piece,
    memory: Arc<Adopted>,
}

impl DirectPlace {
    /// Makes the place for bytes `offset..offset + len` of a buffer that is registered as `key` in
    /// `target`. `None` if they are not inside the buffer.
    fn new(memory: &Arc<Adopted>, target: &Arc<Mapping>, key: RegionKey, offset: usize, len: usize) -> Option<Self> {
        offset.checked_add(len).filter(|&end| end <= memory.len)?;
        // SAFETY: inside the buffer, by the check.
        let start = unsafe { memory.start.add(offset) };
        // SAFETY: the piece is used only while it is counted (`within`), and so only while the
        // buffer exists.
        let piece = unsafe { target.outside(start, len, regions::generation_at(key.index as usize), key.generation) };
        Some(DirectPlace { piece, memory: memory.clone() })
    }
}

/// Bytes of registered existing memory, by their access method.
#[derive(Clone, Debug)]
pub(crate) enum Outside {
    Direct(DirectPlace),
    Staged(Piece),
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Cross(CrossPlace),
}

/// The bytes that an operation accesses while deregistration waits for it.
pub(crate) enum Reached<'a> {
    /// Bytes of a segment.
    Segment(&'a Piece<&'a Mapping>),
    Piece(&'a Piece),
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Cross(&'a CrossPlace),
}

impl Outside {
    pub(crate) fn len(&self) -> usize {
        match self {
            Outside::Direct(DirectPlace { piece, .. }) | Outside::Staged(piece) => piece.len(),
            Outside::Cross(place) => place.len(),
        }
    }

    /// Returns the piece that shows whether the memory may still be used.
    pub(crate) fn life(&self) -> &Piece {
        match self {
            Outside::Direct(DirectPlace { piece, .. }) | Outside::Staged(piece) => piece,
            Outside::Cross(place) => place.life(),
        }
    }

    /// Returns whether atomics may be posted to the memory.
    pub(crate) fn has_atomics(&self) -> bool {
        match self {
            Outside::Direct(place) => place.memory.atomics,
            Outside::Staged(_) => true,
            Outside::Cross(_) => false,
        }
    }

    /// Returns the `len` bytes from `offset` on, if they are inside.
    pub(crate) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        Some(match self {
            Outside::Direct(DirectPlace { piece, memory }) => {
                Outside::Direct(DirectPlace { piece: piece.part(offset, len)?, memory: memory.clone() })
            }
            Outside::Staged(piece) => Outside::Staged(piece.part(offset, len)?),
            Outside::Cross(place) => Outside::Cross(place.part(offset, len)?),
        })
    }

    /// Calls `f`; deregistration waits until it returns. `None` if the region has been
    /// deregistered.
    pub(crate) fn within<R>(&self, endpoint: &Endpoint, id: RegionId, f: impl FnOnce(Reached<'_>) -> R) -> Option<R> {
        match self {
            Outside::Direct(place) => {
                let _inside = place.memory.uses.enter()?;
                Some(f(Reached::Piece(&place.piece)))
            }
            Outside::Staged(piece) => {
                let _inside = endpoint.announce([id]);
                Some(f(Reached::Piece(piece)))
            }
            Outside::Cross(place) => {
                let _inside = endpoint.announce([id]);
                // I3; accesses through a piece check this themselves.
                let gone = self.life().is_lost() || self.life().is_stale();
                (!gone).then(|| f(Reached::Cross(place)))
            }
        }
    }
}

/// Resolves bytes of memory that `addr.rank` registered in place, as `addr.region`. `region_len` is
/// the length in the table entry.
pub(crate) fn resolve(
    job: &Job,
    me: Rank,
    addr: RemoteAddr,
    len: usize,
    align: usize,
    region_len: usize,
) -> Result<Outside> {
    let RemoteAddr { rank, region, .. } = addr;
    let target = job.segment(rank)?;
    let offset = usize::try_from(addr.offset).unwrap_or(usize::MAX);
    let adopted = job.adopted().get(&(rank, region.index)).cloned();
    if let Some(memory) = adopted.filter(|memory| memory.generation == region.generation && memory.len == region_len) {
        let place = DirectPlace::new(&memory, target, region, offset, len);
        let place = place.ok_or(FabricError::Corrupt { rank, what: &"an entry of the region table" })?;
        if !place.piece.is_aligned(align) {
            return Err(FabricError::misaligned(addr, align));
        }
        return Ok(Outside::Direct(place));
    }
    #[cfg(target_os = "linux")]
    if rank != me && job.existing() != rdma_fabric::Existing::Direct {
        return job.cross(addr, len, align, region_len).map(Outside::Cross);
    }
    let _ = me;
    // The region was deregistered after the entry was read, or never existed.
    Err(match regions::is_current(target, region) {
        true => FabricError::Corrupt { rank, what: &"an entry of the region table" },
        false => FabricError::StaleRegion { rank, region },
    })
}

/// Stand-ins for other processes' memory on systems where ranks are never processes.
#[cfg(not(target_os = "linux"))]
mod no_processes {
    use super::{Piece, RemoteAddr, Result};

    /// Bytes of another process's memory, of which there are none.
    #[derive(Clone, Debug)]
    pub(crate) enum CrossPlace {}

    impl CrossPlace {
        pub(crate) fn len(&self) -> usize {
            match *self {}
        }
        pub(crate) fn life(&self) -> &Piece {
            match *self {}
        }
        pub(crate) fn part(&self, _: usize, _: usize) -> Option<Self> {
            match *self {}
        }
        pub(crate) fn write(&self, _: &[u8], _: RemoteAddr) -> Result<()> {
            match *self {}
        }
        pub(crate) fn read(&self, _: &mut [u8], _: RemoteAddr) -> Result<()> {
            match *self {}
        }
    }
}
