//! Children that were forked while a lock was open.

use crate::children::{Place, SOON};
use named_lock::{Error, NamedLock};
use rustix::process::{WaitOptions, waitpid};

/// Runs `act` in a forked child, and returns its exit code.
#[allow(unsafe_code)]
fn forked(act: impl FnOnce() -> i32) -> i32 {
    // SAFETY: the other threads of this process (the watchdog, and readers of the output of children
    // that end) hold no lock that the child takes; `fork` itself leaves the allocator usable. The
    // child ends without returning.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let code = std::panic::catch_unwind(std::panic::AssertUnwindSafe(act)).unwrap_or(100);
        // SAFETY: ends the child immediately.
        unsafe { libc::_exit(code) };
    }
    let child = rustix::process::Pid::from_raw(child).expect("forked");
    let (_, status) = waitpid(Some(child), WaitOptions::empty()).expect("its parent").expect("it has ended");
    status.exit_status().unwrap_or(101)
}

pub(crate) fn a_forked_child_must_open_the_lock_itself() {
    let place = Place::new();
    let lock = place.open();
    let mut guard = Some(lock.write().expect("held"));
    let parent = std::process::id();
    let code = forked(|| {
        let is_refused =
            |outcome: Result<(), Error>| matches!(outcome, Err(Error::Forked { opened_by, .. }) if opened_by == parent);
        if !is_refused(lock.read().map(drop)) || !is_refused(lock.try_write().map(drop)) {
            return 1;
        }
        // The child's copy of the guard.
        if !is_refused(guard.take().map_or(Ok(()), named_lock::WriteGuard::release)) {
            return 4;
        }
        let Ok(own) = NamedLock::open_path(place.path()) else { return 2 };
        // Its parent still holds it.
        match own.try_write() {
            Ok(None) => 0,
            _ => 3,
        }
    });
    assert_eq!(code, 0);
    // The child's copies have released nothing, and its end has torn nothing.
    let other = place.open();
    assert!(other.try_write().expect("no error").is_none());
    guard.take().expect("the parent's").release().expect("released");
    other.write_within(SOON).expect("whole").release().expect("released");
}
