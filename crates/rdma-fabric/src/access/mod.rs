//! Reads and writes of memory that others may access at any time.
//!
//! Every access to a byte of a segment's heap goes through this module, on every rank. Racing plain
//! accesses are undefined behaviour in Rust, relaxed word loops are slower than a copy, and atomics
//! of different widths on the same bytes are undefined too. So on x86-64 and aarch64 the accesses
//! are inline assembly, which the compiler must keep as written; elsewhere and under Miri they are
//! `AtomicU64` cells, with compare-and-swap for parts of a cell (4-byte atomics included, so that
//! all widths stay coherent).
//!
//! # Ordering
//! | access | guarantee |
//! |---|---|
//! | [`load`] | acquire; never torn |
//! | [`store`] | release; never torn |
//! | [`rmw`] | acquire and release, so every earlier store of this CPU is ordered before it; a full barrier on x86-64 |
//! | [`barrier`] | a full barrier, after which all earlier stores of this CPU are visible |
//! | copies | a copy of exactly 4 or 8 aligned bytes is one load (acquire) or store (release); a longer one has no order inside, and is ordered before later stores, read-modify-writes and fences of this CPU |
//!
//! [`STORES_IN_ORDER`] states whether all stores of one CPU, including those of copies, are
//! observed in order: then any observer that sees a byte of a later copy sees all of an earlier
//! one.
//!
//! Overlapping source and destination leave unspecified bytes in the destination, and have no other
//! effect; a copy of at most 64 bytes leaves the previous bytes of the source.
//!
//! # Safety
//! Callers pass addresses that are valid for the bytes, in memory that is accessed only through
//! this module. Under this condition no access here is a data race in Rust's sense: shared bytes
//! are touched by assembly, which the compiler keeps as written, or by atomics of one width. The
//! two forms never occur on the same byte: the form is fixed when the crate is compiled.

#![allow(unsafe_code)]

#[cfg(all(target_arch = "aarch64", not(miri)))]
mod aarch64;
#[cfg(any(test, miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
#[cfg_attr(test, allow(unreachable_pub))]
mod portable;
#[cfg(all(any(target_arch = "x86_64", target_arch = "aarch64"), not(miri)))]
mod short;
#[cfg(all(target_arch = "x86_64", not(miri)))]
mod x86_64;

#[cfg(all(target_arch = "aarch64", not(miri)))]
use aarch64 as chosen;
#[cfg(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64"))))]
use portable as chosen;
#[cfg(all(target_arch = "x86_64", not(miri)))]
use x86_64 as chosen;

/// The size and alignment in bytes that memory must have to be accessed in place.
pub const CELL: usize = if cfg!(any(miri, not(any(target_arch = "x86_64", target_arch = "aarch64")))) { 8 } else { 1 };

/// Whether an observer that sees any byte of a store or copy of one CPU sees all of that CPU's
/// earlier ones.
///
/// On x86-64 stores are observed in their order, and none here is non-temporal. The bytes of one
/// string move may be seen in any order, but not before an earlier store or after a later one. On
/// aarch64 only a store of a word is ordered after earlier accesses; copies are not ordered among
/// themselves. Portable cells are released one by one.
pub const STORES_IN_ORDER: bool = chosen::STORES_IN_ORDER;

pub use chosen::{copy_between, copy_in, copy_out, expect_store, zero};

use crate::Amo;

/// Loads a word of `width` bytes, 4 or 8; returns its bits, zero-extended.
///
/// # Safety
/// `p` is valid for `width` bytes and aligned to them.
#[inline(always)]
pub unsafe fn load(p: *const u8, width: usize) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { if width == 4 { chosen::load4(p).into() } else { chosen::load8(p) } }
}

/// Stores the low bits of `bits` in a word of `width` bytes, 4 or 8.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub unsafe fn store(p: *mut u8, width: usize, bits: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe { if width == 4 { chosen::store4(p, bits as u32) } else { chosen::store8(p, bits) } }
}

/// Changes a word of `width` bytes, 4 or 8, with the low bits of the operands; returns the bits
/// before, zero-extended.
///
/// # Safety
/// As [`load`].
#[inline(always)]
pub unsafe fn rmw(p: *mut u8, width: usize, amo: Amo<u64>) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { if width == 4 { chosen::rmw4(p, amo.map(|value| value as u32)).into() } else { chosen::rmw8(p, amo) } }
}

/// Copies as [`copy_between`] does, as one of several copies of equal length with a total of `all`
/// bytes. The total selects the fastest method.
///
/// # Safety
/// As [`copy_between`].
#[inline(always)]
pub unsafe fn copy_one_of(dst: *mut u8, src: *const u8, len: usize, all: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe {
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        x86_64::copy_one_of(dst, src, len, all);
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        {
            let _ = all;
            copy_between(dst, src, len);
        }
    }
}

/// A full barrier: all earlier stores of this CPU through this module are visible to all before any
/// later load or store of this CPU.
///
/// On x86-64 a locked instruction is one, for loads and stores of write-back memory (Intel SDM
/// volume 3, section 9.2; AMD APM volume 2, section 7.4.2), at a fraction of the cost of the
/// `mfence` to which a fence is compiled. `mfence` also orders accesses to other memory types,
/// which are never registered here, and non-temporal stores, which this module does not make.
#[inline(always)]
pub fn barrier() {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    x86_64::barrier();
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    core::sync::atomic::fence(core::sync::atomic::Ordering::SeqCst);
}

#[cfg(test)]
mod tests;
