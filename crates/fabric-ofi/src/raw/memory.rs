//! Memory that NICs and other processes read and write at any time.

use super::{Domain, Failed, close, sys};
use memmap2::{MmapMut, MmapRaw, UncheckedAdvice};
use rdma_fabric::access;
use std::{
    io,
    mem::ManuallyDrop,
    ptr::{NonNull, null_mut},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

/// Pages of zeros of this process alone, which stay where they are.
#[derive(Debug)]
pub(super) struct Memory(MmapRaw);

impl Memory {
    /// Returns new pages for `len` bytes, which may not be 0.
    pub(super) fn new(len: usize) -> io::Result<Self> {
        if len == 0 {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "no memory has no bytes"));
        }
        MmapMut::map_anon(len).map(|map| Self(map.into()))
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn as_ptr(&self) -> *mut u8 {
        self.0.as_mut_ptr()
    }

    /// Gives the pages back, not the addresses: they hold zeros then.
    pub(super) fn give_pages_back(&self) {
        // SAFETY: nobody has a reference to these bytes, and all who read them expect them to
        // change. A failure only means that the pages stay.
        let _ = unsafe { self.0.unchecked_advise(UncheckedAdvice::DontNeed) };
    }
}

/// Memory and its registration, in that order of life: while it is registered, it is mapped.
#[derive(Debug)]
pub(crate) struct Registration {
    memory: ManuallyDrop<Memory>,
    len: usize,
    region: NonNull<sys::fid_mr>,
    key: u64,
    /// Set if operations on the memory were under way when their endpoint was closed.
    abandoned: AtomicBool,
    domain: ManuallyDrop<Arc<Domain>>,
}

// SAFETY: the registration is an object of a domain that is safe in threads, used by value until it
// is closed; the memory is accessed by `rdma_fabric::access` alone.
unsafe impl Send for Registration {}
// SAFETY: as above.
unsafe impl Sync for Registration {}

impl Registration {
    /// Registers `len` new bytes of zeros, for this process's operations and, if they are shared,
    /// for peers.
    ///
    /// The key has to be one that no registration of the domain has; a provider that chooses keys
    /// ignores it.
    pub(crate) fn new(
        domain: &Arc<Domain>,
        len: usize,
        key: u64,
        shared: bool,
    ) -> Result<io::Result<Arc<Self>>, Failed> {
        let memory = match Memory::new(len) {
            Ok(memory) => memory,
            Err(error) => return Ok(Err(error)),
        };
        let own = u64::from(sys::FI_READ | sys::FI_WRITE);
        let peers = u64::from(sys::FI_REMOTE_READ | sys::FI_REMOTE_WRITE);
        let access = if shared { own | peers } else { own };
        let mut region = null_mut();
        // SAFETY: the domain is open, and the memory stays mapped until the registration is closed.
        let returned = unsafe {
            let start = memory.as_ptr().cast_const().cast();
            sys::fi_mr_reg(domain.as_ptr(), start, len, access, 0, key, 0, &mut region, null_mut())
        };
        let region = Failed::object("fi_mr_reg", returned, region)?;
        // SAFETY: the registration is open.
        let key = unsafe { sys::fi_mr_key(region.as_ptr()) };
        let domain = ManuallyDrop::new(domain.clone());
        let memory = ManuallyDrop::new(memory);
        Ok(Ok(Arc::new(Self { memory, len, region, key, abandoned: AtomicBool::new(false), domain })))
    }

    pub(crate) fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn key(&self) -> u64 {
        self.key
    }

    /// Returns the address of the first byte, as peers may have to give it.
    pub(crate) fn address(&self) -> u64 {
        self.memory.as_ptr() as u64
    }

    pub(crate) fn domain(&self) -> &Arc<Domain> {
        &self.domain
    }

    /// Returns what calls of libfabric ask for to use the memory.
    pub(super) fn descriptor(&self) -> *mut std::ffi::c_void {
        // SAFETY: the registration is open.
        unsafe { sys::fi_mr_desc(self.region.as_ptr()) }
    }

    /// Keeps the memory for ever: a peer may be about to write it, and nothing can tell when it
    /// has.
    pub(super) fn abandon(&self) {
        self.abandoned.store(true, Ordering::Relaxed);
    }

    /// Returns the address of a byte, if `len` bytes from there are in the memory.
    fn at(&self, offset: usize, len: usize) -> Option<*mut u8> {
        let end = offset.checked_add(len)?;
        // SAFETY: the offset is in the memory, or right behind it.
        (end <= self.len).then(|| unsafe { self.memory.as_ptr().add(offset) })
    }

    /// Copies bytes out of the memory; returns whether they are in it.
    pub(crate) fn read(&self, offset: usize, into: &mut [u8]) -> bool {
        let Some(start) = self.at(offset, into.len()) else { return false };
        // SAFETY: the bytes are in the memory, which is shared and only accessed so; those of
        // `into` are private.
        unsafe { access::copy_out(into.as_mut_ptr(), start, into.len()) };
        true
    }

    /// Copies bytes into the memory; returns whether they have room in it.
    pub(crate) fn write(&self, offset: usize, from: &[u8]) -> bool {
        let Some(start) = self.at(offset, from.len()) else { return false };
        // SAFETY: as in `read`.
        unsafe { access::copy_in(start, from.as_ptr(), from.len()) };
        true
    }

    /// Returns a word of 8 bytes, if it is in the memory, at a multiple of 8.
    pub(crate) fn load(&self, offset: usize) -> Option<u64> {
        let start = self.at(offset, 8).filter(|_| offset.is_multiple_of(8))?;
        // SAFETY: the word is in the memory, whose pages are aligned.
        Some(unsafe { access::load(start, 8) })
    }

    /// Stores a word of 8 bytes; returns whether it is in the memory, at a multiple of 8.
    pub(crate) fn store(&self, offset: usize, word: u64) -> bool {
        let start = self.at(offset, 8).filter(|_| offset.is_multiple_of(8));
        // SAFETY: as in `load`.
        start.map(|start| unsafe { access::store(start, 8, word) }).is_some()
    }
}

impl Drop for Registration {
    fn drop(&mut self) {
        // SAFETY: operations under way hold the registration, so nobody of this process uses it.
        let closed = unsafe { close(self.region.as_ptr().cast()) };
        // SAFETY: both fields are taken once, here, and not used again.
        let (memory, domain) = unsafe { (ManuallyDrop::take(&mut self.memory), ManuallyDrop::take(&mut self.domain)) };
        if !closed {
            // Peers can still write the memory, and the domain can't be closed.
            std::mem::forget((memory, domain));
        } else if *self.abandoned.get_mut() {
            std::mem::forget(memory);
        } else {
            domain.retire(memory);
        }
    }
}

/// Bytes of registered memory, which an operation holds as long as it is under way.
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

    pub(super) fn as_ptr(&self) -> *mut std::ffi::c_void {
        // SAFETY: `new` has compared the offset with the memory.
        unsafe { self.registration.memory.as_ptr().add(self.offset).cast() }
    }

    pub(crate) fn registration(&self) -> &Arc<Registration> {
        &self.registration
    }
}
