//! The middle layer that is linked: this library's, or another one with the same entry points, such
//! as ACP's own `libacpml`.
//!
//! The six entry points are exported by this library. If the program, or a library before this one,
//! defines them as well, the dynamic linker gives all callers that definition; so they are called
//! here by the addresses that it gives, not directly.

use crate::{
    error::{CallError, Result},
    names::internal::{iacp_abort_cl, iacp_abort_dl, iacp_finalize_cl, iacp_finalize_dl, iacp_init_cl, iacp_init_dl},
};
use core::{ffi::c_int, hint::black_box};

type Entry = extern "C" fn() -> c_int;

/// Starts the data library, then the communication library.
///
/// # Errors
/// [`CallError::Middle`].
pub(crate) fn start() -> Result<()> {
    called("iacp_init_dl", iacp_init_dl)?;
    called("iacp_init_cl", iacp_init_cl)
}

/// Ends the communication library, then the data library.
///
/// # Errors
/// [`CallError::Middle`].
pub(crate) fn end() -> Result<()> {
    let channels = called("iacp_finalize_cl", iacp_finalize_cl);
    channels.and(called("iacp_finalize_dl", iacp_finalize_dl))
}

/// Ends both before the job is aborted.
pub(crate) fn abort() {
    for entry in [iacp_abort_cl, iacp_abort_dl] {
        // An opaque value, so that the call is not resolved to the function of this library.
        black_box(entry as extern "C" fn())();
    }
}

fn called(function: &'static str, entry: Entry) -> Result<()> {
    // As in `abort`.
    match black_box(entry)() {
        0 => Ok(()),
        code => Err(CallError::Middle { function, code }),
    }
}
