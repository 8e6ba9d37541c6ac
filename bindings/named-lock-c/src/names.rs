//! All names that the library exports.
//!
//! # Safety
//! Every function requires its caller to follow `onesided_lock.h`: texts end with a zero byte, and
//! the address of a result is null or that of an `int` that no other code accesses during the call.
//! Null is refused. Handles are numbers; every number is safe to pass.

#![allow(unsafe_code)]

use crate::{
    calls,
    codes::{Code, Failure, Outcome},
    last::{self, call},
};
use core::ffi::{CStr, c_char};
use std::{ffi::OsStr, os::unix::ffi::OsStrExt, path::Path};

/// Returns the text at an address.
///
/// # Safety
/// The address is null, or that of a text that ends with a zero byte and does not change for `'a`.
unsafe fn text<'a>(at: *const c_char) -> Outcome<&'a CStr> {
    if at.is_null() {
        return Err(Failure::new(Code::Argument, "a text is a null pointer"));
    }
    // SAFETY: not null, and the caller guarantees the rest.
    Ok(unsafe { CStr::from_ptr(at) })
}

/// Writes a result to an address, if it is not null.
///
/// # Safety
/// The address is null, or that of an `int` that no other code accesses during the call.
unsafe fn give(at: *mut i32, value: i32) {
    if !at.is_null() {
        // SAFETY: not null, and the caller guarantees the rest.
        unsafe { at.write(value) };
    }
}

/// Opens a lock, and writes its handle to `lock`.
///
/// # Safety
/// As for [`give`].
unsafe fn opened(lock: *mut i32, open: impl FnOnce() -> Outcome<i32>) -> i32 {
    call(|| {
        if lock.is_null() {
            return Err(Failure::new(Code::Argument, "there is nowhere to put the handle"));
        }
        let handle = open()?;
        // SAFETY: guaranteed by the caller.
        unsafe { give(lock, handle) };
        Ok(Code::Ok)
    })
}

/// Opens the lock called `name`.
///
/// # Safety
/// See the module's documentation.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_open(name: *const c_char, lock: *mut i32) -> i32 {
    let open = || {
        // SAFETY: guaranteed by the caller.
        let name = unsafe { text(name) }?;
        calls::open(name.to_str().map_err(|_| Failure::new(Code::Name, "the name is not in UTF-8"))?)
    };
    // SAFETY: guaranteed by the caller.
    unsafe { opened(lock, open) }
}

/// Opens the lock whose file is at `path`.
///
/// # Safety
/// See the module's documentation.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_open_path(path: *const c_char, lock: *mut i32) -> i32 {
    let open = || {
        // SAFETY: guaranteed by the caller.
        let path = unsafe { text(path) }?;
        calls::open_path(Path::new(OsStr::from_bytes(path.to_bytes())))
    };
    // SAFETY: guaranteed by the caller.
    unsafe { opened(lock, open) }
}

/// Takes a lock shared.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_shared(lock: i32, milliseconds: i32) -> i32 {
    call(|| calls::shared(lock, milliseconds).map(|()| Code::Ok))
}

/// Takes a lock exclusively.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_exclusive(lock: i32, milliseconds: i32) -> i32 {
    call(|| calls::exclusive(lock, milliseconds).map(|()| Code::Ok))
}

/// Takes a lock exclusively, whether or not its data is torn.
///
/// # Safety
/// See the module's documentation.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_mend(lock: i32, milliseconds: i32, torn_by: *mut i32) -> i32 {
    call(|| {
        let torn = calls::mend(lock, milliseconds)?;
        // SAFETY: guaranteed by the caller.
        unsafe { give(torn_by, torn) };
        Ok(Code::Ok)
    })
}

/// Declares that the data protected by a lock is consistent again.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_clear_torn(lock: i32) -> i32 {
    call(|| calls::clear_torn(lock).map(|()| Code::Ok))
}

/// Releases a lock.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_release(lock: i32) -> i32 {
    call(|| calls::release(lock).map(|()| Code::Ok))
}

/// Closes a lock.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_close(lock: i32) -> i32 {
    call(|| calls::close(lock).map(|()| Code::Ok))
}

/// Returns the process that tore the data, if the calling thread's last failure reported one.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_torn_by() -> i32 {
    last::torn_by()
}

/// Returns the text of the calling thread's last failure.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_error() -> *const c_char {
    last::text()
}
