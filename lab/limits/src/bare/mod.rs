//! Memory outside the fabric that every rank maps, for the bare forms of the cases, which access it
//! without any check.
//!
//! All `unsafe` of the bare forms is here. The mapping starts with *lines*, whose words are accessed
//! as atomics only; the *windows* after them are plain bytes that are copied. Each case determines
//! the rank that may touch each window, and all ranks synchronise between two cases.

#![allow(unsafe_code)]

mod buffer;
mod copies;
mod faces;

pub use buffer::Buffer;
pub use copies::How;
pub use faces::{Block, Face};

use core::{
    ptr::NonNull,
    sync::atomic::{AtomicU32, AtomicU64},
};
use memmap2::MmapRaw;
use rustix::fs::{MemfdFlags, memfd_create};
use std::{fs::File, io, path::Path};

/// Bytes between two lines: two cache lines, so that no prefetcher couples neighbours.
pub const LINE: usize = 128;
/// The number of lines.
const LINES: usize = 512;
/// The number of words in a burst.
pub const BURST_WORDS: usize = 64;
/// The number of bytes in a window.
pub const WINDOW: usize = 16 << 20;
/// The number of bytes in a field, of which each of four ranks has one.
pub const FIELD: usize = 72 << 20;
/// The number of blocks of a face whose blocks are put one by one.
pub const BLOCKS: usize = 256;
/// Bytes from the start of one of those blocks to the start of the next, for each byte of a block.
pub const SPREAD: usize = 4;
/// Where the fields start, behind two windows for each of two ranks and each way of copying.
const FIELDS: usize = LINES * LINE + 8 * WINDOW;
const BYTES: usize = FIELDS + 4 * FIELD;

/// A rank's part of the windows.
#[derive(Clone, Copy, Debug)]
pub enum Window {
    /// Destination of the peer's puts and source of its gets.
    Target = 0,
    /// Source of the rank's own puts and destination of its gets.
    Own = 1,
}

/// Memory that every rank maps.
#[derive(Debug)]
pub struct Bare {
    /// [`BYTES`] long.
    map: MmapRaw,
}

impl Bare {
    /// Sets the length of a memory file.
    pub fn size(file: &File) -> io::Result<()> {
        file.set_len(BYTES as u64)
    }

    /// Maps the file at `path`, which must have been sized.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::options().read(true).write(true).open(path)?;
        if file.metadata()?.len() != BYTES as u64 {
            return Err(io::Error::new(io::ErrorKind::InvalidData, "the measuring memory has another size"));
        }
        Ok(Bare { map: memmap2::MmapOptions::new().len(BYTES).map_raw(&file)? })
    }

    /// Maps memory that only this process's threads share.
    pub fn private() -> io::Result<Self> {
        let file = File::from(memfd_create("onesided-limits", MemfdFlags::CLOEXEC)?);
        Bare::size(&file)?;
        Ok(Bare { map: memmap2::MmapOptions::new().len(BYTES).map_raw(&file)? })
    }

    #[inline]
    fn at(&self, offset: usize) -> NonNull<u8> {
        assert!(offset < BYTES);
        // SAFETY: inside the mapping, by the assertion; a mapping is never at address 0.
        unsafe { NonNull::new_unchecked(self.map.as_mut_ptr().add(offset)) }
    }

    /// Returns the 8-byte word of a line.
    #[inline]
    pub fn word(&self, line: usize) -> &AtomicU64 {
        assert!(line < LINES);
        // SAFETY: page-aligned plus a multiple of 128; the words of lines are accessed as atomics
        // of this width only.
        unsafe { AtomicU64::from_ptr(self.at(line * LINE).as_ptr().cast()) }
    }

    /// Returns the 4-byte word in the middle of a line, for futexes.
    #[inline]
    pub fn half(&self, line: usize) -> &AtomicU32 {
        assert!(line < LINES);
        // SAFETY: as in `word`, from which it is 64 bytes away.
        unsafe { AtomicU32::from_ptr(self.at(line * LINE + LINE / 2).as_ptr().cast()) }
    }

    /// Returns the consecutive words of a burst, from line `first` on.
    #[inline]
    pub fn burst(&self, first: usize) -> &[AtomicU64; BURST_WORDS] {
        assert!(first * LINE + BURST_WORDS * 8 <= LINES * LINE);
        // SAFETY: inside the lines and aligned; no other word lies in a burst's lines, and
        // `AtomicU64` is a `u64` in memory.
        unsafe { self.at(first * LINE).cast().as_ref() }
    }

    /// Bytes of the cells.
    pub const CELL_BYTES: usize = 4 * WINDOW;

    /// Returns the word at an offset that is a multiple of 8 and less than [`Bare::CELL_BYTES`];
    /// for any other offset, some word. No check, no branch: cells stand for a program's pointers.
    /// They overlap the windows, which a job with cells does not use.
    #[inline(always)]
    pub fn cell(&self, offset: usize) -> &AtomicU64 {
        const { assert!(Bare::CELL_BYTES.is_power_of_two() && LINES * LINE + Bare::CELL_BYTES <= BYTES) };
        let offset = LINES * LINE + (offset & (Bare::CELL_BYTES - 8));
        // SAFETY: inside the mapping, and aligned, by the mask; in a job with cells, they are
        // accessed as atomics of this width only.
        unsafe { AtomicU64::from_ptr(self.map.as_mut_ptr().add(offset).cast()) }
    }

    /// Returns the start of a window. Each copy method has separate windows, so that none finds
    /// data in the cache that another has just used.
    #[inline]
    fn window(&self, rank: usize, window: Window, how: How, len: usize) -> *mut u8 {
        assert!(rank < 2 && len <= WINDOW);
        self.at(LINES * LINE + (4 * how as usize + 2 * rank + window as usize) * WINDOW).as_ptr()
    }

    /// Touches every page of a rank's windows, so that no copy is the first access to a page.
    pub fn touch(&self, rank: usize) {
        for how in How::ALL {
            for window in [Window::Target, Window::Own] {
                // SAFETY: the window's bytes; ranks touch their own ones, before they synchronise.
                unsafe { self.window(rank, window, how, WINDOW).write_bytes(1, WINDOW) };
            }
        }
    }

    /// Returns the block of a rank's field that starts at `offset`.
    #[inline]
    fn block(&self, rank: usize, offset: usize, len: usize) -> *mut u8 {
        assert!(rank < 4 && offset + len <= FIELD);
        self.at(FIELDS + rank * FIELD + offset).as_ptr()
    }
}
