//! What keeps a region registered, and what happens to its memory when it is dropped.

use super::{allocator::RegisteredExtent, existing::HeldBuffer};
use crate::shm::endpoint::Endpoint;
use rdma_fabric::{OwnedMemory, Region, RegionKey};
use std::fmt;

/// What this provider keeps of a region: it is deregistered when this is dropped.
///
/// An operation that a peer posted just before may still be under way then. If it copies more than
/// 64 bytes, or addresses memory that existed before, the place is not used again until it is over.
/// If it is short, the place is not used again for 20 ms; an operation whose thread is stopped
/// longer than that between its check and its access may reach the region that gets the place next:
/// where that matters, deregister after a barrier with those who use it.
pub(crate) struct Registration {
    endpoint: Endpoint,
    key: RegionKey,
    what: What,
}

#[derive(Debug)]
enum What {
    Local(RegisteredExtent),
    /// Its place is freed by agreement.
    Symmetric,
    /// `None` once it was taken apart.
    Existing(Option<HeldBuffer>),
}

impl Registration {
    pub(crate) fn local(endpoint: Endpoint, len: usize, taken: RegisteredExtent) -> Region {
        let key = taken.key;
        Region::new(key, len, None, Registration { endpoint, key, what: What::Local(taken) })
    }

    pub(crate) fn symmetric(endpoint: Endpoint, len: usize, key: RegionKey) -> Region {
        Region::new(key, len, None, Registration { endpoint, key, what: What::Symmetric })
    }

    pub(crate) fn existing(endpoint: Endpoint, held: HeldBuffer) -> Region {
        let (key, len, way) = (held.key(), held.len(), held.way());
        Region::new(key, len, Some(way), Registration { endpoint, key, what: What::Existing(Some(held)) })
    }

    /// Returns the handle it was allocated through.
    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Lets no new operation into memory that existed before. Returns whether it is such memory.
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

    /// Takes the memory that existed before, once it is closed and no operation is inside.
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
        };
        write!(f, "{kind} memory of {}", self.endpoint.me())
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // Frees the memory at once if nobody is inside; outside the lock.
        if self.close() && self.try_take().is_some() {
            return;
        }
        let me = self.endpoint.me();
        let mut allocator = self.endpoint.allocator();
        let segment = self.endpoint.segment();
        match &mut self.what {
            What::Local(taken) => allocator.free(segment, me, taken),
            What::Symmetric => allocator.symmetric.drop_part(segment, me, self.key),
            What::Existing(held) => allocator.leaving.extend(held.take().map(|held| (me, held))),
        }
    }
}
