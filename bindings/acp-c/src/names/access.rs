//! Copies, atomics, and waiting for them.

#![allow(unsafe_code)]

use crate::{
    boundary::{call, call_or_end},
    error::Result,
    library::Library,
    memory::address,
};
use acp::{AcpError, Handle, Order};
use core::{ffi::c_int, future::Future};
use onesided::block_on_short;
use rdma_fabric::Amo;

/// `ACP_HANDLE_NULL`.
const NONE: i64 = 0;

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_copy(dst: u64, src: u64, size: usize, order: i64) -> i64 {
    call("acp_copy", NONE, |library| {
        started(library, library.acp.copy(address(dst)?, address(src)?, size, Order::from_raw(order)))
    })
}

/// Returns the number of an operation once it is issued. Operations then proceed without further
/// calls: programs wait for data by looking at their memory. Always inlined: passing an operation through
/// memory costs as much as a lock.
#[inline(always)]
fn started(library: &Library, operation: impl Future<Output = Result<Handle, AcpError>>) -> Result<i64> {
    let handle = block_on_short(operation)?;
    library.acp.advance(handle)?;
    library.machine.acts();
    Ok(handle.number())
}

/// Exports atomics of one operand.
macro_rules! atomics {
    ($($name:ident: $word:ty = $kind:ident;)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(dst: u64, src: u64, value: $word, order: i64) -> i64 {
            call(stringify!($name), NONE, |library| {
                started(library, library.acp.atomic(address(dst)?, address(src)?, Amo::$kind(value), Order::from_raw(order)))
            })
        }
    )* };
}

atomics! {
    acp_swap4: u32 = Swap;
    acp_swap8: u64 = Swap;
    acp_add4: u32 = Add;
    acp_add8: u64 = Add;
    acp_xor4: u32 = Xor;
    acp_xor8: u64 = Xor;
    acp_or4: u32 = Or;
    acp_or8: u64 = Or;
    acp_and4: u32 = And;
    acp_and8: u64 = And;
}

/// Exports compare-and-swaps.
macro_rules! compare_swaps {
    ($($name:ident: $word:ty;)*) => { $(
        // SAFETY: as above.
        #[unsafe(no_mangle)]
        extern "C" fn $name(dst: u64, src: u64, expected: $word, new: $word, order: i64) -> i64 {
            call(stringify!($name), NONE, |library| {
                let amo = Amo::CompareSwap { expected, new };
                started(library, library.acp.atomic(address(dst)?, address(src)?, amo, Order::from_raw(order)))
            })
        }
    )* };
}

compare_swaps! {
    acp_cas4: u32;
    acp_cas8: u64;
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_complete(handle: i64) {
    call_or_end("acp_complete", (), |library| Ok(block_on_short(library.acp.complete(Order::from_raw(handle)))?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_inquire(handle: i64) -> c_int {
    call_or_end("acp_inquire", 0, |library| {
        let until = Order::from_raw(handle);
        let is_complete = library.acp.is_complete(until)?;
        // Time passes also in a loop that looks at memory and calls this.
        if library.machine.repeats(&library.acp, is_complete) && !is_complete && library.acp.is_complete(until)? {
            library.machine.acts();
            return Ok(0);
        }
        Ok(c_int::from(!is_complete))
    })
}
