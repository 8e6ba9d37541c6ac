//! Arrays of the caller, outside of which the library must not access memory.
//!
//! # Safety
//! An address created here is valid for as many bytes as the array was created with, which is the
//! size that the arguments of the call describe. The array outlives the call, and no other code
//! uses it during the call.

#![allow(unsafe_code)]

use crate::{
    arguments::Integers,
    int::Int,
    matrix::{Sink, Source},
};
use core::ffi::c_void;

/// Words before and after a guarded array.
const GUARD: usize = 8;
/// The maximum size of an array in bytes.
const MOST: usize = 1 << 16;

/// An array: either alone in its allocation, for a sanitizer, or between guard words.
#[derive(Debug)]
pub(super) struct Array {
    words: Vec<u64>,
    guard: usize,
    fill: u8,
}

impl Array {
    /// Creates an array of `len` elements of `size` bytes, each byte of which is `fill`; `None` if
    /// that exceeds the memory limit for arrays.
    pub(super) fn new(len: usize, size: usize, fill: u8, guarded: bool) -> Option<Self> {
        let bytes = len.checked_mul(size).filter(|bytes| *bytes <= MOST)?;
        let guard = if guarded { GUARD } else { 0 };
        let words = vec![u64::from_ne_bytes([fill; 8]); bytes.div_ceil(8) + 2 * guard];
        Some(Array { words, guard, fill })
    }

    fn start(&mut self) -> *mut c_void {
        self.words.as_mut_ptr().wrapping_add(self.guard).cast()
    }

    /// Returns the address of a matrix that is read.
    pub(super) fn source(&mut self) -> Source {
        // SAFETY: see the module's documentation.
        unsafe { Source::new(self.start()) }
    }

    /// Returns the address of a matrix that is changed.
    pub(super) fn sink(&mut self) -> Sink {
        // SAFETY: see the module's documentation.
        unsafe { Sink::new(self.start()) }
    }

    /// Returns the address of integers.
    pub(super) fn integers(&mut self) -> Integers {
        // SAFETY: see the module's documentation.
        unsafe { Integers::new(self.start().cast::<Int>()) }
    }

    /// Checks that no byte has changed but those of which `may` is true.
    ///
    /// # Panics
    /// If one has.
    pub(super) fn check(&self, may: impl Fn(usize) -> bool) {
        let first = 8 * self.guard;
        for (at, byte) in self.words.iter().flat_map(|word| word.to_ne_bytes()).enumerate() {
            let inside = at.checked_sub(first).is_some_and(&may);
            assert!(inside || byte == self.fill, "byte {at} of an array that begins at {first} was changed");
        }
    }
}
