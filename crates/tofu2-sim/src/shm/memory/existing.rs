//! Memory that a rank had before it registered it: how it is held, and how it is reached.
//!
//! | way | when | an operation |
//! |---|---|---|
//! | direct | the poster shares the owner's address space | accesses the buffer itself, under a [`UseCount`] |
//! | cross copy | processes, if the probe at first use succeeded | one `pread` or `pwrite` of the owner's memory image, announced ([`super::inside`]) |
//! | staged | processes otherwise, or for atomics; cells (Miri) that the buffer does not fill | accesses an extent of the owner's segment, announced |
//!
//! No address is ever read from shared memory: for direct access it stands in a table of the process
//! ([`Job::adopted`](crate::shm::job::Job::adopted)), for cross copies in a private table of the owner, read through the memory image.
//!
//! # Safety
//! A buffer that was handed over is accessed through [`access`] and nothing else until it is taken, which waits until nobody is
//! inside its gate.

#![allow(unsafe_code)]

use super::{
    allocator::RegisteredExtent,
    inside::{RegionId, UseCount},
    mapping::{Mapping, Piece},
    regions,
};
use crate::shm::{endpoint::Endpoint, job::Job};
use core::{fmt, ptr::NonNull};
use rdma_fabric::{Existing, FabricError, OwnedMemory, Rank, RegionKey, RemoteAddr, Result, Uses, access};
use std::sync::{Arc, Mutex, PoisonError};

#[cfg(target_os = "linux")]
use crate::shm::processes::peer_memory::CrossPlace;
#[cfg(not(target_os = "linux"))]
use core::convert::Infallible as CrossPlace;

/// A buffer that was handed over.
pub(crate) struct Adopted {
    /// `len` bytes of `memory`, accessed through [`access`] by who is inside `gate`, and by nobody else while they are
    /// here.
    start: NonNull<u8>,
    len: usize,
    gate: UseCount,
    /// `None` once it was taken. Its bytes are not touched through it.
    memory: Mutex<Option<OwnedMemory>>,
    /// Of the key it is registered under.
    generation: u32,
    /// Whether atomics may be posted to it.
    atomics: bool,
}

// SAFETY: the pointer leads into `memory`, which is `Send`; see the field.
unsafe impl Send for Adopted {}
// SAFETY: as above; `access` may be used by any thread at any time.
unsafe impl Sync for Adopted {}

impl fmt::Debug for Adopted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Adopted({} bytes)", self.len)
    }
}

/// Whether a buffer consists of whole cells, so that it can be accessed where it is.
fn fits(memory: &mut OwnedMemory) -> bool {
    let bytes = memory.bytes_mut();
    bytes.as_ptr().addr().is_multiple_of(access::CELL) && bytes.len().is_multiple_of(access::CELL)
}

impl Adopted {
    fn new(mut memory: OwnedMemory, generation: u32, atomics: bool) -> Self {
        let bytes = memory.bytes_mut();
        let len = bytes.len();
        let start = NonNull::from(bytes).cast();
        Adopted { start, len, gate: UseCount::default(), memory: Mutex::new(Some(memory)), generation, atomics }
    }

    /// Where the buffer is, for copies by the operating system.
    #[cfg(target_os = "linux")]
    fn address(&self) -> u64 {
        self.start.addr().get() as u64
    }

    /// The buffer, if the gate is closed and nobody is inside.
    fn take(&self) -> Option<OwnedMemory> {
        // Nobody can come in again, so from here on the caller alone has the bytes.
        let quiescent = self.gate.is_quiescent();
        quiescent.then(|| self.memory.lock().unwrap_or_else(PoisonError::into_inner).take()).flatten()
    }
}

/// Bytes of a buffer of this process.
#[derive(Clone, Debug)]
pub(crate) struct DirectPlace {
    /// The bytes; valid while inside the gate of `memory`.
    piece: Piece,
    memory: Arc<Adopted>,
}

impl DirectPlace {
    /// `offset..offset + len` of a buffer, registered in entry `key` of `target`. `None` if that is not inside.
    fn new(memory: &Arc<Adopted>, target: &Arc<Mapping>, key: RegionKey, offset: usize, len: usize) -> Option<Self> {
        offset.checked_add(len).filter(|&end| end <= memory.len)?;
        // SAFETY: inside the buffer, by the check.
        let start = unsafe { memory.start.add(offset) };
        // SAFETY: the piece is used inside the gate only (`within`), while the buffer is there.
        let piece = unsafe { target.outside(start, len, regions::generation_at(key.index as usize), key.generation) };
        Some(DirectPlace { piece, memory: memory.clone() })
    }

    /// Call `f` inside the gate; `None` if it is closed.
    fn within<R>(&self, f: impl FnOnce(&Piece) -> R) -> Option<R> {
        let _inside = self.memory.gate.enter()?;
        Some(f(&self.piece))
    }
}

/// Bytes of memory that existed before it was registered.
#[derive(Clone, Debug)]
pub(crate) enum Outside {
    Direct(DirectPlace),
    Staged(Piece),
    #[cfg_attr(not(target_os = "linux"), allow(dead_code))]
    Cross(CrossPlace),
}

/// What can be done with it, while one is inside.
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
            Outside::Direct(place) => place.piece.len(),
            Outside::Staged(piece) => piece.len(),
            #[cfg(target_os = "linux")]
            Outside::Cross(place) => place.len(),
            #[cfg(not(target_os = "linux"))]
            Outside::Cross(never) => match *never {},
        }
    }

    /// What tells whether it may still be used.
    pub(crate) fn life(&self) -> &Piece {
        match self {
            Outside::Direct(DirectPlace { piece, .. }) | Outside::Staged(piece) => piece,
            #[cfg(target_os = "linux")]
            Outside::Cross(place) => place.life(),
            #[cfg(not(target_os = "linux"))]
            Outside::Cross(never) => match *never {},
        }
    }

    /// Whether atomics may be posted to it.
    pub(crate) fn has_atomics(&self) -> bool {
        match self {
            Outside::Direct(place) => place.memory.atomics,
            Outside::Staged(_) => true,
            Outside::Cross(_) => false,
        }
    }

    pub(crate) fn part(&self, offset: usize, len: usize) -> Option<Self> {
        match self {
            Outside::Direct(place) => Some(Outside::Direct(DirectPlace {
                piece: place.piece.part(offset, len)?,
                memory: place.memory.clone(),
            })),
            Outside::Staged(piece) => piece.part(offset, len).map(Outside::Staged),
            #[cfg(target_os = "linux")]
            Outside::Cross(place) => place.part(offset, len).map(Outside::Cross),
            #[cfg(not(target_os = "linux"))]
            Outside::Cross(never) => match *never {},
        }
    }

    /// Call `f` so that deregistration waits for it. `None` if the region is gone.
    pub(crate) fn within<R>(&self, endpoint: &Endpoint, id: RegionId, f: impl FnOnce(Reached<'_>) -> R) -> Option<R> {
        match self {
            Outside::Direct(place) => place.within(|piece| f(Reached::Piece(piece))),
            Outside::Staged(piece) => {
                let _inside = endpoint.announce([id]);
                Some(f(Reached::Piece(piece)))
            }
            Outside::Cross(place) => {
                let _inside = endpoint.announce([id]);
                // I3; what is reached through a piece looks by itself.
                let gone = self.life().is_lost() || self.life().is_stale();
                (!gone).then(|| f(Reached::Cross(place)))
            }
        }
    }
}

/// How processes reach memory that exists, as far as this process can tell without being a rank.
pub fn existing_of_processes() -> Existing {
    #[cfg(target_os = "linux")]
    return if crate::shm::processes::peer_memory::is_possible() { Existing::CrossCopy } else { Existing::Staged };
    #[cfg(not(target_os = "linux"))]
    Existing::None
}

/// What the owner keeps.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    key: RegionKey,
    len: usize,
    what: What,
    /// Set by [`HeldBuffer::close`]: whether the table entry may be used again.
    closed: Option<bool>,
}

#[derive(Debug)]
enum What {
    /// Reached where it is; from other processes by cross copies if `crosses`.
    Allocator { memory: Arc<Adopted>, crosses: bool },
    /// Reached in an extent of the segment. `None` once that was copied back.
    Staged { memory: Option<OwnedMemory>, taken: RegisteredExtent },
}

/// See [`rdma_fabric::Fabric::adopt`].
pub(crate) fn adopt(
    endpoint: &Endpoint,
    mut memory: OwnedMemory,
    uses: Uses,
) -> Result<HeldBuffer, (FabricError, OwnedMemory)> {
    let job = endpoint.job();
    let way = match job.existing() {
        Existing::Direct if fits(&mut memory) => Existing::Direct,
        Existing::CrossCopy if uses == Uses::Transfers => Existing::CrossCopy,
        _ => Existing::Staged,
    };
    if way == Existing::Staged { stage(endpoint, memory) } else { expose(endpoint, memory, way == Existing::CrossCopy) }
}

/// Register a buffer where it is.
fn expose(endpoint: &Endpoint, memory: OwnedMemory, crosses: bool) -> Result<HeldBuffer, (FabricError, OwnedMemory)> {
    let (me, job, segment) = (endpoint.me(), endpoint.job(), endpoint.segment());
    let index = {
        let own = &mut *endpoint.allocator();
        own.settle(job, segment);
        match own.take_index(me) {
            Ok(index) => index,
            Err(error) => return Err((error, memory)),
        }
    };
    let key = regions::next_key(segment, index);
    let len = memory.len();
    let adopted = Arc::new(Adopted::new(memory, key.generation, !crosses));
    #[cfg(target_os = "linux")]
    if crosses && let Err(error) = job.offer(key, adopted.address(), len) {
        adopted.gate.close();
        endpoint.allocator().give_index(index);
        let memory = adopted.take();
        return Err((error, memory.unwrap_or_else(|| OwnedMemory::new(Vec::<u8>::new()))));
    }
    job.adopted().insert((me, key.index), adopted.clone());
    // After the tables above, which who resolves the key looks at.
    regions::register(segment, index, 0, len, regions::RegionKind::Adopted);
    Ok(HeldBuffer { key, len, what: What::Allocator { memory: adopted, crosses }, closed: None })
}

/// Register a copy of a buffer.
fn stage(endpoint: &Endpoint, memory: OwnedMemory) -> Result<HeldBuffer, (FabricError, OwnedMemory)> {
    let len = memory.len();
    let filled = |segment: &Mapping, offset| segment.fill(offset, memory.bytes());
    match endpoint.take_extent(len, regions::RegionKind::Staged, filled) {
        Ok(taken) => {
            Ok(HeldBuffer { key: taken.key, len, what: What::Staged { memory: Some(memory), taken }, closed: None })
        }
        Err(error) => Err((error, memory)),
    }
}

impl HeldBuffer {
    pub(crate) fn key(&self) -> RegionKey {
        self.key
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn way(&self) -> Existing {
        match self.what {
            What::Allocator { crosses: false, .. } => Existing::Direct,
            What::Allocator { crosses: true, .. } => Existing::CrossCopy,
            What::Staged { .. } => Existing::Staged,
        }
    }

    /// Let no new operation in.
    pub(crate) fn close(&mut self, job: &Job, segment: &Mapping, me: Rank) {
        if self.closed.is_none() {
            // D1, D2.
            self.closed = Some(regions::deregister(segment, self.key.index as usize));
            super::inside::barrier();
            if let What::Allocator { memory, .. } = &self.what {
                memory.gate.close();
                job.adopted().remove(&(me, self.key.index));
            }
        }
    }

    /// Whether it is closed and no operation is inside any more.
    pub(crate) fn is_quiet(&self, job: &Job, me: Rank) -> bool {
        // D3. Whatever is reached inside this process is counted by the gate instead.
        let inside = || job.is_inside(RegionId::new(me, self.key));
        self.closed.is_some()
            && match &self.what {
                What::Allocator { memory, crosses } => memory.gate.is_quiescent() && !(*crosses && inside()),
                What::Staged { .. } => !inside(),
            }
    }

    /// The memory of a quiet region, and what becomes free: the table entry if it may be used again, an extent.
    pub(crate) fn dismantle(self, segment: &Mapping) -> Dismantled {
        let index = (self.closed == Some(true)).then_some(self.key.index as usize);
        match self.what {
            What::Allocator { memory, .. } => Dismantled { memory: memory.take(), index, extent: None },
            What::Staged { memory, taken } => {
                let memory = memory.map(|mut memory| {
                    segment.empty(taken.extent.offset, memory.bytes_mut());
                    memory
                });
                Dismantled { memory, index, extent: Some(taken.extent) }
            }
        }
    }

    /// Give the memory up for ever: other processes may still copy into it.
    pub(crate) fn leak(self) {
        if let What::Allocator { memory, crosses: true } = self.what {
            core::mem::forget(memory);
        }
    }
}

/// See [`HeldBuffer::dismantle`].
pub(crate) struct Dismantled {
    pub(crate) memory: Option<OwnedMemory>,
    pub(crate) index: Option<usize>,
    pub(crate) extent: Option<super::heap::Extent>,
}

/// Resolve bytes of memory that `addr.rank` registered in entry `addr.region` where it was. `region_len` is what the
/// entry says.
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
    if rank != me && job.existing() != Existing::Direct {
        return job.cross(addr, len, align, region_len).map(Outside::Cross);
    }
    let _ = me;
    // Gone since the entry was read, or never there.
    Err(match regions::is_current(target, region) {
        true => FabricError::Corrupt { rank, what: &"an entry of the region table" },
        false => FabricError::StaleRegion { rank, region },
    })
}
