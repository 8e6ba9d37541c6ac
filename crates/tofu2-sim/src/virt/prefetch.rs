//! Asking for memory before it is needed.
//!
//! A large job touches some hundred bytes of each of a million ranks in turn, so nearly every event starts with a cache
//! miss. The order in which an atomic unit serves is known one service ahead: that is enough to have the
//! memory there in time. This is the only unsafe code of the simulator, and it changes no result.

#![allow(unsafe_code)]

/// Ask for the first lines of `value`.
#[inline(always)]
pub(super) fn prefetch<T: ?Sized>(value: &T) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    {
        use core::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        /// Cache lines of a value that are asked for at most.
        const LINES: usize = 8;
        /// Bytes that one prefetch brings.
        const LINE: usize = 64;
        let start = core::ptr::from_ref(value).cast::<i8>();
        for line in 0..size_of_val(value).div_ceil(LINE).min(LINES) {
            // SAFETY: a prefetch reads nothing the program can see and never faults, whatever the address; this one
            // is inside, or at most a line beyond, a live value.
            unsafe { _mm_prefetch::<_MM_HINT_T0>(start.wrapping_add(line * LINE)) };
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = value;
}
