//! All names that the library exports.
//!
//! # Safety
//! Every function here asks its caller for what `onesided_lock.h` says: texts end with a zero byte,
//! and an address for a result is null or that of an `int` that nobody else uses meanwhile. Null is
//! refused. Handles are numbers, of which any is safe.

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
/// The address is null, or that of a text that ends with a zero byte and stays as it is for `'a`.
unsafe fn text<'a>(at: *const c_char) -> Outcome<&'a CStr> {
    if at.is_null() {
        return Err(Failure::new(Code::Argument, "a text is a null pointer"));
    }
    // SAFETY: not null, and the caller's promise.
    Ok(unsafe { CStr::from_ptr(at) })
}

/// Writes a result to an address, if it is not null.
///
/// # Safety
/// The address is null, or that of an `int` that nobody else uses meanwhile.
unsafe fn give(at: *mut i32, value: i32) {
    if !at.is_null() {
        // SAFETY: not null, and the caller's promise.
        unsafe { at.write(value) };
    }
}

/// Opens a lock, and gives its handle.
///
/// # Safety
/// As [`give`].
unsafe fn opened(lock: *mut i32, open: impl FnOnce() -> Outcome<i32>) -> i32 {
    call(|| {
        if lock.is_null() {
            return Err(Failure::new(Code::Argument, "there is nowhere to put the handle"));
        }
        let handle = open()?;
        // SAFETY: the caller's promise.
        unsafe { give(lock, handle) };
        Ok(Code::Ok)
    })
}

/// Opens the lock called `name`.
///
/// # Safety
/// As the module says.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_open(name: *const c_char, lock: *mut i32) -> i32 {
    let open = || {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name) }?;
        calls::open(name.to_str().map_err(|_| Failure::new(Code::Name, "the name is not in UTF-8"))?)
    };
    // SAFETY: the caller's promise.
    unsafe { opened(lock, open) }
}

/// Opens the lock whose file is at `path`.
///
/// # Safety
/// As the module says.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_open_path(path: *const c_char, lock: *mut i32) -> i32 {
    let open = || {
        // SAFETY: the caller's promise.
        let path = unsafe { text(path) }?;
        calls::open_path(Path::new(OsStr::from_bytes(path.to_bytes())))
    };
    // SAFETY: the caller's promise.
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

/// Takes a lock exclusively, torn or not.
///
/// # Safety
/// As the module says.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) unsafe extern "C" fn onesided_lock_mend(lock: i32, milliseconds: i32, torn_by: *mut i32) -> i32 {
    call(|| {
        let torn = calls::mend(lock, milliseconds)?;
        // SAFETY: the caller's promise.
        unsafe { give(torn_by, torn) };
        Ok(Code::Ok)
    })
}

/// Declares that what a lock protects is whole again.
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

/// Returns the process that tore the data, if the calling thread's last failure said so.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_torn_by() -> i32 {
    last::torn_by()
}

/// Returns what the calling thread's last failure was.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
pub(crate) extern "C" fn onesided_lock_error() -> *const c_char {
    last::text()
}
