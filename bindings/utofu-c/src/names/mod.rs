//! All functions that the library exports, but `utofu_get_last_error` as declared in `utofu.h`.
//!
//! # Safety
//! Every function requires its caller to follow `utofu.h`: an address of a result is null or that of
//! an object of the type that the header names, which no other code accesses during the call; an array
//! has at least the length that the header names. Null is refused. Handles, ids and STADDs are
//! numbers; every number is safe to pass.

#![allow(unsafe_code, clippy::too_many_arguments, reason = "the functions and argument lists are the interface's")]

mod commands;
mod gates;
mod memory;
mod polling;
mod queries;
mod vcqs;

use crate::failure::{Code, Outcome};
use core::ffi::c_int;

/// The code of success.
const SUCCESS: c_int = 0;

/// Converts the outcome of a call to its return code.
#[inline]
fn code(outcome: Outcome<()>) -> c_int {
    match outcome {
        Ok(()) => SUCCESS,
        Err(Code(code)) => code,
    }
}

/// Checks an address of a result or an array.
///
/// # Errors
/// [`Code::INVALID_POINTER`].
#[inline]
fn not_null<T>(at: *const T) -> Outcome<()> {
    if at.is_null() { Err(Code::INVALID_POINTER.because("an address is null")) } else { Ok(()) }
}

/// Writes a result.
///
/// # Safety
/// As the module requires of addresses; it is not null.
#[inline]
unsafe fn give<T>(at: *mut T, value: T) {
    // SAFETY: the caller's promise. Programs may pass addresses that are not aligned.
    unsafe { at.write_unaligned(value) }
}

/// Reads `N` bytes of coordinates.
///
/// # Safety
/// As [`give`], for `N` bytes.
unsafe fn bytes<const N: usize>(at: *const u8) -> [u8; N] {
    // SAFETY: the caller's promise; bytes have no alignment.
    unsafe { at.cast::<[u8; N]>().read() }
}
