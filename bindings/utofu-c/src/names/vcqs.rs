//! VCQs, their ids, and paths.

use super::{bytes, code, give, not_null};
use crate::{
    failure::{Code, Outcome},
    ids::VcqId,
    torus::{self, Path},
    vcq,
};
use core::ffi::{c_int, c_ulong};

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_create_vcq(tni_id: u16, flags: c_ulong, vcq_hdl: *mut usize) -> c_int {
    code(not_null(vcq_hdl).and_then(|()| vcq::create(tni_id, None, flags)).map(|handle| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(vcq_hdl, handle) }
    }))
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_create_vcq_with_cmp_id(
    tni_id: u16,
    cmp_id: u16,
    flags: c_ulong,
    vcq_hdl: *mut usize,
) -> c_int {
    code(not_null(vcq_hdl).and_then(|()| vcq::create(tni_id, Some(cmp_id), flags)).map(|handle| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(vcq_hdl, handle) }
    }))
}

/// Closes a VCQ.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn utofu_free_vcq(vcq_hdl: usize) -> c_int {
    code(vcq::free(vcq_hdl))
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_vcq_id(vcq_hdl: usize, vcq_id: *mut u64) -> c_int {
    let id = not_null(vcq_id).and_then(|()| vcq::with(vcq_hdl, "utofu_query_vcq_id", |vcq| Ok(vcq.id)));
    code(id.map(|id| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(vcq_id, id.to_bits()) }
    }))
}

/// # Safety
/// See the module `names`; `coords` has 6 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_construct_vcq_id(
    coords: *mut u8,
    tni_id: u16,
    cq_id: u16,
    cmp_id: u16,
    vcq_id: *mut u64,
) -> c_int {
    let construct = || {
        not_null(coords)?;
        not_null(vcq_id)?;
        // SAFETY: guaranteed by the caller.
        let coords = unsafe { bytes(coords) };
        vcq::component_id(coords, tni_id, cq_id, cmp_id)
    };
    code(construct().map(|id| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(vcq_id, id.to_bits()) }
    }))
}

/// Returns the path at an address; `None`, for the default, if the address or its first byte is null.
///
/// # Safety
/// As [`bytes`], unless it is null.
unsafe fn path(coords: *const u8) -> Option<Path> {
    if coords.is_null() {
        return None;
    }
    // SAFETY: guaranteed by the caller.
    let path: Path = unsafe { bytes(coords) };
    (path[0] != u8::MAX).then_some(path)
}

/// # Safety
/// See the module `names`; `path_coords` is null or has 3 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_set_vcq_id_path(vcq_id: *mut u64, path_coords: *mut u8) -> c_int {
    let set = || {
        not_null(vcq_id)?;
        // SAFETY: guaranteed by the caller.
        let (bits, path) = unsafe { (vcq_id.read_unaligned(), path(path_coords)) };
        VcqId::from_bits(bits)?.through(path)
    };
    code(set().map(|id| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(vcq_id, id.to_bits()) }
    }))
}

/// # Safety
/// See the module `names`; `coords` has 6 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_vcq_info(
    vcq_id: u64,
    coords: *mut u8,
    tni_id: *mut u16,
    cq_id: *mut u16,
    extra_val: *mut u16,
) -> c_int {
    let query = || -> Outcome<()> {
        not_null(coords)?;
        [tni_id, cq_id, extra_val].into_iter().try_for_each(|at| not_null(at))?;
        let id = VcqId::from_bits(vcq_id)?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            give(coords.cast(), id.coords);
            give(tni_id, id.tni.into());
            give(cq_id, id.cq.into());
            give(extra_val, id.context.into());
        }
        Ok(())
    };
    code(query())
}

/// # Safety
/// See the module `names`; `path_coords` is null or has 3 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_get_path_id(vcq_id: u64, path_coords: *mut u8, path_id: *mut u8) -> c_int {
    let get = || {
        not_null(path_id)?;
        // SAFETY: guaranteed by the caller.
        VcqId::from_bits(vcq_id)?.through(unsafe { path(path_coords) })
    };
    code(get().map(|id| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(path_id, id.path) }
    }))
}

/// # Safety
/// See the module `names`; `path_coords` has 3 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_get_path_coords(vcq_id: u64, path_id: u8, path_coords: *mut u8) -> c_int {
    let get = || {
        not_null(path_coords)?;
        VcqId::from_bits(vcq_id)?;
        torus::path(path_id).ok_or_else(|| Code::INVALID_PATH_ID.because(format_args!("{path_id} is not a path id")))
    };
    code(get().map(|path| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(path_coords.cast(), path) }
    }))
}
