//! x86-64: `mov` is acquire as a load and release as a store, locked instructions are full barriers
//! (Intel SDM volume 3, section 9.2; AMD APM volume 2, section 7.2). String moves are not reordered
//! with other stores or each other, though the bytes of one may be seen in any order (SDM section
//! 9.2.4). No store here is non-temporal, which would break that.
//!
//! # Safety
//! Each instruction touches only bytes that the caller guarantees, has no other operands than those
//! declared, and no block is `nomem`, `readonly` or `pure`: the compiler keeps all of them, in
//! their order.

use super::short::{Private, SHORT, Side, short};
use crate::Amo;
use core::{
    arch::{asm, x86_64::__m128i},
    mem::MaybeUninit,
};

pub(super) const STORES_IN_ORDER: bool = true;

macro_rules! word_access {
    ($load:ident, $store:ident, $rmw:ident, $t:ty, $ptr:literal, $reg:literal, $acc:tt) => {
        /// # Safety
        /// `p` is valid for the word and aligned to it.
        #[inline(always)]
        pub(super) unsafe fn $load(p: *const u8) -> $t {
            let value: $t;
            // SAFETY: reads the word, whose validity the caller guarantees. Not `readonly`: later
            // reads must stay below.
            unsafe {
                asm!(concat!("mov {v", $reg, "}, ", $ptr, " ptr [{p}]"), p = in(reg) p, v = out(reg) value,
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
                asm!(concat!("mov ", $ptr, " ptr [{p}], {v", $reg, "}"), p = in(reg) p, v = in(reg) value,
                    options(nostack, preserves_flags));
            }
        }

        /// # Safety
        /// As the load.
        #[inline(always)]
        pub(super) unsafe fn $rmw(p: *mut u8, amo: Amo<$t>) -> $t {
            let cas = |expected: $t, new: $t| {
                let old: $t;
                // SAFETY: touches the word only.
                unsafe {
                    asm!(concat!("lock cmpxchg ", $ptr, " ptr [{p}], {n", $reg, "}"), p = in(reg) p, n = in(reg) new,
                        inout($acc) expected => old, options(nostack));
                }
                old
            };
            match amo {
                Amo::Add(add) => {
                    let old: $t;
                    // SAFETY: touches the word only.
                    unsafe {
                        asm!(concat!("lock xadd ", $ptr, " ptr [{p}], {v", $reg, "}"), p = in(reg) p,
                            v = inout(reg) add => old, options(nostack));
                    }
                    old
                }
                Amo::Swap(new) => {
                    let old: $t;
                    // SAFETY: touches the word only; `xchg` with memory locks by itself.
                    unsafe {
                        asm!(concat!("xchg ", $ptr, " ptr [{p}], {v", $reg, "}"), p = in(reg) p,
                            v = inout(reg) new => old, options(nostack, preserves_flags));
                    }
                    old
                }
                Amo::CompareSwap { expected, new } => cas(expected, new),
                Amo::Or(_) | Amo::And(_) | Amo::Xor(_) => {
                    // SAFETY: guaranteed by the caller.
                    let mut seen = unsafe { $load(p) };
                    loop {
                        let old = cas(seen, amo.apply(seen));
                        if old == seen {
                            return old;
                        }
                        seen = old;
                    }
                }
            }
        }
    };
}
word_access!(load4, store4, rmw4, u32, "dword", ":e", "eax");
word_access!(load8, store8, rmw8, u64, "qword", "", "rax");

/// Prefetches the cache line of `p` for writing: a hint, valid for any address.
#[inline(always)]
pub fn expect_store(p: *const u8) {
    // SAFETY: accesses nothing and never faults; processors without the instruction treat it as a
    // nop.
    unsafe { asm!("prefetchw byte ptr [{p}]", p = in(reg) p, options(nostack, preserves_flags)) };
}

/// A full barrier.
#[inline(always)]
pub(super) fn barrier() {
    let mut word = MaybeUninit::<u32>::uninit();
    // SAFETY: touches the word only, which no other code accesses. An instruction that changes nothing needs no
    // value to be stored before it, which it would wait for.
    unsafe { asm!("lock or dword ptr [{p}], 0", p = in(reg) word.as_mut_ptr(), options(nostack)) };
}

/// Memory that others access.
struct Shared;

macro_rules! shared_moves {
    ($($load:ident $store:ident: $t:ty, $class:ident, $fmt:literal, $mov:literal, $ptr:literal);*) => {$(
        /// # Safety
        /// The requirements of [`Side`].
        #[inline(always)]
        unsafe fn $load(p: *const u8) -> $t {
            let value: $t;
            // SAFETY: reads the width's bytes, whose validity the caller guarantees.
            unsafe {
                asm!(concat!($mov, " {v", $fmt, "}, ", $ptr, " ptr [{p}]"), p = in(reg) p, v = out($class) value,
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
                asm!(concat!($mov, " ", $ptr, " ptr [{p}], {v", $fmt, "}"), p = in(reg) p, v = in($class) value,
                    options(nostack, preserves_flags));
            }
        }
    )*};
}

impl Side for Shared {
    type Wide = __m128i;
    shared_moves!(
        load1 store1: u8, reg_byte, "", "mov", "byte";
        load2 store2: u16, reg, ":x", "mov", "word";
        load4 store4: u32, reg, ":e", "mov", "dword";
        load8 store8: u64, reg, "", "mov", "qword";
        load16 store16: __m128i, xmm_reg, "", "movups", "xmmword"
    );
}

/// From this length on a string move is faster than the loop of 16-byte registers, on CPUs with enhanced string
/// moves. Without these it takes up to twice the time of the loops at 256 KiB and 1 MiB (AMD EPYC, family 23 model 1).
const STRING_MOVE: usize = 2048;
/// The same for the loop of 32-byte registers; for copies of at least [`STRING_MOVE`] each, their
/// length together.
const STRING_MOVE_AVX: usize = 16 << 10;
/// The bytes moved by one iteration of the loop of 32-byte registers.
const AVX_TURN: usize = 128;

/// Copies more than [`SHORT`] bytes, of `all` that are copied together.
///
/// # Safety
/// Both sides are valid for `len` bytes.
unsafe fn long(dst: *mut u8, src: *const u8, len: usize, all: usize) {
    debug_assert!(len > SHORT && all >= len);
    // SAFETY: guaranteed by the caller; lengths and instructions as each form needs them.
    unsafe {
        let avx = len >= AVX_TURN && std::arch::is_x86_feature_detected!("avx");
        let is_enough = len >= STRING_MOVE && all >= if avx { STRING_MOVE_AVX } else { STRING_MOVE };
        if is_enough && std::arch::is_x86_feature_detected!("ermsb") {
            by_string(dst, src, len);
        } else if avx {
            by_32(dst, src, len);
        } else {
            by_16(dst, src, len);
        }
    }
}

/// # Safety
/// Both sides are valid for `len` bytes.
#[inline(always)]
pub(super) unsafe fn copy_one_of(dst: *mut u8, src: *const u8, len: usize, all: usize) {
    // SAFETY: guaranteed by the caller.
    unsafe { if len <= SHORT { short::<Shared, Shared>(dst, src, len) } else { long(dst, src, len, all.max(len)) } }
}

/// # Safety
/// Both sides are valid for `len` bytes.
unsafe fn by_string(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: moves `len` bytes upwards; the direction flag is clear by the calling convention.
    unsafe {
        asm!("rep movsb", inout("rcx") len => _, inout("rdi") dst => _, inout("rsi") src => _,
            options(nostack, preserves_flags));
    }
}

/// # Safety
/// Both sides are valid for `len` bytes, more than 64.
unsafe fn by_16(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the loop moves the largest multiple of 64 below `len`, the moves after it the last 64
    // bytes.
    unsafe {
        asm!(
            "2:",
            "movups {a}, xmmword ptr [{s}]",
            "movups {b}, xmmword ptr [{s} + 16]",
            "movups {c}, xmmword ptr [{s} + 32]",
            "movups {d}, xmmword ptr [{s} + 48]",
            "movups xmmword ptr [{t}], {a}",
            "movups xmmword ptr [{t} + 16], {b}",
            "movups xmmword ptr [{t} + 32], {c}",
            "movups xmmword ptr [{t} + 48], {d}",
            "add {s}, 64",
            "add {t}, 64",
            "sub {n}, 64",
            "cmp {n}, 64",
            "ja 2b",
            "movups {a}, xmmword ptr [{s} + {n} - 64]",
            "movups {b}, xmmword ptr [{s} + {n} - 48]",
            "movups {c}, xmmword ptr [{s} + {n} - 32]",
            "movups {d}, xmmword ptr [{s} + {n} - 16]",
            "movups xmmword ptr [{t} + {n} - 64], {a}",
            "movups xmmword ptr [{t} + {n} - 48], {b}",
            "movups xmmword ptr [{t} + {n} - 32], {c}",
            "movups xmmword ptr [{t} + {n} - 16], {d}",
            s = inout(reg) src => _,
            t = inout(reg) dst => _,
            n = inout(reg) len => _,
            a = out(xmm_reg) _,
            b = out(xmm_reg) _,
            c = out(xmm_reg) _,
            d = out(xmm_reg) _,
            options(nostack),
        );
    }
}

/// # Safety
/// Both sides are valid for `len` bytes, at least [`AVX_TURN`]; the CPU has AVX.
unsafe fn by_32(dst: *mut u8, src: *const u8, len: usize) {
    // SAFETY: the position of the last iteration is fixed first. The first 32 bytes are moved, then
    // the loop continues where the destination is aligned, at most 32 bytes further, and executes
    // whole iterations that start below the last one, then the last one is executed; so every byte
    // is inside. `vzeroupper` touches all vector registers, which are therefore declared.
    unsafe {
        asm!(
            "vmovups ymm0, ymmword ptr [{s}]",
            "vmovups ymmword ptr [{t}], ymm0",
            "add {s}, {ahead}",
            "add {t}, {ahead}",
            "2:",
            "cmp {s}, {last}",
            "jae 3f",
            "vmovups ymm0, ymmword ptr [{s}]",
            "vmovups ymm1, ymmword ptr [{s} + 32]",
            "vmovups ymm2, ymmword ptr [{s} + 64]",
            "vmovups ymm3, ymmword ptr [{s} + 96]",
            "vmovups ymmword ptr [{t}], ymm0",
            "vmovups ymmword ptr [{t} + 32], ymm1",
            "vmovups ymmword ptr [{t} + 64], ymm2",
            "vmovups ymmword ptr [{t} + 96], ymm3",
            "sub {s}, -128",
            "sub {t}, -128",
            "jmp 2b",
            "3:",
            "vmovups ymm0, ymmword ptr [{last}]",
            "vmovups ymm1, ymmword ptr [{last} + 32]",
            "vmovups ymm2, ymmword ptr [{last} + 64]",
            "vmovups ymm3, ymmword ptr [{last} + 96]",
            "vmovups ymmword ptr [{end}], ymm0",
            "vmovups ymmword ptr [{end} + 32], ymm1",
            "vmovups ymmword ptr [{end} + 64], ymm2",
            "vmovups ymmword ptr [{end} + 96], ymm3",
            "vzeroupper",
            s = inout(reg) src => _,
            t = inout(reg) dst => _,
            ahead = in(reg) 32 - (dst.addr() & 31),
            last = in(reg) src.add(len - AVX_TURN),
            end = in(reg) dst.add(len - AVX_TURN),
            out("ymm0") _, out("ymm1") _, out("ymm2") _, out("ymm3") _,
            out("ymm4") _, out("ymm5") _, out("ymm6") _, out("ymm7") _,
            out("ymm8") _, out("ymm9") _, out("ymm10") _, out("ymm11") _,
            out("ymm12") _, out("ymm13") _, out("ymm14") _, out("ymm15") _,
            options(nostack),
        );
    }
}

macro_rules! copy {
    ($(#[$doc:meta])* $name:ident: $to:ty, $from:ty) => {
        $(#[$doc])*
        ///
        /// # Safety
        /// Both sides are valid for `len` bytes; no other code touches a private side.
        #[inline(always)]
        pub unsafe fn $name(dst: *mut u8, src: *const u8, len: usize) {
            // SAFETY: guaranteed by the caller.
            unsafe {
                if len <= SHORT { short::<$to, $from>(dst, src, len) } else { long(dst, src, len, len) }
            }
        }
    };
}
copy! {
    /// Copies bytes from private to shared memory.
    copy_in: Shared, Private<__m128i>
}
copy! {
    /// Copies bytes from shared to private memory.
    copy_out: Private<__m128i>, Shared
}
copy! {
    /// Copies bytes from shared to shared memory.
    copy_between: Shared, Shared
}

/// Sets `len` bytes to zero.
///
/// # Safety
/// `dst` is valid for `len` bytes.
pub unsafe fn zero(dst: *mut u8, len: usize) {
    // SAFETY: stores `len` zero bytes upwards; the direction flag is clear by the calling
    // convention.
    unsafe {
        asm!("rep stosb", inout("rcx") len => _, inout("rdi") dst => _, in("al") 0u8,
            options(nostack, preserves_flags));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The forms that are not chosen on this machine are tested as well.
    #[test]
    fn all_long_forms_move_exactly_their_bytes() {
        type Form = unsafe fn(*mut u8, *const u8, usize);
        let mut forms: Vec<(Form, usize)> = vec![(by_16, SHORT + 1), (by_string, 0)];
        if std::arch::is_x86_feature_detected!("avx") {
            forms.push((by_32, AVX_TURN));
        }
        for (form, shortest) in forms {
            for len in (shortest..700).chain([2047, 2048, 5000]) {
                for at in [0, 1, 31] {
                    let src: Vec<u8> = (0..len).map(|i| (i * 13 + 5) as u8).collect();
                    let mut dst = vec![0xee; len + 64];
                    // SAFETY: both vectors are long enough and private; the form's needs are met
                    // above.
                    unsafe { form(dst.as_mut_ptr().add(at), src.as_ptr(), len) };
                    assert!(dst[at..at + len] == src && dst[..at].iter().chain(&dst[at + len..]).all(|&b| b == 0xee));
                }
            }
        }
    }
}
