//! Copying pages of the program to the memory file, and mapping the file in their place.
//!
//! # Safety
//! Until the mapping is replaced the program's bytes are on the old page, and afterwards on the new
//! one, so a write between copying and replacing would be lost. Such writes come from
//!
//! * other threads: their pages are protected meanwhile, and a thread that writes to one waits
//!   ([`faults`]);
//! * this thread, whose stack may be on the pages: then another thread replaces them, once this one
//!   [sleeps](Sleeper) in the system with all signals blocked.
//!
//! Between copying and replacing, the code below makes system calls and writes to its own stack only.

#![allow(unsafe_code)]

use super::{Place, ShareError, areas::Area, faults};
use crate::{memory::Mapping, processes::memory_file};
use core::{
    ops::Range,
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
};
use rdma_fabric::{FabricError, access};
use rustix::{
    io::Errno,
    mm::{Advice, MapFlags, MprotectFlags, ProtFlags, madvise, mmap, mprotect},
};
use std::{
    ffi::c_void,
    time::{Duration, Instant},
};

/// Bytes that are replaced at a time while other threads may have to wait.
const PIECE: usize = 1 << 20;
/// Bytes of the stack above and below a local variable that the code of this module, and of the
/// functions that it calls, may use.
const STACK: Range<isize> = -(256 << 10)..(4 << 10);

/// The longest time until a thread that is about to sleep does so.
const PATIENCE: Duration = Duration::from_secs(10);

/// Replaces the pages of an area.
///
/// # Errors
/// The error of the system, after which the program's memory is as
/// before.
pub(super) fn replace(segment: &Mapping, place: &Place<'_>, area: &Area) -> Result<(), ShareError> {
    let Range { start, end } = area.addresses;
    memory_file::reserve(place.file, place.offset_of(start), end - start)
        .map_err(|error| error.unwrap_or_else(|| memory_file::refused(&"fallocate")(Errno::NOSPC)))?;
    let local = 0u8;
    let here = (&raw const local).addr();
    let (lowest, highest) = (here.saturating_add_signed(STACK.start), here.saturating_add_signed(STACK.end));
    if start <= highest && lowest < end {
        return blocked(|| {
            let sleeper = Sleeper::new();
            std::thread::scope(|scope| {
                let outcome = std::thread::Builder::new()
                    .spawn_scoped(scope, || sleeper.wait().and_then(|()| pieces(segment, place, area)));
                let refused = |error: std::io::Error| FabricError::System {
                    call: &"pthread_create",
                    errno: error.raw_os_error().unwrap_or(0),
                };
                let other = outcome.map_err(refused)?;
                sleeper.sleeps_next();
                other.join().unwrap_or(Err(ShareError::NotMapped(start)))
            })
        });
    }
    pieces(segment, place, area)
}

/// A thread that waits for the end of another one.
struct Sleeper {
    thread: rustix::process::Pid,
    sleeps_next: AtomicBool,
}

impl Sleeper {
    /// Returns this thread.
    fn new() -> Self {
        Sleeper { thread: rustix::thread::gettid(), sleeps_next: AtomicBool::new(false) }
    }

    /// To be called by the thread when its next sleep is that in which its stack is replaced.
    fn sleeps_next(&self) {
        self.sleeps_next.store(true, Release);
    }

    /// Waits, in another thread, until the thread sleeps. It writes to its stack until then.
    fn wait(&self) -> Result<(), ShareError> {
        let begun = Instant::now();
        while !(self.sleeps_next.load(Acquire) && self.is_asleep()) {
            if begun.elapsed() > PATIENCE {
                return Err(
                    memory_file::refused(&"sleep of the thread whose stack is registered")(Errno::TIMEDOUT).into()
                );
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Returns whether the system reports state `S`: page faults and stops have other letters.
    fn is_asleep(&self) -> bool {
        let stat = std::fs::read_to_string(format!("/proc/self/task/{}/stat", self.thread.as_raw_nonzero()));
        stat.is_ok_and(|stat| stat.rsplit(") ").next().is_some_and(|rest| rest.starts_with('S')))
    }
}

/// Calls `f` with all signals of this thread blocked, so that no handler runs on its stack.
fn blocked<R>(f: impl FnOnce() -> R) -> R {
    let (mut all, mut before) = (core::mem::MaybeUninit::uninit(), core::mem::MaybeUninit::uninit());
    // SAFETY: fills the set that it is given.
    unsafe { libc::sigfillset(all.as_mut_ptr()) };
    // SAFETY: reads a set that was filled, and fills the other.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, all.as_ptr(), before.as_mut_ptr()) };
    let out = f();
    // SAFETY: reads the set that the call above filled.
    unsafe { libc::pthread_sigmask(libc::SIG_SETMASK, before.as_ptr(), core::ptr::null_mut()) };
    out
}

fn pieces(segment: &Mapping, place: &Place<'_>, area: &Area) -> Result<(), ShareError> {
    let Range { mut start, end } = area.addresses;
    let first = start;
    let is_alone = faults::is_only_thread();
    let step = if is_alone { end - start } else { PIECE };
    while start < end {
        let next = end.min(start.saturating_add(step));
        let guard = if is_alone { None } else { Some(faults::Guard::new(start..next)?) };
        let replaced = piece(segment, place, area, start..next, guard.is_some());
        drop(guard);
        replaced.map_err(|errno| FabricError::System { call: &"mmap", errno: errno.raw_os_error() })?;
        start = next;
    }
    // A mapping whose parts have different properties cannot be moved or grown as a whole, so
    // `realloc` copies such a block instead, and no page is mapped at an address other than its own.
    // SAFETY: only advice about a page that is mapped.
    let _ = unsafe { madvise(pointer(first), rustix::param::page_size(), Advice::Random) };
    Ok(())
}

fn pointer(address: usize) -> *mut c_void {
    core::ptr::with_exposed_provenance_mut(address)
}

/// Replaces one piece, while no other thread writes to it.
fn piece(segment: &Mapping, place: &Place<'_>, area: &Area, pages: Range<usize>, protect: bool) -> Result<(), Errno> {
    let Range { start, end } = pages;
    let (from, len) = (pointer(start), end - start);
    let (window, at) = (&place.window, place.offset_of(start));
    let to = window.heap_of(start).and_then(|offset| segment.heap_bytes(offset, len)).ok_or(Errno::INVAL)?;
    let mut protection = ProtFlags::READ;
    let mut before = MprotectFlags::READ;
    if area.is_writable {
        protection |= ProtFlags::WRITE;
        before |= MprotectFlags::WRITE;
    }
    if protect && area.is_writable {
        // SAFETY: whole pages of the program; its writes wait until they are replaced.
        unsafe { mprotect(from, len, MprotectFlags::READ)? };
    }
    // SAFETY: `len` readable bytes of the program, and as many of the heap, in a window that no
    // region has at this address yet.
    unsafe { access::copy_in(to.as_ptr(), from.cast(), len) };
    let flags = MapFlags::SHARED | MapFlags::FIXED;
    // SAFETY: replaces pages of the program by pages with the same bytes and the same protection;
    // the program's pointers stay valid.
    let mapped = unsafe { mmap(from, len, protection, flags, place.file, at as u64) };
    if let Err(errno) = mapped {
        if protect && area.is_writable {
            // SAFETY: as above; restores the protection.
            let _ = unsafe { mprotect(from, len, before) };
        }
        return Err(errno);
    }
    Ok(())
}
