//! Starter memory, registered memory, and questions about addresses.

#![allow(unsafe_code)]

use crate::boundary::call;
use core::{
    ffi::{c_int, c_void},
    ptr,
};

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_query_starter_ga(rank: c_int) -> u64 {
    call("acp_query_starter_ga", 0, |library| Ok(library.acp.starter(library.rank(rank)?)?.to_bits()))
}

/// # Safety
/// The memory stays mapped until it is unregistered; the program expects other ranks to access it.
// SAFETY: as above.
#[unsafe(no_mangle)]
unsafe extern "C" fn acp_register_memory(address: *mut c_void, size: usize, color: c_int) -> u64 {
    call("acp_register_memory", 0, |library| {
        // SAFETY: guaranteed by the caller.
        unsafe { library.register(address, size, color) }
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_unregister_memory(key: u64) -> c_int {
    call("acp_unregister_memory", -1, |library| library.unregister(key).map(|()| 0))
}

// SAFETY: as above. The address is compared, not accessed.
#[unsafe(no_mangle)]
extern "C" fn acp_query_ga(key: u64, address: *mut c_void) -> u64 {
    call("acp_query_ga", 0, |library| library.global_address(key, address.addr()))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_address(ga: u64) -> *mut c_void {
    let found = |address| ptr::with_exposed_provenance_mut(address);
    call("acp_query_address", ptr::null_mut(), |library| library.process_address(ga).map(found))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_rank(ga: u64) -> c_int {
    call("acp_query_rank", -1, |library| library.parts(ga).map(|(rank, _)| rank.number() as c_int))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_query_color(ga: u64) -> c_int {
    call("acp_query_color", -1, |library| library.parts(ga).map(|(_, colour)| colour as c_int))
}
