//! All other targets, and Miri: cells of 8 bytes, each an `AtomicU64`. Parts of a cell are written
//! by compare-and-swap, so accesses of all widths to the same bytes are coherent and none is a
//! mixed-size race.
//!
//! # Safety
//! Pointers into shared memory lie in an allocation that starts and ends on a cell boundary, so
//! that the cell around any of its bytes is inside; all access to it is through cells.

use crate::Amo;
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};

const CELL: usize = 8;

/// Each cell is written by a release.
#[cfg_attr(test, allow(dead_code))]
pub(super) const STORES_IN_ORDER: bool = true;

/// Does nothing: no such hint is available.
pub fn expect_store(_: *const u8) {}

/// Returns the cell that holds byte `p`, and the byte's position in it.
///
/// # Safety
/// `p` points into memory that lives for `'a` and is accessed through cells only.
#[inline]
unsafe fn cell<'a>(p: *const u8) -> (&'a AtomicU64, usize) {
    let at = p.addr() % CELL;
    // SAFETY: the cell is aligned, inside the allocation (module docs) and always accessed
    // atomically.
    (unsafe { AtomicU64::from_ptr(p.wrapping_sub(at).cast::<u64>().cast_mut()) }, at)
}

/// Returns the bits of a cell that bytes `at..at + len` cover.
fn mask(at: usize, len: usize) -> u64 {
    let mut bytes = [0u8; CELL];
    bytes[at..at + len].fill(0xff);
    u64::from_ne_bytes(bytes)
}

/// Puts the covered bytes of `value` into the cell. A whole cell is one release store.
fn merge(cell: &AtomicU64, at: usize, len: usize, value: u64) {
    if len == CELL {
        return cell.store(value, Release);
    }
    let mask = mask(at, len);
    // Never fails: the closure always has a value.
    let _ = cell.fetch_update(AcqRel, Relaxed, |old| Some(old & !mask | value & mask));
}

/// # Safety
/// `p` is valid for the word and aligned to it.
#[inline]
pub(super) unsafe fn load8(p: *const u8) -> u64 {
    // SAFETY: guaranteed by the caller.
    unsafe { cell(p).0.load(Acquire) }
}

/// # Safety
/// As [`load8`].
#[inline]
pub(super) unsafe fn store8(p: *mut u8, value: u64) {
    // SAFETY: guaranteed by the caller.
    unsafe { cell(p).0.store(value, Release) }
}

/// # Safety
/// As [`load8`].
#[inline]
pub(super) unsafe fn rmw8(p: *mut u8, amo: Amo<u64>) -> u64 {
    // SAFETY: guaranteed by the caller.
    let cell = unsafe { cell(p).0 };
    match amo {
        Amo::Add(v) => cell.fetch_add(v, AcqRel),
        Amo::Swap(v) => cell.swap(v, AcqRel),
        Amo::CompareSwap { expected, new } => {
            cell.compare_exchange(expected, new, AcqRel, Acquire).unwrap_or_else(|old| old)
        }
        Amo::Or(v) => cell.fetch_or(v, AcqRel),
        Amo::And(v) => cell.fetch_and(v, AcqRel),
        Amo::Xor(v) => cell.fetch_xor(v, AcqRel),
    }
}

fn half(cell: u64, at: usize) -> u32 {
    let b = cell.to_ne_bytes();
    u32::from_ne_bytes([b[at], b[at + 1], b[at + 2], b[at + 3]])
}

fn spread(value: u32, at: usize) -> u64 {
    let mut bytes = [0u8; CELL];
    bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    u64::from_ne_bytes(bytes)
}

/// # Safety
/// As [`load8`].
#[inline]
pub(super) unsafe fn load4(p: *const u8) -> u32 {
    // SAFETY: guaranteed by the caller; an aligned 4-byte word lies in one cell.
    let (cell, at) = unsafe { cell(p) };
    half(cell.load(Acquire), at)
}

/// # Safety
/// As [`load8`].
#[inline]
pub(super) unsafe fn store4(p: *mut u8, value: u32) {
    // SAFETY: guaranteed by the caller; an aligned 4-byte word lies in one cell.
    let (cell, at) = unsafe { cell(p) };
    merge(cell, at, 4, spread(value, at));
}

/// # Safety
/// As [`load8`].
#[inline]
pub(super) unsafe fn rmw4(p: *mut u8, amo: Amo<u32>) -> u32 {
    // SAFETY: guaranteed by the caller; an aligned 4-byte word lies in one cell.
    let (cell, at) = unsafe { cell(p) };
    let mask = mask(at, 4);
    let mut seen = cell.load(Acquire);
    loop {
        let old = half(seen, at);
        let new = seen & !mask | spread(amo.apply(old), at);
        match cell.compare_exchange_weak(seen, new, AcqRel, Acquire) {
            Ok(_) => return old,
            Err(now) => seen = now,
        }
    }
}

/// Calls `f` with each run of bytes of `len` that lies in one cell: its position in the copy and
/// its length.
fn runs(start: usize, len: usize, mut f: impl FnMut(usize, usize)) {
    let mut done = 0;
    while done < len {
        let run = (CELL - (start + done) % CELL).min(len - done);
        f(done, run);
        done += run;
    }
}

/// Copies bytes from private to shared memory.
///
/// # Safety
/// Both sides are valid for `len` bytes; no other code touches the private side.
pub unsafe fn copy_in(dst: *mut u8, src: *const u8, len: usize) {
    runs(dst.addr(), len, |done, run| {
        // SAFETY: `done + run <= len`; the run lies in one cell.
        unsafe {
            let (cell, at) = cell(dst.add(done));
            let mut bytes = [0u8; CELL];
            core::ptr::copy_nonoverlapping(src.add(done), bytes.as_mut_ptr().add(at), run);
            merge(cell, at, run, u64::from_ne_bytes(bytes));
        }
    });
}

/// Copies bytes from shared to private memory.
///
/// # Safety
/// As [`copy_in`].
pub unsafe fn copy_out(dst: *mut u8, src: *const u8, len: usize) {
    runs(src.addr(), len, |done, run| {
        // SAFETY: `done + run <= len`; the run lies in one cell.
        unsafe {
            let (cell, at) = cell(src.add(done));
            let bytes = cell.load(Acquire).to_ne_bytes();
            core::ptr::copy_nonoverlapping(bytes.as_ptr().add(at), dst.add(done), run);
        }
    });
}

/// Copies bytes from shared to shared memory.
///
/// # Safety
/// Both sides are valid for `len` bytes.
pub unsafe fn copy_between(dst: *mut u8, src: *const u8, len: usize) {
    let mut buffer = [0u8; 256];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(buffer.len());
        // SAFETY: `done + part <= len`; the buffer is private.
        unsafe {
            copy_out(buffer.as_mut_ptr(), src.add(done), part);
            copy_in(dst.add(done), buffer.as_ptr(), part);
        }
        done += part;
    }
}

/// Sets `len` bytes to zero.
///
/// # Safety
/// `dst` is valid for `len` bytes.
pub unsafe fn zero(dst: *mut u8, len: usize) {
    runs(dst.addr(), len, |done, run| {
        // SAFETY: `done + run <= len`; the run lies in one cell.
        let (cell, at) = unsafe { cell(dst.add(done)) };
        merge(cell, at, run, 0);
    });
}
