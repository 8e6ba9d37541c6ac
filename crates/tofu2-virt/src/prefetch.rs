//! Prefetching: requesting memory before it is needed.
//!
//! A large job touches a few hundred bytes of each of a million ranks in turn, so nearly every
//! event starts with a cache miss. The order in which an atomic unit serves operations is known one
//! service ahead, early enough for the memory to be in the cache in time. Prefetching changes no
//! result.
//!
//! The memory that a program accesses through pointers is predicted from its last use: a rank that
//! is polled again uses memory near the memory that it passed to its last operation.

#![allow(unsafe_code)]

/// Prefetches the first cache lines of `value`.
#[inline(always)]
pub(super) fn prefetch<T: ?Sized>(value: &T) {
    /// The maximum number of cache lines of a value to prefetch.
    const LINES: usize = 8;
    let start = core::ptr::from_ref(value).cast::<u8>();
    for line in 0..size_of_val(value).div_ceil(LINE).min(LINES) {
        prefetch_line(start.wrapping_add(line * LINE));
    }
}

#[inline(always)]
fn prefetch_line(at: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a prefetch reads nothing the program can see and never faults, whatever the
        // address.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(at.cast()) };
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = at;
}
/// The size of a cache line in bytes.
const LINE: usize = 64;

/// Addresses close to one another, stored as short distances from an origin.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Nearby {
    /// The first address noted.
    origin: usize,
}

/// A noted address, in units of 16 bytes from the origin. Beyond 32 GiB it is wrong, but harmlessly
/// so.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Near(i32);

impl Nearby {
    #[inline]
    pub(super) fn note<T>(&mut self, value: *const T) -> Near {
        if self.origin == 0 {
            self.origin = value.addr();
        }
        Near((value.addr().wrapping_sub(self.origin) as isize >> 4) as i32)
    }

    /// Prefetches `before` lines before an address and `after` lines from there on.
    #[inline]
    pub(super) fn prefetch(self, near: Near, before: usize, after: usize) {
        let at = self.origin.wrapping_add_signed((near.0 as isize) << 4);
        for line in 0..before + after {
            prefetch_line(core::ptr::without_provenance(at.wrapping_add(line * LINE).wrapping_sub(before * LINE)));
        }
    }
}
