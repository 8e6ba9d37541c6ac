//! Barrier gates.

use super::{code, give, not_null};
use crate::{
    failure::{Code, Outcome},
    gates::{self, Setting},
};
use core::ffi::{c_int, c_ulong};
use fabric_offload::barrier::GateValue;

/// # Safety
/// See the module `names`; `vbg_ids` has `num_vbgs` elements.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_alloc_vbg(tni_id: u16, num_vbgs: usize, flags: c_ulong, vbg_ids: *mut u64) -> c_int {
    code(not_null(vbg_ids).and_then(|()| {
        // SAFETY: guaranteed by the caller.
        gates::alloc(tni_id, num_vbgs, flags, |at, id| unsafe { give(vbg_ids.add(at), id) })
    }))
}

/// # Safety
/// See the module `names`; `vbg_ids` has `num_vbgs` elements.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_free_vbg(vbg_ids: *mut u64, num_vbgs: usize) -> c_int {
    code(not_null(vbg_ids).and_then(|()| {
        // SAFETY: guaranteed by the caller.
        gates::free((0..num_vbgs).map(|at| unsafe { vbg_ids.add(at).read_unaligned() }))
    }))
}

/// # Safety
/// See the module `names`; `vbg_settings` has `num_vbg_settings` elements.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_set_vbg(vbg_settings: *mut Setting, num_vbg_settings: usize) -> c_int {
    code(not_null(vbg_settings).and_then(|()| {
        // SAFETY: guaranteed by the caller.
        gates::set((0..num_vbg_settings).map(|at| unsafe { vbg_settings.add(at).read_unaligned() }))
    }))
}

/// # Safety
/// See the module `names`; `coords` has 6 bytes.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_vbg_info(
    vbg_id: u64,
    coords: *mut u8,
    tni_id: *mut u16,
    bg_id: *mut u16,
    extra_val: *mut u16,
) -> c_int {
    let query = || {
        not_null(coords)?;
        [tni_id, bg_id, extra_val].into_iter().try_for_each(|at| not_null(at))?;
        let (at, tni, gate, extra) = gates::info(vbg_id)?;
        // SAFETY: guaranteed by the caller.
        unsafe {
            give(coords.cast(), at);
            give(tni_id, tni);
            give(bg_id, gate);
            give(extra_val, extra);
        }
        Ok(())
    };
    code(query())
}

/// Starts a barrier.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn utofu_barrier(vbg_id: u64, flags: c_ulong) -> c_int {
    code(gates::barrier(vbg_id, flags))
}

/// Starts a reduction.
///
/// # Safety
/// See the module `names`; `data` has `len` elements.
unsafe fn reduce<T: GateValue>(vbg_id: u64, op: c_int, data: *const T, len: usize, flags: u64) -> c_int {
    let reduce = || {
        not_null(data)?;
        let mut values = [T::default(); 6];
        let Some(values) = values.get_mut(..len) else {
            return Err(Code::INVALID_NUMBER.because(format_args!("{len} values are more than {}", T::MOST)));
        };
        for (at, value) in values.iter_mut().enumerate() {
            // SAFETY: guaranteed by the caller.
            *value = unsafe { data.add(at).read_unaligned() };
        }
        gates::reduce(vbg_id, op, values, flags)
    };
    code(reduce())
}

/// # Safety
/// See the module `names`; `data` has `num_data` elements.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_reduce_uint64(
    vbg_id: u64,
    op: c_int,
    data: *mut u64,
    num_data: usize,
    flags: c_ulong,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { reduce(vbg_id, op, data, num_data, flags) }
}

/// # Safety
/// See the module `names`; `data` has `num_data` elements.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_reduce_double(
    vbg_id: u64,
    op: c_int,
    data: *mut f64,
    num_data: usize,
    flags: c_ulong,
) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { reduce(vbg_id, op, data, num_data, flags) }
}

/// Polls a barrier.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
extern "C" fn utofu_poll_barrier(vbg_id: u64, flags: c_ulong) -> c_int {
    code(gates::poll(vbg_id, flags).map(drop))
}

/// Polls a reduction.
///
/// # Safety
/// See the module `names`; `data` has as many elements as the reduction.
unsafe fn poll<T: GateValue>(vbg_id: u64, flags: u64, data: *mut T) -> c_int {
    let poll = || -> Outcome<()> {
        not_null(data)?;
        let Some(values) = gates::poll(vbg_id, flags)? else { return Ok(()) };
        for at in 0..values.len() {
            let wrong = || Code::INVALID_DATA.because(format_args!("the values are not {}", T::NAME));
            let value = values.get::<T>(at).ok_or_else(wrong)?;
            // SAFETY: guaranteed by the caller.
            unsafe { give(data.add(at), value) };
        }
        Ok(())
    };
    code(poll())
}

/// # Safety
/// See the module `names`; `data` has as many elements as the reduction.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_poll_reduce_uint64(vbg_id: u64, flags: c_ulong, data: *mut u64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { poll(vbg_id, flags, data) }
}

/// # Safety
/// See the module `names`; `data` has as many elements as the reduction.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_poll_reduce_double(vbg_id: u64, flags: c_ulong, data: *mut f64) -> c_int {
    // SAFETY: guaranteed by the caller.
    unsafe { poll(vbg_id, flags, data) }
}
