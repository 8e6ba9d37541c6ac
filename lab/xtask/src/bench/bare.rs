//! Memory outside the fabric that every rank maps, for the bare forms of the cases, which access it
//! without any check.
//!
//! All `unsafe` of the harness is here. The mapping starts with *lines*, whose words are accessed
//! as atomics only; the *windows* after them are plain bytes that are copied. Each case determines
//! the rank that may touch each window, and all ranks synchronise between two cases.

#![allow(unsafe_code)]

use super::cases::{BLOCKS, SPREAD};
use core::{
    hint::black_box,
    ops::Range,
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64, Ordering::AcqRel, compiler_fence},
};
use memmap2::MmapRaw;
use std::{fs::File, io, path::Path};

/// Bytes between two lines: two cache lines, so that no prefetcher couples neighbours.
pub(super) const LINE: usize = 128;
/// The number of lines.
const LINES: usize = 512;
/// The number of words in a burst.
pub(super) const BURST_WORDS: usize = 64;
/// The number of bytes in a window.
pub(super) const WINDOW: usize = 16 << 20;
/// The number of bytes in a field, of which each of four ranks has one.
pub(super) const FIELD: usize = 72 << 20;
/// Where the fields start, behind two windows for each of two ranks and each way of copying.
const FIELDS: usize = LINES * LINE + 8 * WINDOW;
const BYTES: usize = FIELDS + 4 * FIELD;

/// Equal blocks of a field, at equal distances, in bytes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Face {
    pub(super) count: usize,
    pub(super) len: usize,
    pub(super) stride: usize,
}

/// The method of copying bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By the C library.
    Memcpy = 0,
    /// With the processor's string move; on processors other than x86-64, like [`How::Memcpy`].
    Movsb = 1,
}

impl How {
    pub(super) const ALL: [How; 2] = [How::Memcpy, How::Movsb];

    pub(super) fn name(self) -> &'static str {
        match self {
            How::Memcpy => "memcpy",
            How::Movsb => "rep movsb",
        }
    }
}

/// A rank's part of the windows.
#[derive(Clone, Copy, Debug)]
pub(super) enum Window {
    /// Destination of the peer's puts and source of its gets.
    Target = 0,
    /// Source of the rank's own puts and destination of its gets.
    Own = 1,
}

/// Memory that every rank maps.
#[derive(Debug)]
pub(super) struct Bare {
    /// [`BYTES`] long.
    map: MmapRaw,
}

impl Bare {
    /// Sets the length of a memory file.
    pub(super) fn size(file: &File) -> io::Result<()> {
        file.set_len(BYTES as u64)
    }

    /// Maps the file at `path`, which must have been sized.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the measuring memory has another size"));
        }
        Ok(Bare { map: memmap2::MmapOptions::new().len(BYTES).map_raw(&file)? })
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < BYTES);
        // SAFETY: inside the mapping, by the assertion; a mapping is never at address 0.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset)) }
    }

    /// Returns the 8-byte word of a line.
    pub(super) fn word(&self, line: usize) -> &AtomicU64 {
        assert!(line < LINES);
        // SAFETY: page-aligned plus a multiple of 128; the words of lines are accessed as atomics
        // of this width only.
        unsafe { AtomicU64::from_ptr(self.at(line * LINE).as_ptr().cast()) }
    }

    /// Returns the 4-byte word in the middle of a line, for futexes.
    pub(super) fn half(&self, line: usize) -> &AtomicU32 {
        assert!(line < LINES);
        // SAFETY: as in `word`, from which it is 64 bytes away.
        unsafe { AtomicU32::from_ptr(self.at(line * LINE + LINE / 2).as_ptr().cast()) }
    }

    /// Returns the consecutive words of a burst, from line `first` on.
    pub(super) fn burst(&self, first: usize) -> &[AtomicU64; BURST_WORDS] {
        assert!(first * LINE + BURST_WORDS * 8 <= LINES * LINE);
        // SAFETY: inside the lines and aligned; no other word lies in a burst's lines, and
        // `AtomicU64` is a `u64` in memory.
        unsafe { self.at(first * LINE).cast().as_ref() }
    }

    /// Bytes of the cells.
    pub(super) const CELL_BYTES: usize = 4 * WINDOW;

    /// Returns the word at an offset that is a multiple of 8 and less than [`Bare::CELL_BYTES`];
    /// for any other offset, some word. No check, no branch: cells stand for a program's pointers.
    /// They overlap the windows, which a job with cells does not use.
    #[inline(always)]
    pub(super) fn cell(&self, offset: usize) -> &AtomicU64 {
        const { assert!(Bare::CELL_BYTES.is_power_of_two() && LINES * LINE + Bare::CELL_BYTES <= BYTES) };
        let offset = LINES * LINE + (offset & (Bare::CELL_BYTES - 8));
        // SAFETY: inside the mapping, and aligned, by the mask; in a job with cells, they are
        // accessed as atomics of this width only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// Returns the start of a window. Each copy method has separate windows, so that none finds
    /// data in the cache that another has just used.
    fn window(&self, rank: usize, window: Window, how: How, len: usize) -> *mut u8 {
        assert!(rank < 2 && len <= WINDOW);
        self.at(LINES * LINE + (4 * how as usize + 2 * rank + window as usize) * WINDOW).as_ptr()
    }

    /// Touches every page of a rank's windows, so that no copy is the first access to a page.
    pub(super) fn touch(&self, rank: usize) {
        for how in How::ALL {
            for window in [Window::Target, Window::Own] {
                // SAFETY: the window's bytes; ranks touch their own ones, before they synchronise.
                unsafe { self.window(rank, window, how, WINDOW).write_bytes(1, WINDOW) };
            }
        }
    }

    /// Returns the block of a rank's field that starts at `offset`.
    fn block(&self, rank: usize, offset: usize, len: usize) -> *mut u8 {
        assert!(rank < 4 && offset + len <= FIELD);
        self.at(FIELDS + rank * FIELD + offset).as_ptr()
    }

    /// Copies the blocks of a face from one rank's field to another's, each given by the rank and
    /// the offset of the first block.
    pub(super) fn copy_face(&self, to: (usize, usize), from: (usize, usize), face: Face) {
        for block in 0..face.count {
            let skip = block * face.stride;
            let (to, from) = (self.block(to.0, to.1 + skip, face.len), self.block(from.0, from.1 + skip, face.len));
            // SAFETY: `len` bytes each, which don't overlap in this shape; the flags determine
            // their owner.
            unsafe { copy(to, from, face.len, How::Memcpy) };
        }
    }

    /// Fills a face of the rank's own field.
    pub(super) fn fill_face(&self, me: usize, offset: usize, face: Face, value: u8) {
        for block in 0..face.count {
            let start = self.block(me, offset + block * face.stride, face.len);
            // SAFETY: `len` bytes; by the flags, they are this rank's.
            unsafe { start.write_bytes(value, face.len) };
        }
    }

    /// Sums the words of a face of the rank's own field.
    pub(super) fn sum_face(&self, me: usize, offset: usize, face: Face) -> u64 {
        let block = |block: usize| {
            let start = self.block(me, offset + block * face.stride, face.len).cast::<u64>();
            // SAFETY: aligned, as faces are made of words, and `len` bytes; by the flags, they are
            // this rank's.
            let words = unsafe { core::slice::from_raw_parts(start, face.len / 8) };
            words.iter().fold(0u64, |sum, word| sum.wrapping_add(*word))
        };
        (0..face.count).map(block).fold(0, u64::wrapping_add)
    }

    /// Puts `from` into `peer`'s target `n` times.
    pub(super) fn put_from(&self, peer: usize, from: &[u64], how: How, n: u64) {
        let len = size_of_val(from);
        let to = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; only this rank touches the peer's target in this shape.
            unsafe { copy(to, from.as_ptr().cast(), len, how) };
        }
    }

    /// Gets `into` from `peer`'s target `n` times.
    pub(super) fn get_into(&self, peer: usize, into: &mut [u64], how: How, n: u64) {
        let len = size_of_val(into);
        let from = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; no rank writes a target in this shape.
            unsafe { copy(into.as_mut_ptr().cast(), from, len, how) };
        }
    }

    /// Puts `len` bytes of the rank's own window into `peer`'s target `n` times.
    pub(super) fn put_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(peer, Window::Target, how, len), self.window(me, Window::Own, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; only this rank touches them in this shape.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Puts [`BLOCKS`] blocks of `len` bytes of the rank's own window into `peer`'s target `n`
    /// times.
    pub(super) fn put_blocks(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
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
    pub(super) fn put_blocks_of_known_length(&self, me: usize, peer: usize, len: usize, n: u64) {
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
    pub(super) fn get_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(me, Window::Own, how, len), self.window(peer, Window::Target, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; no rank writes a target, and no other rank
            // touches the rank's own window.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Copies the first `len` bytes of `rank`'s target to its own window, `n` times.
    pub(super) fn copy_target(&self, rank: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(rank, Window::Own, how, len), self.window(rank, Window::Target, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; no other rank touches either in this shape.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Copies this rank's target out, after its writer's flag.
    pub(super) fn read_target(&self, me: usize, into: &mut [u64], how: How) {
        let len = size_of_val(into);
        // SAFETY: `len` bytes each; the writer waits for this rank's flag before it writes again.
        unsafe { copy(into.as_mut_ptr().cast(), self.window(me, Window::Target, how, len), len, how) };
    }

    /// Puts one of two parts of `peer`'s target.
    pub(super) fn put_part(&self, peer: usize, part: usize, from: &[u64], how: How) {
        let len = size_of_val(from);
        let to = self.window(peer, Window::Target, how, 2 * len).wrapping_add(part % 2 * len);
        // SAFETY: `len` bytes each; the reader's flag shows that it has read the previous part.
        unsafe { copy(to, from.as_ptr().cast(), len, how) };
    }

    /// Copies one of two parts of this rank's target out, after its writer's flag.
    pub(super) fn read_part(&self, me: usize, part: usize, into: &mut [u64], how: How) {
        let len = size_of_val(into);
        let from = self.window(me, Window::Target, how, 2 * len).wrapping_add(part % 2 * len);
        // SAFETY: `len` bytes each; the writer waits for this rank's flag before it writes again.
        unsafe { copy(into.as_mut_ptr().cast(), from, len, how) };
    }

    /// Sums the first `words` of this rank's target for `how` in place, after its writer's flag.
    pub(super) fn sum_target(&self, me: usize, words: usize, how: How) -> u64 {
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
unsafe fn copy(to: *mut u8, from: *const u8, len: usize, how: How) {
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

/// The number of bytes in a page.
const PAGE: usize = 4096;

/// Words that start at a page boundary. If a copy's destination lies a few bytes after its source,
/// modulo the page size, string moves of some processors take five times as long; a limit must not
/// depend on the address that the allocator happened to return.
#[derive(Debug)]
pub(super) struct Buffer {
    memory: Vec<u64>,
    words: Range<usize>,
}

impl Buffer {
    pub(super) fn new(words: usize) -> Self {
        let memory = vec![1; words + PAGE / 8];
        let start = memory.as_ptr().align_offset(PAGE);
        Buffer { words: start..start + words, memory }
    }

    pub(super) fn words(&mut self) -> &mut [u64] {
        &mut self.memory[self.words.clone()]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_start_at_a_page() {
        for words in [1, 8192, 100_000] {
            let mut buffer = Buffer::new(words);
            assert_eq!(buffer.words().len(), words);
            assert_eq!(buffer.words().as_ptr().addr() % PAGE, 0);
        }
    }
}
