//! All libfabric calls, behind types with safe functions.
//!
//! The objects that libfabric returns are owned here: they are closed once, after all objects that
//! were opened through them. Memory that peers may write is neither freed nor exposed as a slice;
//! buffers for which no peer has a key are exposed, while no operation uses them.

#![allow(unsafe_code)]

mod call;
mod domain;
mod endpoint;
mod info;
mod lent;
mod memory;
mod nic;
mod objects;
mod post;
mod queue;
mod signals;
mod uncached;

pub(crate) use domain::Domain;
pub(crate) use endpoint::{Endpoint, Sizes};
pub(crate) use info::{Facts, Hints, Info, version};
pub(crate) use memory::{Access, Memory, Registration, Span};
pub(crate) use objects::LONGEST_ADDRESS;
pub(crate) use post::{Bytes, Holds, Remote, Work};
pub(crate) use signals::release as release_signals;

use fabric_ofi_sys as sys;
use std::{
    ffi::{CStr, c_char, c_int},
    ptr::NonNull,
};

/// The requested version of the interface: later libraries behave like this version.
pub(crate) const API: u32 = 1 << 16 | 17;

/// A libfabric call that failed: its name, and the positive code.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Failed {
    pub(crate) call: &'static str,
    pub(crate) code: i32,
}

impl Failed {
    /// Converts the return value of `call`: 0 or more is a success.
    fn check(call: &'static str, returned: impl Into<i64>) -> Result<(), Self> {
        let returned = returned.into();
        if returned >= 0 { Ok(()) } else { Err(Self { call, code: i32::try_from(-returned).unwrap_or(i32::MAX) }) }
    }

    /// Returns the object that `call` made.
    fn object<T>(call: &'static str, returned: c_int, made: *mut T) -> Result<NonNull<T>, Self> {
        Self::check(call, returned)?;
        NonNull::new(made).ok_or(Self { call, code: sys::FI_ENODATA as i32 })
    }

    /// Returns whether the call may succeed after some progress.
    pub(crate) fn is_for_now(self) -> bool {
        self.code == sys::FI_EAGAIN as i32
    }
}

/// Returns libfabric's text for a positive code.
pub(crate) fn text_of(code: i32) -> String {
    // SAFETY: any number is accepted; the text is a constant.
    unsafe { text(sys::fi_strerror(code)) }.unwrap_or_else(|| format!("error {code}"))
}

/// Copies a C string, if there is one.
///
/// # Safety
/// The address is null, or that of a text that ends with a zero and does not change during the
/// call.
unsafe fn text(address: *const c_char) -> Option<String> {
    if address.is_null() {
        return None;
    }
    // SAFETY: it is such a text, as guaranteed by the caller.
    Some(unsafe { CStr::from_ptr(address) }.to_string_lossy().into_owned())
}

/// Closes an object, and returns whether that succeeded.
///
/// # Safety
/// The object is open, is not used afterwards, and all objects that were opened through it are
/// closed.
unsafe fn close(object: *mut sys::fid) -> bool {
    // SAFETY: it is open, as guaranteed by the caller.
    unsafe { sys::fi_close(object) == 0 }
}
