//! Memory of this process with global addresses: the starter memories, and registered memory of the
//! program. For both, the addresses in this process are kept here; the crate `acp` knows offsets only.

use crate::{
    error::{CallError, Result},
    library::Library,
};
use acp::{Acp, GlobalAddress, Key};
use core::{
    ffi::{c_int, c_void},
    ops::Range,
    ptr::NonNull,
};
use rdma_fabric::Rank;
use std::{
    collections::BTreeMap,
    sync::{PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard},
};

/// The addresses of own memory, by the number of its region.
#[derive(Debug, Default)]
pub(crate) struct OwnMemory(RwLock<BTreeMap<u8, Own>>);

#[derive(Debug)]
struct Own {
    /// The addresses in this process.
    bytes: Range<usize>,
    /// The key if the program has registered it.
    key: Option<Key>,
}

impl OwnMemory {
    // A panic leaves the map as it was before or after a change.
    fn read(&self) -> RwLockReadGuard<'_, BTreeMap<u8, Own>> {
        self.0.read().unwrap_or_else(PoisonError::into_inner)
    }

    fn write(&self) -> RwLockWriteGuard<'_, BTreeMap<u8, Own>> {
        self.0.write().unwrap_or_else(PoisonError::into_inner)
    }

    /// Forgets all memory, and enters the starter memories of `acp`'s rank.
    ///
    /// # Errors
    /// [`CallError::Acp`].
    pub(crate) fn begin(&self, acp: &Acp) -> Result<()> {
        let me = acp.rank();
        let mut all = BTreeMap::new();
        for address in [acp.starter(me)?, acp.channel_memory(me)?, acp.heap_memory(me)?] {
            let span = acp.own_bytes(address)?;
            let start = span.place().start().addr().get();
            let own = Own { bytes: start..start.saturating_add(span.len()), key: None };
            all.insert(address.region(), own);
        }
        *self.write() = all;
        Ok(())
    }

    /// Returns the keys of all registered memory, which is forgotten.
    pub(crate) fn take_registered(&self) -> Vec<Key> {
        let mut all = self.write();
        let registered = all.values().filter_map(|own| own.key).collect();
        all.retain(|_, own| own.key.is_none());
        registered
    }
}

impl Library {
    /// Registers `len` bytes of the program.
    ///
    /// # Errors
    /// [`CallError::Null`], [`CallError::Empty`], [`CallError::NoSuchColour`], [`CallError::Starter`],
    /// [`CallError::Share`], [`CallError::Acp`].
    ///
    /// # Safety
    /// Until it is unregistered, the memory stays mapped, and the program expects other ranks to read
    /// and write it.
    #[allow(unsafe_code)]
    pub(crate) unsafe fn register(&self, start: *mut c_void, len: usize, colour: c_int) -> Result<u64> {
        let start = NonNull::new(start.cast::<u8>()).ok_or(CallError::Null { what: "the address" })?;
        if len == 0 {
            return Err(CallError::Empty);
        }
        let path = usize::try_from(colour).ok().filter(|&path| path < self.acp.colours());
        let path = path.ok_or(CallError::NoSuchColour(colour))?;
        let at = start.addr().get();
        let bytes = at..at.saturating_add(len);
        // The lock is held, so that no two threads share the same pages at a time.
        let mut all = self.own.write();
        let overlaps = |own: &Own| own.key.is_none() && own.bytes.start < bytes.end && bytes.start < own.bytes.end;
        if all.values().any(overlaps) {
            return Err(CallError::Starter(at));
        }
        // SAFETY: the caller's promise.
        let region = unsafe { self.machine.share(start, len) }?;
        let key = self.acp.adopt(region, path)?;
        let number = GlobalAddress::from_bits(key.to_bits()).map(GlobalAddress::region);
        let number = number.ok_or(CallError::NoKey(key.to_bits()))?;
        all.insert(number, Own { bytes, key: Some(key) });
        Ok(key.to_bits())
    }

    /// Ends a registration.
    ///
    /// # Errors
    /// [`CallError::NoKey`], [`CallError::Acp`].
    pub(crate) fn unregister(&self, bits: u64) -> Result<()> {
        let key = Key::from_bits(bits).ok_or(CallError::NoKey(bits))?;
        let mut all = self.own.write();
        let region = self.own_address(bits).map(GlobalAddress::region);
        let region = region.filter(|region| all.get(region).is_some_and(|own| own.key == Some(key)));
        all.remove(&region.ok_or(CallError::NoKey(bits))?);
        Ok(self.acp.unregister(key)?)
    }

    /// Returns the global address of the byte at `address` in the memory registered as `bits`.
    ///
    /// # Errors
    /// [`CallError::NoKey`], [`CallError::NotInRegion`], [`CallError::Acp`].
    pub(crate) fn global_address(&self, bits: u64, address: usize) -> Result<u64> {
        let key = Key::from_bits(bits).ok_or(CallError::NoKey(bits))?;
        let all = self.own.read();
        let region = self.own_address(bits).map(GlobalAddress::region);
        let own = region.and_then(|region| all.get(&region)).filter(|own| own.key == Some(key));
        let own = own.ok_or(CallError::NoKey(bits))?;
        let Range { start, end } = own.bytes;
        if !own.bytes.contains(&address) {
            return Err(CallError::NotInRegion { address, start, len: end - start });
        }
        Ok(self.acp.address(key, address - start)?.to_bits())
    }

    /// Returns the address in this process of a byte of its own memory.
    ///
    /// # Errors
    /// [`CallError::NoAddress`], [`CallError::NotOwn`].
    pub(crate) fn process_address(&self, bits: u64) -> Result<usize> {
        let address = GlobalAddress::from_bits(bits).ok_or(CallError::NoAddress(bits))?;
        let own = self.own_address(bits).and_then(|_| {
            let all = self.own.read();
            let bytes = all.get(&address.region())?.bytes.clone();
            let at = bytes.start.checked_add(usize::try_from(address.offset()).ok()?)?;
            bytes.contains(&at).then_some(at)
        });
        own.ok_or(CallError::NotOwn(bits))
    }

    /// Returns an address if it is one of this rank.
    fn own_address(&self, bits: u64) -> Option<GlobalAddress> {
        GlobalAddress::from_bits(bits).filter(|address| address.rank() == self.acp.rank())
    }

    /// Returns the rank and the colour in an address.
    ///
    /// # Errors
    /// [`CallError::NoAddress`].
    pub(crate) fn parts(&self, bits: u64) -> Result<(Rank, usize)> {
        let address = GlobalAddress::from_bits(bits).filter(|address| address.rank().index() < self.acp.ranks());
        let address = address.ok_or(CallError::NoAddress(bits))?;
        Ok((address.rank(), address.colour()))
    }
}

/// Returns an address given by the program.
///
/// # Errors
/// [`CallError::NoAddress`].
#[inline]
pub(crate) fn address(bits: u64) -> Result<GlobalAddress> {
    // An error that is only made to be dropped costs a call.
    match GlobalAddress::from_bits(bits) {
        Some(address) => Ok(address),
        None => Err(CallError::NoAddress(bits)),
    }
}
