//! Leaving the job when the process ends by C's `exit`, or by returning from `main`.
//!
//! # Safety
//! The function that is registered only stores atomics and wakes other processes; it takes no lock
//! that a thread of an ending process may hold, and does not unwind.

#![allow(unsafe_code)]

use super::Part;
use std::sync::OnceLock;

/// The rank of this process.
static LEAVING: OnceLock<Part> = OnceLock::new();

impl Part {
    /// Makes this rank leave the job when the process ends by C's `exit`. Only the first call has an
    /// effect.
    pub fn leave_at_exit(&self) {
        if LEAVING.set(self.clone()).is_ok() {
            // SAFETY: the function has the required signature and meets the module's rule.
            unsafe { libc::atexit(leave) };
        }
    }
}

extern "C" fn leave() {
    if let Some(part) = LEAVING.get() {
        part.left(part.endpoint.me());
    }
}
