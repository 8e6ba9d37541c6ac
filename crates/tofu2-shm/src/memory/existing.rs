//! Registration of existing memory: the owner's records, and the return of the memory to its owner.
//! [`adopted`](super::adopted) describes how operations access it.

use super::{
    adopted::Adopted,
    allocator::RegisteredExtent,
    heap::Extent,
    inside::{self, RegionId},
    mapping::Mapping,
    regions::{self, RegionKind},
};
use crate::{endpoint::Endpoint, job::Job};
use rdma_fabric::{Existing, FabricError, OwnedMemory, Rank, RegionKey, Result, Uses, access};
use std::sync::Arc;

/// Returns whether a buffer consists of whole cells, so that it can be accessed in place.
fn fits(memory: &mut OwnedMemory) -> bool {
    let bytes = memory.bytes_mut();
    bytes.as_ptr().addr().is_multiple_of(access::CELL) && bytes.len().is_multiple_of(access::CELL)
}

/// Returns how ranks that are processes access existing memory, as far as this process can
/// determine without being a rank.
pub fn existing_of_processes() -> Existing {
    #[cfg(target_os = "linux")]
    return if crate::processes::peer_memory::is_possible() { Existing::CrossCopy } else { Existing::Staged };
    #[cfg(not(target_os = "linux"))]
    Existing::None
}

/// The owner's record of adopted memory.
#[derive(Debug)]
pub(crate) struct HeldBuffer {
    key: RegionKey,
    len: usize,
    what: What,
    /// Set by [`HeldBuffer::close`] to whether the table entry may be used again.
    closed: Option<bool>,
}

#[derive(Debug)]
enum What {
    /// Accessed in place; from other processes by cross copies if `crosses`.
    Allocator { memory: Arc<Adopted>, crosses: bool },
    /// Accessed in an extent of the segment.
    Staged { memory: Option<OwnedMemory>, taken: RegisteredExtent },
}

/// Registers existing memory: see [`rdma_fabric::OwnedMemory::register`].
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

/// Registers a buffer in place.
fn expose(endpoint: &Endpoint, memory: OwnedMemory, crosses: bool) -> Result<HeldBuffer, (FabricError, OwnedMemory)> {
    let (me, job, segment) = (endpoint.me(), endpoint.job(), endpoint.segment());
    let index = {
        let allocator = &mut *endpoint.allocator();
        allocator.settle(job, segment);
        match allocator.take_index(me) {
            Ok(index) => index,
            Err(error) => return Err((error, memory)),
        }
    };
    let key = regions::next_key(segment, index);
    let len = memory.len();
    let adopted = Arc::new(Adopted::new(memory, key.generation, !crosses));
    #[cfg(target_os = "linux")]
    if crosses && let Err(error) = job.offer(key, adopted.address(), len) {
        adopted.uses.close();
        endpoint.allocator().give_index(index);
        let memory = adopted.take();
        return Err((error, memory.unwrap_or_else(|| OwnedMemory::new(Vec::<u8>::new()))));
    }
    job.adopted().insert((me, key.index), adopted.clone());
    // After filling the tables above, in which resolving looks up the key.
    regions::register(segment, index, 0, len, RegionKind::Adopted);
    Ok(HeldBuffer { key, len, what: What::Allocator { memory: adopted, crosses }, closed: None })
}

/// Registers a copy of a buffer in the segment.
fn stage(endpoint: &Endpoint, memory: OwnedMemory) -> Result<HeldBuffer, (FabricError, OwnedMemory)> {
    let len = memory.len();
    let filled = |segment: &Mapping, offset| segment.fill(offset, memory.bytes());
    match endpoint.take_extent(len, RegionKind::Staged, filled) {
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

    /// Deregisters the memory and admits no further operations; does nothing if already closed.
    pub(crate) fn close(&mut self, job: &Job, segment: &Mapping, me: Rank) {
        if self.closed.is_none() {
            // D1, D2.
            self.closed = Some(regions::deregister(segment, self.key.index as usize));
            inside::barrier();
            if let What::Allocator { memory, .. } = &self.what {
                memory.uses.close();
                job.adopted().remove(&(me, self.key.index));
            }
        }
    }

    /// Returns whether it is closed and no operation is inside any longer.
    pub(crate) fn is_quiet(&self, job: &Job, me: Rank) -> bool {
        // D3. Operations within this process are counted by the use count instead.
        let inside = || job.is_inside(RegionId::new(me, self.key));
        self.closed.is_some()
            && match &self.what {
                What::Allocator { memory, crosses } => memory.uses.is_quiescent() && !(*crosses && inside()),
                What::Staged { .. } => !inside(),
            }
    }

    /// Takes a quiet region apart: returns its memory, its table entry if it may be used again, and
    /// its extent if it has one.
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

    /// Leaks the memory if other processes may still copy into it.
    pub(crate) fn leak(self) {
        if let What::Allocator { memory, crosses: true } = self.what {
            core::mem::forget(memory);
        }
    }
}

/// The parts of a region that [`HeldBuffer::dismantle`] took apart: its memory, its table entry and
/// its extent.
pub(crate) struct Dismantled {
    pub(crate) memory: Option<OwnedMemory>,
    pub(crate) index: Option<usize>,
    pub(crate) extent: Option<Extent>,
}
