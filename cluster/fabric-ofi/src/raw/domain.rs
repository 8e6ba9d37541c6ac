//! Fabrics and domains, and the memory that stays mapped as long as bytes may arrive late.

use super::{Failed, Info, close, memory::Memory, sys, uncached};
use std::{
    mem,
    ptr::{NonNull, null_mut},
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicUsize, Ordering::Relaxed},
    },
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

/// The endpoints that may still write, and the memory that they may write.
#[derive(Debug, Default)]
struct Late {
    /// Number of open endpoints.
    endpoints: usize,
    /// Memory whose registration is closed.
    ///
    /// A software provider may be in the middle of a message for it, in another thread or in later
    /// calls. The memory therefore stays mapped until all endpoints are closed, so that late bytes
    /// are not written to memory that has been reused.
    retired: Vec<Memory>,
}

/// An open domain, which is held by all objects opened through it.
#[derive(Debug)]
pub(crate) struct Domain {
    domain: NonNull<sys::fid_domain>,
    late: Mutex<Late>,
    /// Number of bytes of registered memory.
    registered: AtomicUsize,
    fabric: Option<Fabric>,
    info: Arc<Info>,
}

// SAFETY: the interface is thread-safe: offers are requested with FI_THREAD_SAFE, and control calls
// are safe in any case.
unsafe impl Send for Domain {}
// SAFETY: as above.
unsafe impl Sync for Domain {}

impl Domain {
    /// Opens the fabric and the domain of an offer.
    ///
    /// # Errors
    /// A call fails; also `FI_EBUSY` if the provider pins memory and another component of this process uses
    /// libfabric's cache of registrations.
    pub(crate) fn open(info: Arc<Info>) -> Result<Arc<Self>, Failed> {
        if info.facts().pins {
            uncached::disable()?;
        }
        let (mut fabric, mut domain) = (null_mut(), null_mut());
        // SAFETY: the offer is libfabric's own, with all its attributes, and lives as long as the
        // domain.
        let returned = unsafe { sys::fi_fabric((*info.as_ptr()).fabric_attr, &mut fabric, null_mut()) };
        let fabric = Fabric(Failed::object("fi_fabric", returned, fabric)?);
        // SAFETY: the fabric is open, and the offer as above.
        let returned = unsafe { sys::fi_domain(fabric.0.as_ptr(), info.as_ptr(), &mut domain, null_mut()) };
        let domain = Failed::object("fi_domain", returned, domain)?;
        Ok(Arc::new(Self {
            domain,
            late: Mutex::default(),
            registered: AtomicUsize::new(0),
            fabric: Some(fabric),
            info,
        }))
    }

    pub(super) fn as_ptr(&self) -> *mut sys::fid_domain {
        self.domain.as_ptr()
    }

    /// Returns the fabric's object, which exists as long as the domain.
    pub(super) fn fabric(&self) -> *mut sys::fid_fabric {
        self.fabric.as_ref().map_or(null_mut(), |fabric| fabric.0.as_ptr())
    }

    /// Returns the offer that it was opened from.
    pub(super) fn info(&self) -> &Info {
        &self.info
    }

    fn late(&self) -> MutexGuard<'_, Late> {
        self.late.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records that `len` bytes have been registered.
    pub(super) fn registered(&self, len: usize) {
        self.registered.fetch_add(len, Relaxed);
    }

    /// Records that a registration of `len` bytes has been closed.
    pub(super) fn deregistered(&self, len: usize) {
        self.registered.fetch_sub(len, Relaxed);
    }

    /// Returns the number of bytes of registered memory.
    pub(crate) fn registered_bytes(&self) -> usize {
        self.registered.load(Relaxed)
    }

    /// Records that an endpoint is about to be opened.
    pub(super) fn endpoint_opens(&self) {
        self.late().endpoints += 1;
    }

    /// Records that an endpoint has been closed.
    pub(super) fn endpoint_is_closed(&self) {
        let mut late = self.late();
        late.endpoints -= 1;
        let retired = if late.endpoints == 0 { mem::take(&mut late.retired) } else { Vec::new() };
        drop(late);
        // The drop may run code of the memory's owner, so the lock is not held.
        drop(retired);
    }

    /// Keeps memory whose registration is closed until no endpoint is open.
    pub(super) fn retire(&self, memory: Memory) {
        let mut late = self.late();
        if late.endpoints > 0 {
            memory.give_pages_back();
            late.retired.push(memory);
        }
    }

    /// Returns the number of bytes of memory that is kept until the endpoints are closed.
    pub(crate) fn retired_bytes(&self) -> usize {
        self.late().retired.iter().map(Memory::len).sum()
    }
}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: endpoints, queues and registrations hold the domain, so all of them are closed.
        if !unsafe { close(self.domain.as_ptr().cast()) } {
            // An object of the domain is still open and may write: no memory is released.
            mem::forget(self.fabric.take());
            mem::forget(mem::take(&mut self.late().retired));
        }
    }
}
