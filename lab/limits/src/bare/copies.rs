//! Copies between the windows of the ranks, and private memory.

#![allow(unsafe_code)]

use super::{BLOCKS, Bare, SPREAD, Window};
use core::{
    hint::black_box,
    sync::atomic::{Ordering::AcqRel, compiler_fence},
};

/// The method of copying bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    /// By the C library.
    Memcpy = 0,
    /// With the processor's string move; on processors other than x86-64, like [`How::Memcpy`].
    Movsb = 1,
}

impl How {
    /// Both.
    pub const ALL: [How; 2] = [How::Memcpy, How::Movsb];

    /// Returns the name in tables.
    pub fn name(self) -> &'static str {
        match self {
            How::Memcpy => "memcpy",
            How::Movsb => "rep movsb",
        }
    }
}

impl Bare {
    /// Puts `from` into `peer`'s target `n` times.
    pub fn put_from(&self, peer: usize, from: &[u64], how: How, n: u64) {
        let len = size_of_val(from);
        let to = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; only this rank touches the peer's target in this shape.
            unsafe { copy(to, from.as_ptr().cast(), len, how) };
        }
    }

    /// Gets `into` from `peer`'s target `n` times.
    pub fn get_into(&self, peer: usize, into: &mut [u64], how: How, n: u64) {
        let len = size_of_val(into);
        let from = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; no rank writes a target in this shape.
            unsafe { copy(into.as_mut_ptr().cast(), from, len, how) };
        }
    }

    /// Puts `len` bytes of the rank's own window into `peer`'s target `n` times.
    pub fn put_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(peer, Window::Target, how, len), self.window(me, Window::Own, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; only this rank touches them in this shape.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Puts [`BLOCKS`] blocks of `len` bytes of the rank's own window into `peer`'s target `n`
    /// times.
    pub fn put_blocks(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let all = BLOCKS * SPREAD * len;
        let (to, from) = (self.window(peer, Window::Target, how, all), self.window(me, Window::Own, how, all));
        for _ in 0..n {
            for at in (0..BLOCKS).map(|block| block * SPREAD * len) {
                // SAFETY: as in `put_window`, for a block of each.
                unsafe { copy(to.wrapping_add(at), from.wrapping_add(at), len, how) };
            }
        }
    }

    /// Like `put_blocks`, with a length known at compile time if it is that of a short block.
    pub fn put_blocks_of_known_length(&self, me: usize, peer: usize, len: usize, n: u64) {
        const SHORT: usize = 16;
        if len != SHORT {
            return self.put_blocks(me, peer, len, How::Memcpy, n);
        }
        let (how, all) = (How::Memcpy, BLOCKS * SPREAD * len);
        let (to, from) = (self.window(peer, Window::Target, how, all), self.window(me, Window::Own, how, all));
        for _ in 0..n {
            for at in (0..BLOCKS).map(|block| block * SPREAD * SHORT) {
                // SAFETY: as in `put_window`, for a block of each.
                unsafe { core::ptr::copy_nonoverlapping(from.wrapping_add(at), to.wrapping_add(at), SHORT) };
            }
            compiler_fence(AcqRel);
        }
    }

    /// Gets `len` bytes of `peer`'s target into the rank's own window `n` times.
    pub fn get_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(me, Window::Own, how, len), self.window(peer, Window::Target, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; no rank writes a target, and no other rank
            // touches the rank's own window.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Copies the first `len` bytes of `rank`'s target to its own window, `n` times.
    pub fn copy_target(&self, rank: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(rank, Window::Own, how, len), self.window(rank, Window::Target, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; no other rank touches either in this shape.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Copies this rank's target out, after its writer's flag.
    pub fn read_target(&self, me: usize, into: &mut [u64], how: How) {
        let len = size_of_val(into);
        // SAFETY: `len` bytes each; the writer waits for this rank's flag before it writes again.
        unsafe { copy(into.as_mut_ptr().cast(), self.window(me, Window::Target, how, len), len, how) };
    }

    /// Puts one of two parts of `peer`'s target.
    pub fn put_part(&self, peer: usize, part: usize, from: &[u64], how: How) {
        let len = size_of_val(from);
        let to = self.window(peer, Window::Target, how, 2 * len).wrapping_add(part % 2 * len);
        // SAFETY: `len` bytes each; the reader's flag shows that it has read the previous part.
        unsafe { copy(to, from.as_ptr().cast(), len, how) };
    }

    /// Copies one of two parts of this rank's target out, after its writer's flag.
    pub fn read_part(&self, me: usize, part: usize, into: &mut [u64], how: How) {
        let len = size_of_val(into);
        let from = self.window(me, Window::Target, how, 2 * len).wrapping_add(part % 2 * len);
        // SAFETY: `len` bytes each; the writer waits for this rank's flag before it writes again.
        unsafe { copy(into.as_mut_ptr().cast(), from, len, how) };
    }

    /// Sums the first `words` of this rank's target for `how` in place, after its writer's flag.
    pub fn sum_target(&self, me: usize, words: usize, how: How) -> u64 {
        let start = self.window(me, Window::Target, how, words * 8).cast::<u64>();
        // SAFETY: page-aligned and `words` long; the writer waits for this rank's flag before it
        // writes again, and the slice ends before that flag.
        let words = unsafe { core::slice::from_raw_parts(start, words) };
        words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

/// # Safety
/// Both sides are valid for `len` bytes and do not overlap; no other code writes the source or
/// touches the destination during the copy.
#[inline(always)]
pub(super) unsafe fn copy(to: *mut u8, from: *const u8, len: usize, how: How) {
    match how {
        #[cfg(target_arch = "x86_64")]
        How::Movsb => {
            // SAFETY: moves `len` bytes upwards; the direction flag is clear by the calling
            // convention.
            unsafe {
                core::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                    options(nostack, preserves_flags));
            }
        }
        _ => {
            // SAFETY: guaranteed by the caller. The length is hidden so that it stays a call.
            unsafe { core::ptr::copy_nonoverlapping(black_box(from), black_box(to), black_box(len)) };
        }
    }
    compiler_fence(AcqRel);
}
