//! What the machine itself allows: the shapes of the cases with bare pointers, over memory that is no fabric's and
//! without any check.
//!
//! All `unsafe` of the harness is here. The mapping starts with *lines*, whose words are atomics and nothing else; after
//! them come the *windows*, plain bytes that are copied. Which rank may touch which window is fixed by the shapes
//! below, and between two shapes all ranks meet.

#![allow(unsafe_code)]

use super::meeting::{Abandoned, spin_until};
use core::{
    hint::black_box,
    ptr::NonNull,
    sync::atomic::{
        AtomicU32, AtomicU64,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
        compiler_fence,
    },
};
use memmap2::MmapRaw;
use rustix::thread::futex;
use std::{fs::File, io, path::Path};

/// Bytes between two lines: two cache lines, so that no prefetcher couples neighbours.
pub(super) const LINE: usize = 128;
/// Number of lines.
const LINES: usize = 512;
/// Words of a burst.
pub(super) const BURST_WORDS: usize = 64;
/// Bytes of a window.
pub(super) const WINDOW: usize = 16 << 20;
/// Two windows of two ranks, for each way of copying.
const BYTES: usize = LINES * LINE + 8 * WINDOW;

/// How bytes are copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum How {
    /// By the C library.
    Memcpy = 0,
    /// By the processor's string move; elsewhere than on x86-64 as [`How::Memcpy`].
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
    /// Where the peer puts to and gets from.
    Target = 0,
    /// Where the rank itself puts from and gets to.
    Own = 1,
}

/// Memory that every rank maps.
#[derive(Debug)]
pub(super) struct Bare {
    /// [`BYTES`] long.
    map: MmapRaw,
}

impl Bare {
    /// Give a memory file the length it needs.
    pub(super) fn size(file: &File) -> io::Result<()> {
        file.set_len(BYTES as u64)
    }

    /// Map the file at `path`, which must have been sized.
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

    /// The 8-byte word of a line.
    pub(super) fn word(&self, line: usize) -> &AtomicU64 {
        assert!(line < LINES);
        // SAFETY: page-aligned plus a multiple of 128; the words of lines are accessed as atomics of this width only.
        unsafe { AtomicU64::from_ptr(self.at(line * LINE).as_ptr().cast()) }
    }

    /// The 4-byte word in the middle of a line, for futexes.
    pub(super) fn half(&self, line: usize) -> &AtomicU32 {
        assert!(line < LINES);
        // SAFETY: as in `word`, from which it is 64 bytes away.
        unsafe { AtomicU32::from_ptr(self.at(line * LINE + LINE / 2).as_ptr().cast()) }
    }

    /// The consecutive words of a burst, from line `first` on.
    pub(super) fn burst(&self, first: usize) -> &[AtomicU64; BURST_WORDS] {
        assert!(first * LINE + BURST_WORDS * 8 <= LINES * LINE);
        // SAFETY: inside the lines and aligned; no other word stands in a burst's lines, and `AtomicU64` is a `u64` in memory.
        unsafe { self.at(first * LINE).cast().as_ref() }
    }

    /// Each way of copying has windows of its own, so that none finds in the cache what another has just used.
    fn window(&self, rank: usize, window: Window, how: How, len: usize) -> *mut u8 {
        assert!(rank < 2 && len <= WINDOW);
        self.at(LINES * LINE + (4 * how as usize + 2 * rank + window as usize) * WINDOW).as_ptr()
    }

    /// Touch every page of a rank's windows, so that no copy meets a page for the first time.
    pub(super) fn touch(&self, rank: usize) {
        for how in How::ALL {
            for window in [Window::Target, Window::Own] {
                // SAFETY: the window's bytes; ranks touch their own ones, before they meet.
                unsafe { self.window(rank, window, how, WINDOW).write_bytes(1, WINDOW) };
            }
        }
    }

    /// Put `from` into `peer`'s target `n` times.
    pub(super) fn put_from(&self, peer: usize, from: &[u64], how: How, n: u64) {
        let len = size_of_val(from);
        let to = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; only this rank touches the peer's target in this shape.
            unsafe { copy(to, from.as_ptr().cast(), len, how) };
        }
    }

    /// Get `into` from `peer`'s target `n` times.
    pub(super) fn get_into(&self, peer: usize, into: &mut [u64], how: How, n: u64) {
        let len = size_of_val(into);
        let from = self.window(peer, Window::Target, how, len);
        for _ in 0..n {
            // SAFETY: `len` bytes each; nobody writes a target in this shape.
            unsafe { copy(into.as_mut_ptr().cast(), from, len, how) };
        }
    }

    /// Put `len` bytes of the own window into `peer`'s target `n` times.
    pub(super) fn put_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(peer, Window::Target, how, len), self.window(me, Window::Own, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; only this rank touches them in this shape.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Get `len` bytes of `peer`'s target into the own window `n` times.
    pub(super) fn get_window(&self, me: usize, peer: usize, len: usize, how: How, n: u64) {
        let (to, from) = (self.window(me, Window::Own, how, len), self.window(peer, Window::Target, how, len));
        for _ in 0..n {
            // SAFETY: `len` bytes each of two windows; nobody writes a target, nobody else touches the own window.
            unsafe { copy(to, from, len, how) };
        }
    }

    /// Copy the own target out, after its writer's flag.
    pub(super) fn read_target(&self, me: usize, into: &mut [u64], how: How) {
        let len = size_of_val(into);
        // SAFETY: `len` bytes each; the writer waits for this rank's flag before it writes again.
        unsafe { copy(into.as_mut_ptr().cast(), self.window(me, Window::Target, how, len), len, how) };
    }

    /// Sum the first `words` of the own target that `how` copies to in place, after its writer's flag.
    pub(super) fn sum_target(&self, me: usize, words: usize, how: How) -> u64 {
        let start = self.window(me, Window::Target, how, words * 8).cast::<u64>();
        // SAFETY: page-aligned and `words` long; the writer waits for this rank's flag before it writes again, and
        // the slice ends before that flag.
        let words = unsafe { core::slice::from_raw_parts(start, words) };
        words.iter().fold(0, |sum, word| sum.wrapping_add(*word))
    }
}

/// # Safety
/// Both sides are valid for `len` bytes, apart, and nobody writes the source or touches the destination meanwhile.
#[inline(always)]
unsafe fn copy(to: *mut u8, from: *const u8, len: usize, how: How) {
    match how {
        #[cfg(target_arch = "x86_64")]
        How::Movsb => {
            // SAFETY: moves `len` bytes upwards; the direction flag is clear by the calling convention.
            unsafe {
                core::arch::asm!("rep movsb", inout("rcx") len => _, inout("rdi") to => _, inout("rsi") from => _,
                    options(nostack, preserves_flags));
            }
        }
        _ => {
            // SAFETY: the caller's promise. The length is hidden so that it stays a call.
            unsafe { core::ptr::copy_nonoverlapping(black_box(from), black_box(to), black_box(len)) };
        }
    }
    compiler_fence(AcqRel);
}

/// Store to one word `n` times.
pub(super) fn store(word: &AtomicU64, n: u64) {
    for i in 0..n {
        black_box(word).store(i, Release);
    }
}

/// Store to each of `words` in turn, `n` times.
pub(super) fn store_burst(words: &[AtomicU64], n: u64) {
    for i in 0..n {
        for word in black_box(words) {
            word.store(i, Release);
        }
    }
}

/// Load one word `n` times.
pub(super) fn load(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.load(Acquire));
    }
}

/// Add to one word `n` times.
pub(super) fn fetch_add(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.fetch_add(1, AcqRel));
    }
}

/// Exchange one word that holds 0 for 0, `n` times.
pub(super) fn compare_swap(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        let _ = black_box(word.compare_exchange(0, 0, AcqRel, Acquire));
    }
}

/// Enter and leave as a reader of a counting lock: two additions.
pub(super) fn count_reader(word: &AtomicU64, n: u64) {
    for _ in 0..n {
        black_box(word.fetch_add(4, AcqRel));
        black_box(word.fetch_sub(4, AcqRel));
    }
}

/// Take and release an idle queue lock: `next` is the own node, `tail` the lock.
pub(super) fn queue_lock(tail: &AtomicU64, next: &AtomicU64, n: u64) {
    for _ in 0..n {
        next.store(0, Relaxed);
        let before = tail.swap(1, AcqRel);
        // Nobody else is there in this shape, so neither branch of a real lock is taken.
        assert!(black_box(before) == 0 && next.load(Acquire) == 0);
        assert!(tail.compare_exchange(1, 0, AcqRel, Relaxed).is_ok());
    }
}

/// One way and back `n` times: rank 0 raises `there`, rank 1 answers on `back`. `turn` counts over all calls. Both may be
/// one word. With a pause between two looks if `PAUSE`.
pub(super) fn flags<const PAUSE: bool>(
    me: usize,
    there: &AtomicU64,
    back: &AtomicU64,
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    for _ in 0..n {
        *turn += 2;
        if me == 0 {
            // Release: pairs with the acquire in `spin_until` on the other side; so does the other store.
            there.store(*turn - 1, Release);
            spin_until::<PAUSE>(back, *turn, abandoned)?;
        } else {
            spin_until::<PAUSE>(there, *turn - 1, abandoned)?;
            back.store(*turn, Release);
        }
    }
    Ok(())
}

/// Exchange with the other rank `n` times, as both neighbours of a ring of two: two blocks of `len` bytes each way. A rank says that it is ready, copies
/// its blocks when the other one is, says so, and waits for the other's. `turn` counts over all calls.
pub(super) fn exchange(
    bare: &Bare,
    me: usize,
    len: usize,
    turn: &mut u64,
    n: u64,
    abandoned: &AtomicU64,
) -> Result<(), Abandoned> {
    let other = 1 - me;
    let words = |rank: usize| {
        let [ready, end] = super::lines::EXCHANGE;
        (bare.word(ready + rank), bare.word(end + rank))
    };
    let ((ready, end), (their_ready, their_end)) = (words(me), words(other));
    for _ in 0..n {
        *turn += 1;
        // Release: pairs with the acquire in `spin_until` on the other side; so does the other store.
        their_ready.store(*turn, Release);
        spin_until::<false>(ready, *turn, abandoned)?;
        if len > 0 {
            bare.put_window(me, other, 2 * len, How::Memcpy, 1);
        }
        their_end.store(*turn, Release);
        spin_until::<false>(end, *turn, abandoned)?;
    }
    Ok(())
}

/// A mutex between processes: 0 free, 1 taken, 2 taken and somebody may wait. If its holder dies, the launcher ends the others.
#[derive(Debug)]
pub(super) struct FutexMutex<'a>(pub(super) &'a AtomicU32);

impl FutexMutex<'_> {
    #[inline]
    pub(super) fn lock(&self) {
        // Acquire: pairs with the release in `unlock`; so does the swap below.
        if self.0.compare_exchange(0, 1, Acquire, Relaxed).is_err() {
            while self.0.swap(2, Acquire) != 0 {
                // Woken, changed or interrupted: look again.
                let _ = futex::wait(self.0, futex::Flags::empty(), 2, None);
            }
        }
    }

    /// Take it if it is free.
    pub(super) fn try_lock(&self) -> bool {
        self.0.compare_exchange(0, 1, Acquire, Relaxed).is_ok()
    }

    #[inline]
    pub(super) fn unlock(&self) {
        if self.0.swap(0, Release) == 2 {
            // Fails only for addresses that are no futex.
            let _ = futex::wake(self.0, futex::Flags::empty(), 1);
        }
    }
}

/// A mutex between up to 16 processes that is handed over in order of arrival: a queue lock (MCS) whose waiters park, or spin.
#[derive(Debug)]
pub(super) struct FutexQueue<'a> {
    bare: &'a Bare,
    me: usize,
    parks: bool,
}

impl<'a> FutexQueue<'a> {
    pub(super) fn new(bare: &'a Bare, me: usize) -> Self {
        FutexQueue { bare, me, parks: true }
    }

    /// One whose waiters spin: for as many cores as ranks.
    pub(super) fn spinning(bare: &'a Bare, me: usize) -> Self {
        FutexQueue { bare, me, parks: false }
    }

    /// 1 + the rank that came last, or 0.
    fn tail(&self) -> &'a AtomicU64 {
        self.bare.word(super::lines::CROWD_TAIL)
    }

    /// 1 + the rank behind `rank`, or 0.
    fn next(&self, rank: usize) -> &'a AtomicU64 {
        self.bare.word(super::lines::CROWD_NODES + rank)
    }

    /// 1 while `rank` must wait.
    fn waits(&self, rank: usize) -> &'a AtomicU32 {
        self.bare.half(super::lines::CROWD_NODES + rank)
    }

    pub(super) fn lock(&self) {
        let me = self.me as u64 + 1;
        self.next(self.me).store(0, Relaxed);
        self.waits(self.me).store(1, Relaxed);
        // Release: the node above is visible to who comes next. Acquire: so is the predecessor's to this rank.
        let before = self.tail().swap(me, AcqRel);
        if before != 0 {
            // Release: pairs with the acquire in `unlock`.
            self.next(before as usize - 1).store(me, Release);
            // Acquire: pairs with the release in `unlock`.
            while self.waits(self.me).load(Acquire) == 1 {
                if !self.parks {
                    core::hint::spin_loop();
                    continue;
                }
                // Woken, changed or interrupted: look again.
                let _ = futex::wait(self.waits(self.me), futex::Flags::empty(), 1, None);
            }
        }
    }

    pub(super) fn unlock(&self) {
        let me = self.me as u64 + 1;
        let mut next = self.next(self.me).load(Acquire);
        if next == 0 {
            if self.tail().compare_exchange(me, 0, AcqRel, Relaxed).is_ok() {
                return;
            }
            // It has come and is about to link itself.
            while next == 0 {
                if self.parks {
                    std::thread::yield_now();
                }
                next = self.next(self.me).load(Acquire);
            }
        }
        let waits = self.waits(next as usize - 1);
        waits.store(0, Release);
        if !self.parks {
            return;
        }
        // Fails only for addresses that are no futex.
        let _ = futex::wake(waits, futex::Flags::empty(), 1);
    }
}
