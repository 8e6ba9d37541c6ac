//! Polling of VCQs.

use super::{code, give, not_null};
use crate::{
    failure::{Code, Outcome},
    polling::Notice,
    vcq,
};
use core::ffi::{c_int, c_ulong, c_void};

#[inline]
fn no_flags(flags: c_ulong) -> Outcome<()> {
    if flags == 0 { Ok(()) } else { Err(Code::INVALID_FLAGS.because(format_args!("{flags:#x} has unknown bits"))) }
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_poll_tcq(vcq_hdl: usize, flags: c_ulong, cbdata: *mut *mut c_void) -> c_int {
    let poll = || {
        not_null(cbdata)?;
        no_flags(flags)?;
        let (data, failed) = vcq::with(vcq_hdl, "utofu_poll_tcq", |vcq| vcq.poll_tcq())?;
        let data = core::ptr::with_exposed_provenance_mut(data as usize);
        // SAFETY: guaranteed by the caller.
        unsafe { give(cbdata, data) };
        failed.map_or(Ok(()), Err)
    };
    code(poll())
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_poll_mrq(vcq_hdl: usize, flags: c_ulong, notice: *mut Notice) -> c_int {
    let poll = || {
        not_null(notice)?;
        no_flags(flags)?;
        let (found, failed) = vcq::with(vcq_hdl, "utofu_poll_mrq", |vcq| vcq.poll_mrq())?;
        // SAFETY: guaranteed by the caller.
        unsafe { give(notice, found) };
        failed.map_or(Ok(()), Err)
    };
    code(poll())
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_num_unread_tcq(vcq_hdl: usize, count: *mut usize) -> c_int {
    let query = |vcq: &mut vcq::Vcq| Ok(vcq.unread_tcq as usize);
    code(not_null(count).and_then(|()| vcq::with(vcq_hdl, "utofu_query_num_unread_tcq", query)).map(|number| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(count, number) }
    }))
}

/// # Safety
/// See the module `names`.
// SAFETY: the name is this library's own.
#[unsafe(no_mangle)]
unsafe extern "C" fn utofu_query_num_unread_mrq(vcq_hdl: usize, count: *mut usize) -> c_int {
    let query = |vcq: &mut vcq::Vcq| Ok(vcq.unread_mrq as usize);
    code(not_null(count).and_then(|()| vcq::with(vcq_hdl, "utofu_query_num_unread_mrq", query)).map(|number| {
        // SAFETY: guaranteed by the caller.
        unsafe { give(count, number) }
    }))
}
