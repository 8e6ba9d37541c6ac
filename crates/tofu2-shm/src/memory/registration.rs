//! Handles that keep a region registered, and the release of its memory when they are dropped.

use super::{allocator::RegisteredExtent, existing::HeldBuffer, heap::Extent};
use crate::endpoint::Endpoint;
use rdma_fabric::{OwnedMemory, Region, RegionKey};
use std::fmt;

/// The provider's part of a region; dropping it deregisters the region.
///
/// An operation that a peer posted just before may then still be in progress. If it copies more
/// than 64 bytes or addresses existing memory, the memory is not reused until it has completed. If
/// it is short, the memory is not reused for 20 ms. An operation whose thread is stopped for longer
/// than that between its check and its access may access the next region at that location; where
/// this matters, deregister after a barrier with the ranks that use the region.
pub(crate) struct Registration {
    endpoint: Endpoint,
    key: RegionKey,
    what: What,
}

#[derive(Debug)]
enum What {
    /// Local memory; `None` once it is abandoned.
    Local(Option<RegisteredExtent>),
    /// A symmetric region, whose memory is freed by agreement of all ranks.
    Symmetric,
    /// Existing memory; `None` once taken apart.
    Existing(Option<HeldBuffer>),
    /// Memory of the program that shares its pages with the heap.
    #[cfg(target_os = "linux")]
    Program,
}

impl Registration {
    pub(crate) fn local(endpoint: Endpoint, len: usize, taken: RegisteredExtent) -> Region {
        let key = taken.key;
        Region::new(key, len, None, Registration { endpoint, key, what: What::Local(Some(taken)) })
    }

    pub(crate) fn symmetric(endpoint: Endpoint, len: usize, key: RegionKey) -> Region {
        Region::new(key, len, None, Registration { endpoint, key, what: What::Symmetric })
    }

    pub(crate) fn existing(endpoint: Endpoint, held: HeldBuffer) -> Region {
        let (key, len, way) = (held.key(), held.len(), held.way());
        Region::new(key, len, Some(way), Registration { endpoint, key, what: What::Existing(Some(held)) })
    }

    #[cfg(target_os = "linux")]
    pub(crate) fn program(endpoint: Endpoint, len: usize, key: RegionKey) -> Region {
        Region::new(key, len, None, Registration { endpoint, key, what: What::Program })
    }

    /// Returns the handle through which the region was allocated.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Returns the extent of a local region of an access policy, and the access policy's terms.
    pub(crate) fn of_policy(&self) -> Option<(Extent, [u64; 3])> {
        match &self.what {
            What::Local(Some(taken)) => Some((taken.extent, taken.terms?)),
            _ => None,
        }
    }

    /// Deregisters local memory, whose bytes are never reused.
    pub(crate) fn abandon(mut self) {
        if let What::Local(taken) = &mut self.what
            && let Some(taken) = taken.take()
        {
            self.endpoint.allocator().leak(self.endpoint.segment(), &taken);
        }
    }

    /// Closes existing memory to new operations. Returns whether the region is such memory.
    pub(crate) fn close(&mut self) -> bool {
        let (job, segment, me) = (self.endpoint.job(), self.endpoint.segment(), self.endpoint.me());
        match &mut self.what {
            What::Existing(Some(held)) => {
                held.close(job, segment, me);
                true
            }
            _ => false,
        }
    }

    /// Takes the existing memory if it is closed and no operation is inside.
    pub(crate) fn try_take(&mut self) -> Option<OwnedMemory> {
        let What::Existing(existing) = &mut self.what else { return None };
        let (job, me) = (self.endpoint.job(), self.endpoint.me());
        let held = existing.take_if(|held| held.is_quiet(job, me))?;
        self.endpoint.allocator().dismantle(self.endpoint.segment(), held)
    }
}

impl fmt::Debug for Registration {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = match &self.what {
            What::Local(_) => "local",
            What::Symmetric => "symmetric",
            What::Existing(_) => "existing",
            #[cfg(target_os = "linux")]
            What::Program => "the program's",
        };
        write!(f, "{kind} memory of {}", self.endpoint.me())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Frees the memory immediately, outside the lock, if no operation is inside.
        if self.close() && self.try_take().is_some() {
            return;
        }
        let me = self.endpoint.me();
        let mut allocator = self.endpoint.allocator();
        let segment = self.endpoint.segment();
        match &mut self.what {
            What::Local(taken) => taken.iter().for_each(|taken| allocator.free(segment, me, taken)),
            What::Symmetric => allocator.symmetric.drop_part(segment, me, self.key),
            What::Existing(held) => allocator.leaving.extend(held.take().map(|held| (me, held))),
            #[cfg(target_os = "linux")]
            What::Program => allocator.end_program_region(segment, self.key),
        }
    }
}
