//! Starting, ending, ranks and barriers.

#![allow(unsafe_code)]

use crate::{
    arguments::{CommandLine, text},
    boundary::{call, call_anytime},
    start,
};
use core::ffi::{c_char, c_int};
use onesided::block_on_short;

/// # Safety
/// The arguments are null, or the addresses of those of `main`.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_init(argc: *mut c_int, argv: *mut *mut *mut c_char) -> c_int {
    // SAFETY: guaranteed by the caller.
    let line = unsafe { CommandLine::new(argc, argv) };
    call_anytime("acp_init", -1, || start::init(line).map(|()| 0))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_finalize() -> c_int {
    call_anytime("acp_finalize", -1, || start::finalize().map(|()| 0))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_reset(rank: c_int) -> c_int {
    call_anytime("acp_reset", -1, || start::reset(rank).map(|()| 0))
}

/// # Safety
/// The text is null, or ends with a zero.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_abort(said: *const c_char) {
    // SAFETY: guaranteed by the caller.
    let said = unsafe { text(said) }.unwrap_or_default();
    start::abort(&said)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_sync() -> c_int {
    call("acp_sync", -1, |library| Ok(block_on_short(library.acp.sync()).map(|()| 0)?))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_rank() -> c_int {
    call("acp_rank", -1, |library| Ok(library.acp.rank().number() as c_int))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_procs() -> c_int {
    call("acp_procs", -1, |library| Ok(library.acp.ranks() as c_int))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_colors() -> c_int {
    call("acp_colors", -1, |library| Ok(library.acp.colours() as c_int))
}
