//! Arguments other than matrices that callers pass by address: integers and letters.
//!
//! # Safety
//! Functions of this module convert addresses to values. Their callers pass on the program's
//! guarantee: the memory at an address is as the routine's description (`blacs_fmpl.h`) requires,
//! for the duration of the call. The rest of the crate accesses no more than the routine is
//! described to use.

#![allow(unsafe_code)]

use crate::int::Int;
use core::ffi::c_char;

/// Reads an integer that is passed by address.
///
/// # Safety
/// `at` points to an integer.
pub(crate) unsafe fn integer(at: *const Int) -> Int {
    // SAFETY: guaranteed by the caller.
    unsafe { at.read() }
}

/// Reads the first letter of a text; the hidden length is not needed.
///
/// # Safety
/// `at` points to at least one letter.
pub(crate) unsafe fn letter(at: *const c_char) -> u8 {
    // SAFETY: guaranteed by the caller.
    unsafe { at.cast::<u8>().read() }
}

/// Integers of the caller that a routine reads or writes. If the address is null, nothing is written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers(*mut Int);

impl Integers {
    /// # Safety
    /// The address is null, or points to as many integers as the routine is described to use.
    pub(crate) unsafe fn new(at: *mut Int) -> Self {
        Integers(at)
    }

    /// Returns the integer at `index`, which the routine is described to read.
    pub(crate) fn get(self, index: usize) -> Int {
        // SAFETY: the integer exists, as guaranteed by the caller of `new`. No references are made,
        // because it may be the same as another argument's.
        unsafe { self.0.wrapping_add(index).read() }
    }

    /// Sets the integer at `index`, which the routine is described to write.
    pub(crate) fn set(self, index: usize, value: Int) {
        if !self.0.is_null() {
            // SAFETY: as in `get`.
            unsafe { self.0.wrapping_add(index).write(value) };
        }
    }
}
