//! Locked regions: memory of the fabric that has no public key.
//!
//! The problem: a reference into memory that peers can write is undefined behaviour as soon as one
//! of them does. If memory has a key, any peer that guesses the key can write it. So memory into
//! which references may point must have no key: the only access is through a *capability*, whose
//! holder grants access only to holders of a lock.
//!
//! The capability is a handle of the fabric, made by
//! [`Fabric::protected`](crate::Fabric::protected). Symmetric regions that are allocated through it
//! are resolved by it and its clones, and every other handle refuses them with
//! [`FabricError::Locked`](crate::FabricError::Locked), for every operation. The region's key still
//! identifies it in errors and notices.
//!
//! Memory that a rank allocates through such a handle by itself is accessible to handles of any
//! rank with the same access policy: code that creates the access policy commits to its purpose.
//!
//! Ranks that allocate together must agree on the purpose, because each obtains a capability to all
//! parts. They state it in an [`AccessPolicy`], which is compared in the same way as the length. An
//! access policy that allows references can only be made by `unsafe` code, and never matches one
//! that doesn't. Only a fabric whose provider is [trusted](crate::Fabric::trusted) accepts such an
//! access policy, so that a wrapper (which may change operations arbitrarily) can't pass it on. If
//! a provider has mapped the memory of all ranks, [`Region::mapped`](crate::Region::mapped) returns
//! its location, but only under such an access policy.

#![allow(unsafe_code)]

use crate::RegionKey;
use bytemuck::Pod;
use core::{
    any::Any,
    fmt,
    ptr::NonNull,
    slice,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};
use std::sync::{Arc, Mutex, PoisonError};

/// Whether a provider has protected memory, and the operations that it supports: see
/// [`crate::Fabric::protected`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum LockedMemory {
    /// The provider has no such memory.
    None,
    /// Holders of the capability put, get and use atomics.
    Copies,
    /// Holders of the capability put, get and use atomics; all ranks' parts are mapped here, so
    /// that references are possible.
    Mapped,
}

/// The meaning that ranks give to protected memory that they allocate together: a name of two
/// words, on which all must agree, and whether references may exist.
pub struct AccessPolicy {
    name: [u64; 2],
    references: bool,
}

impl AccessPolicy {
    /// Creates an access policy under which no references are created: [`crate::Region::mapped`]
    /// does not return an address.
    pub const fn copies(name: [u64; 2]) -> Self {
        AccessPolicy { name, references: false }
    }

    /// Creates an access policy under which references to the memory may be created.
    ///
    /// # Safety
    /// All code, on any rank, that creates an access policy with this name that allows references
    /// follows the same discipline. Under this discipline no code writes memory that a reference
    /// points to, only the holder of a `&mut` accesses its memory, and all accesses before the
    /// creation of a reference happen before it. Typically it is a lock: the memory is read, by
    /// reference or by operation, only by holders of the lock, and written only by its exclusive
    /// holder. No handle created with the access policy, region allocated through it, or place
    /// resolved by it is accessible to code that doesn't follow the discipline.
    ///
    /// Memory that a rank allocates by itself is reused by a later region of the same access policy
    /// when it is dropped. So the discipline also ensures that no operation on it is in flight at
    /// that time, or [abandons](crate::Region::abandon) it.
    pub const unsafe fn references(name: [u64; 2]) -> Self {
        AccessPolicy { name, references: true }
    }

    /// Returns the access policy's name.
    pub const fn name(&self) -> [u64; 2] {
        self.name
    }

    /// Returns whether references may be made.
    pub const fn allows_references(&self) -> bool {
        self.references
    }

    /// Returns an access policy with the same name but without references, for a wrapper to pass
    /// down.
    pub const fn without_references(&self) -> AccessPolicy {
        AccessPolicy::copies(self.name)
    }

    /// Returns whether the allocation for which ranks compared `terms` was under an access policy
    /// that allows references.
    pub const fn terms_allow_references(terms: [u64; 3]) -> bool {
        terms[0] >> 1 & 1 == 1
    }

    /// Returns the terms that a handle must have to open memory that a rank has allocated by itself
    /// under this access policy: different from all [`AccessPolicy::terms`].
    pub const fn local_terms(&self) -> [u64; 3] {
        let [first, second, third] = self.terms(0);
        [first | 1 << 2, second, third]
    }

    /// Returns the terms that ranks compare at the `nth` allocation of a handle: never all 0.
    pub const fn terms(&self, nth: u32) -> [u64; 3] {
        [1 | (self.references as u64) << 1 | (nth as u64) << 32, self.name[0], self.name[1]]
    }
}

impl fmt::Debug for AccessPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = if self.references { "references" } else { "copies" };
        write!(f, "AccessPolicy({:#x} {:#x}, {kind})", self.name[0], self.name[1])
    }
}

/// The content of a handle made by [`crate::Fabric::protected`], for providers: the access policy,
/// and the regions that the handle opens.
#[derive(Debug)]
pub struct Keyring {
    policy: AccessPolicy,
    made: AtomicU32,
    opens: Mutex<Vec<RegionKey>>,
}

impl Keyring {
    /// Creates a keyring that does not open any region yet.
    pub const fn new(policy: AccessPolicy) -> Self {
        Keyring { policy, made: AtomicU32::new(0), opens: Mutex::new(Vec::new()) }
    }

    /// Returns the terms that ranks compare at the next allocation.
    pub fn next_terms(&self) -> [u64; 3] {
        self.policy.terms(self.made.fetch_add(1, Relaxed))
    }

    /// Returns the terms that open memory that the handle's rank allocates by itself:
    /// [`AccessPolicy::local_terms`].
    pub const fn local_terms(&self) -> [u64; 3] {
        self.policy.local_terms()
    }

    /// Makes the handle open the region `key` from now on.
    pub fn add(&self, key: RegionKey) {
        self.opens.lock().unwrap_or_else(PoisonError::into_inner).push(key);
    }

    /// Returns whether `key` names a region allocated through the handle.
    pub fn opens(&self, key: RegionKey) -> bool {
        self.opens.lock().unwrap_or_else(PoisonError::into_inner).contains(&key)
    }

    /// Returns whether references to the regions may be created.
    pub const fn allows_references(&self) -> bool {
        self.policy.references
    }
}

/// The location at which a rank's part of a locked region is mapped in this process.
///
/// The fabric that created it guarantees that locks over that fabric exclude each other's holders,
/// and that only handles with the same [`AccessPolicy`] can access the bytes.
pub struct Mapped {
    /// `len` bytes, mapped as long as `keep` lives.
    start: NonNull<u8>,
    len: usize,
    keep: Arc<dyn Any + Send + Sync>,
}

// SAFETY: only `unsafe` code makes references of the pointer, and the value that keeps the memory
// is `Send` and `Sync`.
unsafe impl Send for Mapped {}
// SAFETY: as above.
unsafe impl Sync for Mapped {}

impl Mapped {
    /// Creates a mapping, for providers.
    ///
    /// # Safety
    /// * The `len` bytes at `start` are one allocation, readable and writable as long as `keep`
    ///   lives, even if other ranks die or free memory.
    /// * They are accessed only through places that were resolved by handles created with an access
    ///   policy
    ///   that allows references, by operations that complete when posted, and through values of
    ///   this type; and before the region was allocated everywhere, and after it was dropped
    ///   everywhere. No operation that was posted for memory without such an access policy ever reaches them,
    ///   not even a late one.
    /// * The provider fulfils the contract: atomics are atomic, and the order that they establish
    ///   also holds for plain accesses to these bytes.
    pub unsafe fn new(start: NonNull<u8>, len: usize, keep: Arc<dyn Any + Send + Sync>) -> Self {
        Mapped { start, len, keep }
    }

    /// Returns the length in bytes.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Returns whether the length is 0.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the address of the `len` elements that begin at byte `offset`; `None` if they are
    /// not inside or not aligned.
    #[inline]
    fn at<T: Pod>(&self, offset: usize, len: usize) -> Option<NonNull<T>> {
        let end = len.checked_mul(size_of::<T>())?.checked_add(offset)?;
        let start = (end <= self.len).then(|| self.start.as_ptr().wrapping_add(offset).cast::<T>())?;
        NonNull::new(start).filter(|start| start.is_aligned())
    }

    /// Returns the `len` elements that begin at byte `offset`; `None` if they are not inside or not
    /// aligned.
    ///
    /// # Safety
    /// No code, on any rank, writes them as long as the reference lives.
    #[inline]
    pub unsafe fn slice<T: Pod + Sync>(&self, offset: usize, len: usize) -> Option<&[T]> {
        // SAFETY: inside the bytes and aligned, by `at`; they are mapped as long as `self`; any
        // bits are a `T`; unwritten, by the caller.
        self.at(offset, len).map(|start| unsafe { slice::from_raw_parts(start.as_ptr(), len) })
    }

    /// Returns the `len` elements that begin at byte `offset`, for writing; `None` if they are not
    /// inside or not aligned.
    ///
    /// # Safety
    /// No other code, on any rank, reads or writes them as long as the reference lives.
    #[inline]
    #[allow(clippy::mut_from_ref)]
    pub unsafe fn slice_mut<T: Pod + Send>(&self, offset: usize, len: usize) -> Option<&mut [T]> {
        // SAFETY: as in `slice`; the caller guarantees exclusive access.
        self.at(offset, len).map(|start| unsafe { slice::from_raw_parts_mut(start.as_ptr(), len) })
    }
}

impl fmt::Debug for Mapped {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Mapped({} bytes, {} owners)", self.len, Arc::strong_count(&self.keep))
    }
}
