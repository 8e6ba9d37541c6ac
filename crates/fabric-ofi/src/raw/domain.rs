//! Fabrics and domains, and the addresses that nobody may get again before a domain is closed.

use super::{Failed, Info, close, memory::Memory, sys};
use std::{
    mem,
    ptr::{NonNull, null_mut},
    sync::{Arc, Mutex, PoisonError},
};

/// An open fabric.
#[derive(Debug)]
struct Fabric(NonNull<sys::fid_fabric>);

impl Drop for Fabric {
    fn drop(&mut self) {
        // SAFETY: the only domain that was opened through it is closed, or this is not called.
        unsafe { close(self.0.as_ptr().cast()) };
    }
}

/// An open domain. All that is opened through it holds it.
#[derive(Debug)]
pub(crate) struct Domain {
    domain: NonNull<sys::fid_domain>,
    /// Memory whose registration is closed.
    ///
    /// A provider in software may be half-way through a message for it, in another thread. So it
    /// stays mapped until all endpoints are closed: bytes that come late land in memory that nobody
    /// has.
    retired: Mutex<Vec<Memory>>,
    fabric: Option<Fabric>,
    info: Arc<Info>,
}

// SAFETY: the interface asks for no care about threads: offers are asked for with FI_THREAD_SAFE,
// and control calls are safe in any case.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    /// Opens the fabric and the domain of an offer.
    pub(crate) fn open(info: Arc<Info>) -> Result<Arc<Self>, Failed> {
        let (mut fabric, mut domain) = (null_mut(), null_mut());
        // SAFETY: the offer is libfabric's own, with all its attributes, and lives as long as the
        // domain.
        let returned = unsafe { sys::fi_fabric((*info.as_ptr()).fabric_attr, &mut fabric, null_mut()) };
        let fabric = Fabric(Failed::object("fi_fabric", returned, fabric)?);
        // SAFETY: the fabric is open, and the offer as above.
        let returned = unsafe { sys::fi_domain(fabric.0.as_ptr(), info.as_ptr(), &mut domain, null_mut()) };
        let domain = Failed::object("fi_domain", returned, domain)?;
        Ok(Arc::new(Self { domain, retired: Mutex::default(), fabric: Some(fabric), info }))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::fid_domain {
        self.domain.as_ptr()
    }

    /// Returns the offer that it was opened from.
    pub(crate) fn info(&self) -> &Info {
        &self.info
    }

    /// Keeps memory whose registration is closed until the domain is.
    pub(super) fn retire(&self, memory: Memory) {
        memory.give_pages_back();
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).push(memory);
    }

    /// Returns how many bytes of addresses wait for the domain to be closed.
    pub(crate) fn retired_bytes(&self) -> usize {
        self.retired.lock().unwrap_or_else(PoisonError::into_inner).iter().map(Memory::len).sum()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: endpoints, queues and registrations hold the domain, so all of them are closed.
        if !unsafe { close(self.domain.as_ptr().cast()) } {
            // Something in it is open nevertheless, and may write: nothing is given back.
            mem::forget(self.fabric.take());
            mem::forget(mem::take(self.retired.get_mut().unwrap_or_else(PoisonError::into_inner)));
        }
    }
}
