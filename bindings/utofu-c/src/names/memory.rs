//! Registration of memory.

use super::{code, give, not_null};
use crate::{memory, vcq};
use core::ffi::{c_int, c_uint, c_ulong, c_void};

/// # Safety
/// See the module `names`; the program keeps the bytes at `addr` mapped until it deregisters them.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_reg_mem(
    vcq_hdl: usize,
    addr: *mut c_void,
    size: usize,
    flags: c_ulong,
    stadd: *mut u64,
) -> c_int {
    let address = addr.expose_provenance();
    let register = |vcq: &mut vcq::Vcq| vcq.register(address, size, None, flags);
    code(not_null(stadd).and_then(|()| vcq::with(vcq_hdl, "utofu_reg_mem", register)).map(|at| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(stadd, at) }
    }))
}

/// # Safety
/// As [`utofu_reg_mem`].
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_reg_mem_with_stag(
    vcq_hdl: usize,
    addr: *mut c_void,
    size: usize,
    stag: c_uint,
    flags: c_ulong,
    stadd: *mut u64,
) -> c_int {
    let address = addr.expose_provenance();
    let register = |vcq: &mut vcq::Vcq| vcq.register(address, size, Some(stag), flags);
    code(not_null(stadd).and_then(|()| vcq::with(vcq_hdl, "utofu_reg_mem_with_stag", register)).map(|at| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(stadd, at) }
    }))
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_stadd(vcq_id: u64, stag: c_uint, stadd: *mut u64) -> c_int {
    code(not_null(stadd).and_then(|()| memory::query(vcq_id, stag)).map(|at| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(stadd, at) }
    }))
}

/// Ends a registration.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn utofu_dereg_mem(vcq_hdl: usize, stadd: u64, flags: c_ulong) -> c_int {
    code(vcq::with(vcq_hdl, "utofu_dereg_mem", |vcq| vcq.deregister(stadd, flags)))
}
