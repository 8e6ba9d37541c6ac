//! Threads that write to a page while it is being replaced.
//!
//! The page is protected meanwhile, so the write is a fault, for which the system sends SIGSEGV. The
//! handler of this module waits until the page was replaced and returns, and the thread writes again.
//! All other faults go to the handler that was installed before.
//!
//! # Safety
//! The handler only reads and writes atomics, yields, and calls the handler that was there before.

#![allow(unsafe_code)]

use core::{
    mem::MaybeUninit,
    ops::Range,
    ptr,
    sync::atomic::{
        AtomicBool, AtomicPtr, AtomicUsize,
        Ordering::{Acquire, Release, SeqCst},
    },
};
use rdma_fabric::FabricError;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The pages that are protected now; an empty range if there are none.
static START: AtomicUsize = AtomicUsize::new(0);
static END: AtomicUsize = AtomicUsize::new(0);
/// The number of times that pages were replaced.
static REPLACED: AtomicUsize = AtomicUsize::new(0);
/// Each thread's last fault outside protected pages that was tried again.
static RETRIED: [Retried; 128] = [const { Retried::new() }; 128];

/// A thread's number, 0 for none; the address of its fault, and the count of replacements then.
struct Retried {
    thread: AtomicUsize,
    address: AtomicUsize,
    count: AtomicUsize,
}

impl Retried {
    const fn new() -> Self {
        Retried { thread: AtomicUsize::new(0), address: AtomicUsize::new(0), count: AtomicUsize::new(usize::MAX) }
    }

    /// Returns the record of this thread. Threads share records once more than all had faults.
    fn of_this_thread() -> &'static Self {
        // SAFETY: a system call without arguments.
        let thread = unsafe { libc::syscall(libc::SYS_gettid) } as usize;
        let (after, before) = (&RETRIED[thread % RETRIED.len()..], &RETRIED[..thread % RETRIED.len()]);
        let is_own = |record: &&Self| {
            let claimed = record.thread.compare_exchange(0, thread, SeqCst, SeqCst);
            claimed.is_ok() || claimed == Err(thread)
        };
        after.iter().chain(before).find(is_own).unwrap_or(&RETRIED[thread % RETRIED.len()])
    }
}

/// The handler that was installed before, never freed; null if there was none.
static BEFORE: AtomicPtr<libc::sigaction> = AtomicPtr::new(ptr::null_mut());

/// Returns whether the process has no other thread than this one, or that which waits for it.
pub(super) fn is_only_thread() -> bool {
    std::fs::read_dir("/proc/self/task").is_ok_and(|threads| threads.count() == 1)
}

/// Makes threads that write to some pages wait until it is dropped.
pub(super) struct Guard {
    _one_at_a_time: MutexGuard<'static, ()>,
}

impl Guard {
    /// # Errors
    /// [`FabricError::System`] if no handler can be installed.
    pub(super) fn new(pages: Range<usize>) -> Result<Self, FabricError> {
        static TURN: Mutex<()> = Mutex::new(());
        let turn = TURN.lock().unwrap_or_else(PoisonError::into_inner);
        install()?;
        START.store(pages.start, SeqCst);
        END.store(pages.end, SeqCst);
        Ok(Guard { _one_at_a_time: turn })
    }
}

impl Drop for Guard {
    fn drop(&mut self) {
        // First, so that a thread that no longer sees the range sees the count.
        REPLACED.fetch_add(1, SeqCst);
        END.store(0, SeqCst);
        START.store(0, SeqCst);
    }
}

fn install() -> Result<(), FabricError> {
    let refused = || FabricError::System {
        call: &"sigaction",
        errno: std::io::Error::last_os_error().raw_os_error().unwrap_or(0),
    };
    let ours: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) = on_fault;
    let mut now = MaybeUninit::<libc::sigaction>::zeroed();
    // SAFETY: fills the record that it is given.
    if unsafe { libc::sigaction(libc::SIGSEGV, ptr::null(), now.as_mut_ptr()) } != 0 {
        return Err(refused());
    }
    // SAFETY: filled by the call above; it was zeroed before, too.
    let now = unsafe { now.assume_init() };
    if now.sa_sigaction == ours as usize {
        return Ok(());
    }
    // A handler that the program installed since the last time is another one. If it passes faults on to
    // this one, each handles its own.
    BEFORE.store(Box::into_raw(Box::new(now)), Release);
    let mut new = now;
    new.sa_sigaction = ours as usize;
    new.sa_flags = libc::SA_SIGINFO | libc::SA_RESTART | libc::SA_ONSTACK | (now.sa_flags & libc::SA_NODEFER);
    // SAFETY: the handler has the signature that SA_SIGINFO requires, and meets the module's rule.
    if unsafe { libc::sigaction(libc::SIGSEGV, &raw const new, ptr::null_mut()) } != 0 {
        return Err(refused());
    }
    Ok(())
}

extern "C" fn on_fault(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: the system passes a record of a fault, which has an address.
    let address = unsafe { (*info).si_addr() }.addr();
    let is_protected = || START.load(Acquire) <= address && address < END.load(Acquire);
    if is_protected() {
        while is_protected() {
            // SAFETY: a system call without arguments.
            unsafe { libc::sched_yield() };
        }
        return;
    }
    // The page may have been replaced between the fault and now: one retry shows that.
    let count = REPLACED.load(Acquire);
    let retried = Retried::of_this_thread();
    let same = retried.address.swap(address, SeqCst) == address && retried.count.load(Acquire) == count;
    if !same && count != 0 {
        retried.count.store(count, Release);
        return;
    }
    pass_on(signal, info, context);
}

/// Whether a fault is being passed on.
static PASSING: AtomicBool = AtomicBool::new(false);

/// Handles a fault as it would have been without this module.
fn pass_on(signal: libc::c_int, info: *mut libc::siginfo_t, context: *mut libc::c_void) {
    // SAFETY: null, or a record that is never freed nor changed.
    let Some(before) = (unsafe { BEFORE.load(Acquire).as_ref() }) else { return };
    // The handler before this one may pass faults on to this one.
    let is_circle = PASSING.swap(true, SeqCst);
    match before.sa_sigaction {
        _ if is_circle => end_process(before),
        libc::SIG_DFL | libc::SIG_IGN => end_process(before),
        handler if before.sa_flags & libc::SA_SIGINFO != 0 => {
            // SAFETY: a handler that was installed with SA_SIGINFO has this signature.
            let handler: extern "C" fn(libc::c_int, *mut libc::siginfo_t, *mut libc::c_void) =
                unsafe { core::mem::transmute(handler) };
            handler(signal, info, context);
        }
        handler => {
            // SAFETY: a handler that was installed without SA_SIGINFO has this signature.
            let handler: extern "C" fn(libc::c_int) = unsafe { core::mem::transmute(handler) };
            handler(signal);
        }
    }
    PASSING.store(false, SeqCst);
}

/// Lets the fault end the process: it happens again when the handler returns.
fn end_process(like: &libc::sigaction) {
    let default = libc::sigaction { sa_sigaction: libc::SIG_DFL, ..*like };
    // SAFETY: the record is valid.
    unsafe { libc::sigaction(libc::SIGSEGV, &raw const default, ptr::null_mut()) };
}
