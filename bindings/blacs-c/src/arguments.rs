//! What callers pass by address beside matrices: integers and letters.
//!
//! # Safety
//! The addresses are made into values here by functions whose callers pass on what the program
//! promises: what is behind an address is what the routine's description says (`blacs_fmpl.h`), as
//! long as the call lasts. The rest of the crate asks for no more than the routine is described to
//! use.

#![allow(unsafe_code)]

use crate::int::Int;
use core::ffi::c_char;

/// Reads an integer that is passed by address.
///
/// # Safety
/// There is an integer.
pub(crate) unsafe fn integer(at: *const Int) -> Int {
    // SAFETY: as the caller promises.
    unsafe { at.read() }
}

/// Reads the first letter of a text; a hidden length is of no use.
///
/// # Safety
/// There is at least one letter.
pub(crate) unsafe fn letter(at: *const c_char) -> u8 {
    // SAFETY: as the caller promises.
    unsafe { at.cast::<u8>().read() }
}

/// Integers of the caller's that a routine reads or writes. Where there are none, nothing is
/// written.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Integers(*mut Int);

impl Integers {
    /// # Safety
    /// The address is null, or there are as many integers as the routine is described to use.
    pub(crate) unsafe fn new(at: *mut Int) -> Self {
        Integers(at)
    }

    /// Returns the integer at `index`, one that the routine is described to read.
    pub(crate) fn get(self, index: usize) -> Int {
        // SAFETY: there is one, by `new`; it may be the same as another argument's, so that there
        // are no references.
        unsafe { self.0.wrapping_add(index).read() }
    }

    /// Sets the integer at `index`, one that the routine is described to write.
    pub(crate) fn set(self, index: usize, value: Int) {
        if !self.0.is_null() {
            // SAFETY: as in `get`.
            unsafe { self.0.wrapping_add(index).write(value) };
        }
    }
}
