//! aarch64: `ldar` and `stlr` for words, exclusive pairs for read-modify-writes (no optional
//! instructions), pairs of 16-byte registers for copies (Arm ARM, section B2.3).
//!
//! A copy has no internal order; each copy into shared memory completes before later `stlr` and
//! `stlxr` of the same CPU because those are releases. [`copy_out`] ends with `dmb ishld`, so that
//! later reads are ordered after it.
//!
//! # Safety
//! Each instruction touches only bytes that the caller guarantees, and no block is `nomem`,
//! `readonly` or `pure`: the compiler keeps all of them, in their order. Between the halves of an
//! exclusive pair there is no other access, and the status register differs from the pair's others
//! (outputs are early-clobbered), as the architecture demands.

use super::short::{Private, SHORT, Side, short};
use crate::Amo;
use core::arch::{aarch64::uint8x16_t, asm};

/// A copy's plain stores may be observed before those of an earlier copy, or before an earlier
/// `stlr`.
pub(super) const STORES_IN_ORDER: bool = false;

macro_rules! word_access {
    ($load:ident, $store:ident, $rmw:ident, $t:ty, $reg:literal) => {
        /// # Safety
        /// `p` is valid for the word and aligned to it.
        #[inline(always)]
        pub(super) unsafe fn $load(p: *const u8) -> $t {
            let value: $t;
            // SAFETY: reads the word, whose validity the caller guarantees. Not `readonly`: later
            // reads must stay below.
            unsafe {
                asm!(concat!("ldar {v:", $reg, "}, [{p}]"), p = in(reg) p, v = out(reg) value,
                    options(nostack, preserves_flags));
            }
            value
        }

        /// # Safety
        /// As the load.
        #[inline(always)]
        pub(super) unsafe fn $store(p: *mut u8, value: $t) {
            // SAFETY: writes the word, whose validity the caller guarantees.
            unsafe {
                asm!(concat!("stlr {v:", $reg, "}, [{p}]"), p = in(reg) p, v = in(reg) value,
                    options(nostack, preserves_flags));
            }
        }

        /// # Safety
        /// As the load.
        #[inline(always)]
        pub(super) unsafe fn $rmw(p: *mut u8, amo: Amo<$t>) -> $t {
            let old: $t;
            macro_rules! exclusive {
                ($op:literal, $operand:expr) => {
                    // SAFETY: touches the word only; the pair is retried until no other access came
                    // between.
                    unsafe {
                        asm!(
                            "2:",
                            concat!("ldaxr {old:", $reg, "}, [{p}]"),
                            concat!($op, " {new:", $reg, "}, {old:", $reg, "}, {v:", $reg, "}"),
                            concat!("stlxr {failed:w}, {new:", $reg, "}, [{p}]"),
                            "cbnz {failed:w}, 2b",
                            p = in(reg) p, v = in(reg) $operand, old = out(reg) old, new = out(reg) _,
                            failed = out(reg) _, options(nostack, preserves_flags),
                        );
                    }
                };
            }
            match amo {
                Amo::Add(v) => exclusive!("add", v),
                Amo::Or(v) => exclusive!("orr", v),
                Amo::And(v) => exclusive!("and", v),
                Amo::Xor(v) => exclusive!("eor", v),
                Amo::Swap(new) => {
                    // SAFETY: touches the word only.
                    unsafe {
                        asm!(
                            "2:",
                            concat!("ldaxr {old:", $reg, "}, [{p}]"),
                            concat!("stlxr {failed:w}, {new:", $reg, "}, [{p}]"),
                            "cbnz {failed:w}, 2b",
                            p = in(reg) p, new = in(reg) new, old = out(reg) old, failed = out(reg) _,
                            options(nostack, preserves_flags),
                        );
                    }
                }
                Amo::CompareSwap { expected, new } => {
                    // SAFETY: touches the word only; a mismatch stores nothing and gives up the
                    // reservation.
                    unsafe {
                        asm!(
                            "2:",
                            concat!("ldaxr {old:", $reg, "}, [{p}]"),
                            concat!("cmp {old:", $reg, "}, {want:", $reg, "}"),
                            "b.ne 3f",
                            concat!("stlxr {failed:w}, {new:", $reg, "}, [{p}]"),
                            "cbnz {failed:w}, 2b",
                            "3:",
                            "clrex",
                            p = in(reg) p, want = in(reg) expected, new = in(reg) new, old = out(reg) old,
                            failed = out(reg) _, options(nostack),
                        );
                    }
                }
            }
            old
        }
    };
}
word_access!(load4, store4, rmw4, u32, "w");
word_access!(load8, store8, rmw8, u64, "x");

/// Prefetches the cache line of `p` for writing: a hint, valid for any address.
#[inline(always)]
pub fn expect_store(p: *const u8) {
    // SAFETY: accesses nothing and never faults.
    unsafe { asm!("prfm pstl1keep, [{p}]", p = in(reg) p, options(nostack, preserves_flags)) };
}

/// Memory that others access.
struct Shared;

macro_rules! shared_moves {
    ($($load:ident $store:ident: $t:ty, $class:ident, $ldr:literal, $str:literal, $reg:literal);*) => {$(
        /// # Safety
        /// The requirements of [`Side`].
        #[inline(always)]
        unsafe fn $load(p: *const u8) -> $t {
            let value: $t;
            // SAFETY: reads the width's bytes, whose validity the caller guarantees.
            unsafe {
                asm!(concat!($ldr, " {v:", $reg, "}, [{p}]"), p = in(reg) p, v = out($class) value,
                    options(nostack, preserves_flags));
            }
            value
        }
        /// # Safety
        /// The requirements of [`Side`].
        #[inline(always)]
        unsafe fn $store(p: *mut u8, value: $t) {
            // SAFETY: writes the width's bytes, whose validity the caller guarantees.
            unsafe {
                asm!(concat!($str, " {v:", $reg, "}, [{p}]"), p = in(reg) p, v = in($class) value,
                    options(nostack, preserves_flags));
            }
        }
    )*};
}

impl Side for Shared {
    type Wide = uint8x16_t;
    shared_moves!(
        load1 store1: u8, reg, "ldrb", "strb", "w";
        load2 store2: u16, reg, "ldrh", "strh", "w";
        load4 store4: u32, reg, "ldr", "str", "w";
        load8 store8: u64, reg, "ldr", "str", "x";
        load16 store16: uint8x16_t, vreg, "ldr", "str", "q"
    );
}

/// Copies more than [`SHORT`] bytes.
///
/// # Safety
/// Both sides are valid for `len` bytes.
unsafe fn long(dst: *mut u8, src: *const u8, len: usize) {
    debug_assert!(len > SHORT);
    // SAFETY: the loop moves the largest multiple of 64 below `len`, the moves after it the last 64
    // bytes, which lie inside because `len` is larger than 64.
    unsafe {
        asm!(
            "2:",
            "ldp {a:q}, {b:q}, [{s}]",
            "ldp {c:q}, {d:q}, [{s}, #32]",
            "stp {a:q}, {b:q}, [{t}]",
            "stp {c:q}, {d:q}, [{t}, #32]",
            "add {s}, {s}, #64",
            "add {t}, {t}, #64",
            "sub {n}, {n}, #64",
            "cmp {n}, #64",
            "b.hi 2b",
            "add {s}, {s}, {n}",
            "add {t}, {t}, {n}",
            "ldp {a:q}, {b:q}, [{s}, #-64]",
            "ldp {c:q}, {d:q}, [{s}, #-32]",
            "stp {a:q}, {b:q}, [{t}, #-64]",
            "stp {c:q}, {d:q}, [{t}, #-32]",
            s = inout(reg) src => _,
            t = inout(reg) dst => _,
            n = inout(reg) len => _,
            a = out(vreg) _,
            b = out(vreg) _,
            c = out(vreg) _,
            d = out(vreg) _,
            options(nostack),
        );
    }
}

/// Copies bytes from private to shared memory.
///
/// # Safety
/// Both sides are valid for `len` bytes; no other code touches the private side.
#[inline(always)]
pub unsafe fn copy_in(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: guaranteed by the caller; word forms only where the address is aligned to the word.
    unsafe {
        match len {
            8 if dst.addr().is_multiple_of(8) => store8(dst, Private::<uint8x16_t>::load8(src)),
            4 if dst.addr().is_multiple_of(4) => store4(dst, Private::<uint8x16_t>::load4(src)),
            0..=SHORT => short::<Shared, Private<uint8x16_t>>(dst, src, len),
            _ => long(dst, src, len),
        }
    }
}

/// Copies bytes from shared to private memory.
///
/// # Safety
/// As [`copy_in`].
#[inline(always)]
pub unsafe fn copy_out(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as in `copy_in`.
    unsafe {
        match len {
            8 if src.addr().is_multiple_of(8) => return Private::<uint8x16_t>::store8(dst, load8(src)),
            4 if src.addr().is_multiple_of(4) => return Private::<uint8x16_t>::store4(dst, load4(src)),
            0..=SHORT => short::<Private<uint8x16_t>, Shared>(dst, src, len),
            _ => long(dst, src, len),
        }
        asm!("dmb ishld", options(nostack, preserves_flags));
    }
}

/// Copies bytes from shared to shared memory.
///
/// # Safety
/// Both sides are valid for `len` bytes.
#[inline(always)]
pub unsafe fn copy_between(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: as in `copy_in`.
    unsafe {
        match len {
            8 if (dst.addr() | src.addr()).is_multiple_of(8) => return store8(dst, load8(src)),
            4 if (dst.addr() | src.addr()).is_multiple_of(4) => return store4(dst, load4(src)),
            0..=SHORT => short::<Shared, Shared>(dst, src, len),
            _ => long(dst, src, len),
        }
        asm!("dmb ishld", options(nostack, preserves_flags));
    }
}

/// Sets `len` bytes to zero.
///
/// # Safety
/// `dst` is valid for `len` bytes.
pub unsafe fn zero(dst: *mut u8, len: usize) {
    const ZEROS: [u8; 4096] = [0; 4096];
    let mut done = 0;
    while done < len {
        let part = (len - done).min(ZEROS.len());
        // SAFETY: `done + part <= len`.
        unsafe { copy_in(dst.add(done), ZEROS.as_ptr(), part) };
        done += part;
    }
}
