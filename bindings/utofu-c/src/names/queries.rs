//! TNIs, capabilities, versions, coordinates, and the reason of the last failure.

use super::{code, give, not_null};
use crate::{
    caps::{self, BarrierCaps, OnesidedCaps},
    failure::{Code, Outcome, with_last},
    ids::TNIS,
    job::job,
    torus,
};
use core::ffi::{c_char, c_int};

/// Gives the program a list of the TNIs, in a block that it frees.
///
/// # Safety
/// See the module `names`.
unsafe fn tnis(ids: *mut *mut u16, count: *mut usize) -> Outcome<()> {
    not_null(ids)?;
    not_null(count)?;
    job()?;
    let len = usize::from(TNIS);
    // SAFETY: any number of bytes may be requested.
    let block = unsafe { libc::malloc(len * size_of::<u16>()) }.cast::<u16>();
    if block.is_null() {
        return Err(Code::OUT_OF_MEMORY.because("malloc failed"));
    }
    for tni in 0..TNIS {
        // SAFETY: inside the block, which is aligned for any type.
        unsafe { block.add(tni.into()).write(tni) };
    }
    // SAFETY: guaranteed by the caller.
    unsafe {
        give(ids, block);
        give(count, len);
    }
    Ok(())
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_get_onesided_tnis(tni_ids: *mut *mut u16, num_tnis: *mut usize) -> c_int {
    // SAFETY: guaranteed by the caller.
    code(unsafe { tnis(tni_ids, num_tnis) })
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_get_barrier_tnis(tni_ids: *mut *mut u16, num_tnis: *mut usize) -> c_int {
    // SAFETY: guaranteed by the caller.
    code(unsafe { tnis(tni_ids, num_tnis) })
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_onesided_caps(tni_id: u16, tni_caps: *mut *const OnesidedCaps) -> c_int {
    code(not_null(tni_caps).and_then(|()| caps::tni(tni_id)).map(|_| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(tni_caps, &raw const *caps::onesided()) }
    }))
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_barrier_caps(tni_id: u16, tni_caps: *mut *const BarrierCaps) -> c_int {
    code(not_null(tni_caps).and_then(|()| caps::tni(tni_id)).map(|_| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(tni_caps, &raw const *caps::barrier()) }
    }))
}

/// Gives the program a version.
///
/// # Safety
/// See the module `names`; null is allowed.
unsafe fn version(major: *mut c_int, minor: *mut c_int, version: [c_int; 2]) {
    for (at, number) in [major, minor].into_iter().zip(version) {
        if !at.is_null() {
            // SAFETY: guaranteed by the caller.
            unsafe { give(at, number) };
        }
    }
}

/// # Safety
/// See the module `names`; null is allowed.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_tofu_version(major_ver: *mut c_int, minor_ver: *mut c_int) {
    // TofuD.
    // SAFETY: guaranteed by the caller.
    unsafe { version(major_ver, minor_ver, [3, 0]) };
}

/// # Safety
/// See the module `names`; null is allowed.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_utofu_version(major_ver: *mut c_int, minor_ver: *mut c_int) {
    // SAFETY: guaranteed by the caller.
    unsafe { version(major_ver, minor_ver, [1, 0]) };
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_my_coords(coords: *mut u8) -> c_int {
    code(not_null(coords).and_then(|()| job()).map(|job| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(coords.cast(), torus::coords(job.machine.rank().number())) }
    }))
}

/// Bytes that programs have for the reason of a failure: the least that is known of any.
const MESSAGE: usize = 256;

/// Writes the reason of the calling thread's last failure, and a zero byte, to at most 256 bytes.
///
/// # Safety
/// See the module `names`; `message` has room for 256 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_get_last_error(message: *mut c_char) {
    if message.is_null() {
        return;
    }
    with_last(|text| {
        let mut len = text.len().min(MESSAGE - 1);
        while !text.is_char_boundary(len) {
            len -= 1;
        }
        // SAFETY: the caller has room for `MESSAGE` bytes, of which these are fewer, and the zero.
        unsafe {
            core::ptr::copy_nonoverlapping(text.as_ptr(), message.cast(), len);
            message.add(len).write(0);
        }
    });
}
