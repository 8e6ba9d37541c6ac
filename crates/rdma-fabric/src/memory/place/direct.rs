//! Direct accesses to a whole place: each compares the generation and the length, and returns `None` where only the
//! provider can make the access.

use super::{Place, SHORT};
use crate::{Amo, access};
use core::sync::atomic::{
    Ordering::{Acquire, SeqCst},
    compiler_fence,
};

impl Place {
    /// Returns 0 if `len` bytes may be accessed directly.
    #[inline(always)]
    pub(super) fn objection(&self, len: usize) -> u64 {
        // SAFETY: kept by `keep_alive`, or a static. Acquire: pairs with the release with which the
        // region was registered.
        let moved = unsafe { self.live.as_ref() }.load(Acquire) ^ u64::from(self.expected as u32);
        moved | (self.len ^ len as u64)
    }

    /// Returns 0 if a word of `width` bytes, 4 or 8, may be accessed directly.
    #[inline(always)]
    fn word_objection(&self, width: usize) -> u64 {
        if width == 8 {
            // SAFETY: as in `objection`. Acquire: as there.
            unsafe { self.live.as_ref() }.load(Acquire) ^ self.expected
        } else {
            self.objection(width) | (self.start.addr().get() & (width - 1)) as u64
        }
    }

    /// Returns whether [`Place::copy_in`] of `len` bytes is possible now.
    #[inline(always)]
    pub fn admits(&self, len: usize) -> bool {
        self.objection(len) == 0
    }

    /// Loads a word's bits (acquire), zero-extended; `width` is 4 or 8. `None` if it can't be
    /// accessed directly.
    #[inline(always)]
    pub(crate) fn load(&self, width: usize) -> Option<u64> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe { access::load(self.start.as_ptr(), width) })
    }

    /// Stores a word's low bits (release), without waking the owner. `None` if it can't be accessed
    /// directly.
    #[inline(always)]
    pub(crate) fn store(&self, width: usize, bits: u64) -> Option<()> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        unsafe { access::store(self.start.as_ptr(), width, bits) };
        Some(())
    }

    /// Changes a word (acquire and release), without waking the owner; returns the previous bits.
    /// `None` if it can't be accessed directly.
    #[inline(always)]
    pub(crate) fn modify(&self, width: usize, amo: Amo<u64>) -> Option<u64> {
        if self.word_objection(width) != 0 {
            return None;
        }
        // SAFETY: `width` aligned bytes, all checked above.
        Some(unsafe { access::rmw(self.start.as_ptr(), width, amo) })
    }

    /// Fills the place from `bytes`, which must have the same length, at most [`SHORT`], without
    /// waking the owner.
    #[inline(always)]
    pub fn copy_in(&self, bytes: &[u8]) -> Option<()> {
        if bytes.len() > SHORT || self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_in(self.start.as_ptr(), bytes.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fills `bytes`, which must have the same length, at most [`SHORT`], from the place.
    #[inline(always)]
    pub(crate) fn copy_out(&self, bytes: &mut [u8]) -> Option<()> {
        if bytes.len() > SHORT || self.objection(bytes.len()) != 0 {
            return None;
        }
        // SAFETY: both sides have `bytes.len()` bytes, checked above.
        unsafe { access::copy_out(bytes.as_mut_ptr(), self.start.as_ptr(), bytes.len()) };
        Some(())
    }

    /// Fills the place from another one, which must have the same length, at most [`SHORT`],
    /// without waking the owner.
    #[inline(always)]
    pub(crate) fn copy_from(&self, from: &Place) -> Option<()> {
        let len = from.len as usize;
        if len > SHORT || self.objection(len) | from.objection(len) != 0 {
            return None;
        }
        // SAFETY: both sides have `len` bytes, checked above.
        unsafe { access::copy_between(self.start.as_ptr(), from.start.as_ptr(), len) };
        Some(())
    }

    /// Returns whether the place's owner may be parked, and must be woken, after a direct write.
    /// The compiler moves no earlier write past this load; the processor may, and the owner's wait
    /// allows for that.
    #[inline(always)]
    pub(crate) fn may_be_parked_at(&self) -> bool {
        compiler_fence(SeqCst);
        // SAFETY: kept by `keep_alive`, or a static. Acquire: pairs with the read-modify-write by
        // which the owner sets the bit.
        unsafe { self.doorbell.as_ref() }.load(Acquire) & 1 != 0
    }
}
