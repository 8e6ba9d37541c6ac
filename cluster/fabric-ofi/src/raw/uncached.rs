//! Registrations that end with their handles.
//!
//! Providers that pin memory keep registrations in libfabric's cache after `fi_close`, and find them there
//! by address. A peer could then use the key of a dropped region, and a new region at a reused address could
//! receive its bytes in the pages of the old one (seen over `verbs` with libfabric 1.17 and its monitor
//! `memhooks`). Regions here are registered once and kept long, so a cache gains nothing.
//!
//! The monitor of memory that is imported here (`fi_ext.h`) watches no memory. libfabric caches only what is
//! watched, so it caches nothing.

use super::{API, Failed, sys};
use std::{
    env,
    ffi::{c_int, c_void},
    ptr::null_mut,
    sync::OnceLock,
};

/// Disables the cache for all domains that this process opens later.
///
/// # Errors
/// `FI_EBUSY` if another component of this process uses the cache.
pub(super) fn disable() -> Result<(), Failed> {
    static DISABLED: OnceLock<Result<(), Failed>> = OnceLock::new();
    *DISABLED.get_or_init(|| if is_disabled_by_user() { Ok(()) } else { import() })
}

/// Returns whether variables of the user disable the cache.
fn is_disabled_by_user() -> bool {
    let is = |name: &str, value: &str| env::var(name).is_ok_and(|set| set == value);
    is("FI_MR_CACHE_MONITOR", "disabled") || is("FI_MR_CACHE_MAX_COUNT", "0")
}

fn import() -> Result<(), Failed> {
    let ops = Box::new(sys::fi_ops_mem_monitor {
        size: size_of::<sys::fi_ops_mem_monitor>(),
        start: Some(start),
        stop: Some(stop),
        subscribe: Some(subscribe),
        unsubscribe: Some(unsubscribe),
        valid: Some(valid),
    });
    // libfabric may call the monitor until the process ends.
    let ops = Box::leak(ops);
    let fid = sys::fid {
        fclass: sys::FI_CLASS_MEM_MONITOR as usize,
        context: null_mut(),
        // libfabric sets its own, with which the monitor could be removed.
        ops: null_mut(),
    };
    let monitor = Box::leak(Box::new(sys::fid_mem_monitor { fid, export_ops: ops, import_ops: null_mut() }));
    // SAFETY: the monitor and its functions are valid until the process ends, and are not accessed here any
    // more. There is no attribute, and the name ends with a zero.
    let returned =
        unsafe { sys::fi_import(API, c"mr_cache".as_ptr(), null_mut(), 0, 0, &raw mut monitor.fid, null_mut()) };
    Failed::check("fi_import of mr_cache", returned)
}

/// # Safety
/// The type is that of `fi_ext.h`; it dereferences nothing, and so do the others.
unsafe extern "C" fn start(_: *mut sys::fid_mem_monitor) -> c_int {
    0
}

/// # Safety
/// As [`start`].
unsafe extern "C" fn stop(_: *mut sys::fid_mem_monitor) {}

/// Refuses to watch memory, upon which libfabric does not cache its registration.
///
/// # Safety
/// As [`start`].
unsafe extern "C" fn subscribe(_: *mut sys::fid_mem_monitor, _: *const c_void, _: usize) -> c_int {
    -(sys::FI_ENOSYS as c_int)
}

/// # Safety
/// As [`start`].
unsafe extern "C" fn unsubscribe(_: *mut sys::fid_mem_monitor, _: *const c_void, _: usize) {}

/// # Safety
/// As [`start`].
unsafe extern "C" fn valid(_: *mut sys::fid_mem_monitor, _: *const c_void, _: usize) -> bool {
    false
}
