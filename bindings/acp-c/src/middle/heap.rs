//! Allocations in the heaps of all ranks.

#![allow(unsafe_code, reason = "exported names; nothing is dereferenced")]

use super::{
    call::{call, run},
    types::{address, rank},
};
use core::ffi::c_int;

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_malloc(size: usize, on: c_int) -> u64 {
    call("acp_malloc", 0, async |acp| Ok(acp.malloc(size, rank(on)?).await?.to_bits()))
}

/// Frees an allocation; `ACP_GA_NULL` is none.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_free(ga: u64) {
    if ga != 0 {
        run("acp_free", async |acp| Ok(acp.free(address(ga)?).await?));
    }
}
