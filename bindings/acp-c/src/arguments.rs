//! Arguments that C programs pass by address: the words of the command line, and texts.
//!
//! # Safety
//! Functions of this module convert addresses to values. Their callers pass on the program's
//! guarantee: the memory at an address is as the function's description (`acp.h`) requires, for the
//! duration of the call.

#![allow(unsafe_code)]

use core::{
    ffi::{CStr, c_char, c_int},
    ptr,
};

/// The words of the command line, as `main` has them.
#[derive(Debug)]
pub(crate) struct CommandLine {
    count: *mut c_int,
    words: *mut *mut c_char,
}

impl CommandLine {
    /// Returns the words; `None` if an address is null.
    ///
    /// # Safety
    /// The addresses are null, or those of `main`'s two arguments.
    pub(crate) unsafe fn new(count: *mut c_int, words: *mut *mut *mut c_char) -> Option<Self> {
        if count.is_null() || words.is_null() {
            return None;
        }
        // SAFETY: not null, so the address of `main`'s second argument.
        let words = unsafe { words.read() };
        (!words.is_null()).then_some(CommandLine { count, words })
    }

    /// Returns all words.
    pub(crate) fn to_words(&self) -> Vec<String> {
        (0..self.len()).map(|index| self.word(index)).collect()
    }

    fn len(&self) -> usize {
        // SAFETY: guaranteed by the caller of `new`.
        let count = unsafe { self.count.read() };
        usize::try_from(count).unwrap_or(0)
    }

    fn word(&self, index: usize) -> String {
        // SAFETY: there are as many words as `main`'s first argument says.
        let word = unsafe { self.words.add(index).read() };
        // SAFETY: guaranteed by the caller of `new`.
        unsafe { text(word) }.unwrap_or_default()
    }

    /// Removes all words except those at `kept`, which is in order. A null pointer ends them, as in
    /// `main`.
    pub(crate) fn keep(&self, kept: &[usize]) {
        let before = self.len();
        for (to, &from) in kept.iter().enumerate() {
            // SAFETY: both indices are below the number of words.
            unsafe { self.words.add(to).write(self.words.add(from).read()) };
        }
        if kept.len() < before {
            // SAFETY: as above.
            unsafe { self.words.add(kept.len()).write(ptr::null_mut()) };
        }
        // SAFETY: guaranteed by the caller of `new`. The number was a `c_int` before.
        unsafe { self.count.write(kept.len() as c_int) };
    }
}

/// Returns a text; `None` for a null pointer.
///
/// # Safety
/// `text` is null, or the address of characters that end with a zero.
pub(crate) unsafe fn text(text: *const c_char) -> Option<String> {
    if text.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    Some(unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned())
}
