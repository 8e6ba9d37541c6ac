//! Memory that NICs and other processes read and write at any time, and private memory of
//! endpoints.

use super::{Domain, Failed, close, sys};
use memmap2::{MmapMut, MmapRaw, UncheckedAdvice};
use rdma_fabric::access;
use std::{
    any::Any,
    fmt, io,
    mem::ManuallyDrop,
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Keeps memory of another owner mapped.
pub(crate) type Keep = Arc<dyn Any + Send + Sync>;

/// Memory at a fixed address.
pub(crate) enum Memory {
    /// Zeroed pages, private to this process.
    Pages(MmapRaw),
    /// Memory of another owner, which is mapped as long as `_keep` lives.
    Lent { start: NonNull<u8>, len: usize, _keep: Keep },
}

// SAFETY: the memory is accessed by `rdma_fabric::access`, or by its only owner.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Returns new pages for `len` bytes, which must not be 0.
    pub(crate) fn new(len: usize) -> io::Result<Self> {
        let map = if len == 0 { Err(no_memory("no memory has no bytes")) } else { MmapMut::map_anon(len) };
        map.map(|map| Self::Pages(map.into()))
    }

    /// Returns existing memory, whose start must be a multiple of 8.
    ///
    /// # Safety
    /// The bytes are mapped, readable and writable as long as `keep` lives, and are accessed by
    /// atomics or `rdma_fabric::access` alone.
    pub(crate) unsafe fn lent(start: NonNull<u8>, len: usize, keep: Keep) -> io::Result<Self> {
        match len {
            0 => Err(no_memory("no memory has no bytes")),
            _ if !start.addr().get().is_multiple_of(8) => Err(no_memory("memory starts at a multiple of 8")),
            _ => Ok(Self::Lent { start, len, _keep: keep }),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Pages(map) => map.len(),
            Self::Lent { len, .. } => *len,
        }
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        match self {
            Self::Pages(map) => map.as_mut_ptr(),
            Self::Lent { start, .. } => start.as_ptr(),
        }
    }

    /// Returns pages that this process allocated to the system, but keeps their addresses mapped;
    /// they then contain zeros.
    pub(super) fn give_pages_back(&self) {
        if let Self::Pages(map) = self {
            // SAFETY: there is no reference to these bytes, and all readers expect them to change.
            // A failure only means that the pages stay.
            let _ = unsafe { map.unchecked_advise(UncheckedAdvice::DontNeed) };
        }
    }
}

impl fmt::Debug for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes at {:?}", self.len(), self.as_ptr())
    }
}

fn no_memory(why: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, why)
}

/// The users for which memory is registered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Access {
    /// Operations and messages of this process.
    Own,
    /// Also peers that have the key.
    Peers,
}

/// Memory and its registration: the memory is mapped as long as it is registered.
#[derive(Debug)]
pub(crate) struct Registration {
    memory: ManuallyDrop<Memory>,
    len: usize,
    region: NonNull<sys::fid_mr>,
    descriptor: *mut std::ffi::c_void,
    key: u64,
    /// Set if operations on the memory were in flight when their endpoint was closed.
    abandoned: AtomicBool,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: the registration is an object of a thread-safe domain, used by value until it is closed;
// the memory is accessed by `rdma_fabric::access`, or by its only owner.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers memory.
    ///
    /// The key must differ from those of all registrations of the domain; a provider that chooses
    /// keys ignores it. On failure the memory is returned.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        memory: Memory,
        key: u64,
        access: Access,
    ) -> Result<Arc<Self>, (Failed, Memory)> {
        let own = u64::from(sys::FI_SEND | sys::FI_RECV | sys::FI_READ | sys::FI_WRITE);
        let peers = u64::from(sys::FI_REMOTE_READ | sys::FI_REMOTE_WRITE);
        let access = if access == Access::Peers { own | peers } else { own };
        let (len, mut region) = (memory.len(), null_mut());
        // SAFETY: the domain is open, and the memory stays mapped until the registration is closed.
        let returned = unsafe {
            let start = memory.as_ptr().cast_const().cast();
            sys::fi_mr_reg(domain.as_ptr(), start, len, access, 0, key, 0, &mut region, null_mut())
        };
        let region = match Failed::object("fi_mr_reg", returned, region) {
            Ok(region) => region,
            Err(failed) => return Err((failed, memory)),
        };
        // SAFETY: the registration is open.
        let (key, descriptor) = unsafe { (sys::fi_mr_key(region.as_ptr()), sys::fi_mr_desc(region.as_ptr())) };
        domain.registered(len);
        let domain = ManuallyDrop::new(domain.clone());
        let (memory, abandoned) = (ManuallyDrop::new(memory), AtomicBool::new(false));
        Ok(Arc::new(Self { memory, len, region, descriptor, key, abandoned, domain }))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Returns the address of the first byte, which peers may have to use.
    pub(crate) fn address(&self) -> u64 {
        self.as_ptr() as u64
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.memory.as_ptr()
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns the descriptor with which libfabric calls use the memory.
    pub(super) fn descriptor(&self) -> *mut std::ffi::c_void {
        self.descriptor
    }

    /// Leaks the memory: a peer may still write to it, and no call reports when it is done.
    pub(super) fn abandon(&self) {
        // Relaxed: the thread that drops the last reference sees this store, as all uses of the
        // memory.
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns the address of a byte, if `len` bytes from there on are in the memory.
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        // SAFETY: the offset is in the memory, or right behind it.
        (end <= self.len).then(|| unsafe { self.as_ptr().add(offset) })
    }

    /// Copies bytes out of the memory; returns `false` if they are not in it.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(start) = self.at(offset, into.len()) else { return false };
        // SAFETY: the bytes are in the memory, which is shared and only accessed in this way; those
        // of `into` are private.
        unsafe { access::copy_out(into.as_mut_ptr(), start, into.len()) };
        true
    }

    /// Copies bytes into the memory; returns `false` if they do not fit.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> bool {
        let Some(start) = self.at(offset, from.len()) else { return false };
        // SAFETY: as in `read`.
        unsafe { access::copy_in(start, from.as_ptr(), from.len()) };
        true
    }

    /// Returns the word of 8 bytes at `offset`, if it is in the memory and at a multiple of 8.
    pub(crate) fn load(&self, offset: usize) -> Option<u64> {
        let start = self.at(offset, 8).filter(|_| offset.is_multiple_of(8))?;
        // SAFETY: the word is in the memory, which starts at a multiple of 8.
        Some(unsafe { access::load(start, 8) })
    }

    /// Stores a word of 8 bytes; returns `false` if it is not in the memory or not at a multiple of
    /// 8.
    pub(crate) fn store(&self, offset: usize, word: u64) -> bool {
        let start = self.at(offset, 8).filter(|_| offset.is_multiple_of(8));
        // SAFETY: as in `load`.
        start.map(|start| unsafe { access::store(start, 8, word) }).is_some()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: operations in flight hold the registration, so this process no longer uses it.
        let closed = unsafe { close(self.region.as_ptr().cast()) };
        // SAFETY: both fields are taken once, here, and not used again.
        let (memory, domain) = unsafe { (ManuallyDrop::take(&mut self.memory), ManuallyDrop::take(&mut self.domain)) };
        if !closed {
            // Peers can still write the memory, and the domain can't be closed.
            std::mem::forget((memory, domain));
            return;
        }
        domain.deregistered(self.len);
        if *self.abandoned.get_mut() {
            memory.give_pages_back();
            std::mem::forget(memory);
        } else {
            domain.retire(memory);
        }
    }
}

/// Bytes of registered memory, which an operation holds while it is in flight.
#[derive(Clone, Debug)]
pub(crate) struct Span {
    registration: Arc<Registration>,
    offset: usize,
    len: usize,
}

impl Span {
    /// Returns `len` bytes from `offset` on, if they are in the memory.
    pub(crate) fn new(registration: &Arc<Registration>, offset: usize, len: usize) -> Option<Self> {
        registration.at(offset, len)?;
        Some(Self { registration: registration.clone(), offset, len })
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        // SAFETY: `new` has checked that the offset is in the memory.
        unsafe { self.registration.as_ptr().add(self.offset) }
    }

    pub(crate) fn registration(&self) -> &Arc<Registration> {
        &self.registration
    }
}
