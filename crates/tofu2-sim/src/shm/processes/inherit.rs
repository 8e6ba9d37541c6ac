//! Open files from launcher to rank: the two sides of an exec.
//!
//! # Safety
//! Two promises to the standard library: what runs between fork and exec only makes system calls, and an inherited
//! descriptor gets one owner.

#![allow(unsafe_code)]

use super::super::placement::affinity;
use rustix::{
    fs,
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
    thread::sched_setaffinity,
};
use std::{
    os::fd::{FromRawFd, OwnedFd, RawFd},
    os::unix::process::CommandExt,
    process::Command,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Whether this process has made memory files of its own. Then a number in the job's variable may be one of theirs.
static OWN_FILES: Mutex<bool> = Mutex::new(false);

/// To be called before this process makes memory files of a job.
pub(super) fn will_own_files() {
    *OWN_FILES.lock().unwrap_or_else(PoisonError::into_inner) = true;
}

/// Nobody makes memory files of a job as long as this lives, nor did before.
#[derive(Debug)]
pub(super) struct NoOwnFiles {
    _lock: MutexGuard<'static, bool>,
}

impl NoOwnFiles {
    pub(super) fn new() -> Option<Self> {
        let own = OWN_FILES.lock().unwrap_or_else(PoisonError::into_inner);
        (!*own).then_some(NoOwnFiles { _lock: own })
    }
}

/// What the names of all our memory files start with.
pub(super) const FILE_PREFIX: &str = "onesided-";

/// Let `command`'s process have `files` and its `own` one under the same numbers, run on `cpus` only, and be killed when
/// this thread ends.
pub(super) fn pass_on(command: &mut Command, files: Arc<[OwnedFd]>, own: OwnedFd, cpus: Option<affinity::Set>) {
    let launcher = getpid();
    // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor locks.
    unsafe { command.pre_exec(move || prepare(launcher, &files, &own, cpus.as_ref()).map_err(Into::into)) };
}

fn prepare(launcher: Pid, files: &[OwnedFd], own: &OwnedFd, cpus: Option<&affinity::Set>) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(launcher) {
        // It died before the line above: nobody will send the signal.
        return Err(Errno::SRCH);
    }
    if let Some(cpus) = cpus {
        sched_setaffinity(None, cpus)?;
    }
    files.iter().chain([own]).try_for_each(|file| fcntl_setfd(file, FdFlags::empty()))
}

/// Take over the inherited memory file `fd`, closed on exec from now on. At most once per number; what is wrong with it
/// otherwise.
pub(super) fn adopt(fd: RawFd, _: &NoOwnFiles) -> Result<OwnedFd, &'static str> {
    let ours = target_of(fd)?.starts_with(&format!("/memfd:{FILE_PREFIX}"));
    if !ours {
        return Err("is no memory file of a launcher");
    }
    // SAFETY: open, by the link, and of a name that only launchers give. This process has made no such file, so it
    // inherited this one; `from_env` adopts once, and no number twice, so nothing in the process owns it.
    unsafe { take_over(fd) }
}

/// The same for a socket that the same variable names as the file `adopted` before. At most once per number.
pub(super) fn adopt_socket(fd: RawFd, _adopted: &OwnedFd) -> Result<OwnedFd, &'static str> {
    if !target_of(fd)?.starts_with("socket:") {
        return Err("is no socket");
    }
    // SAFETY: open, by the link. The adopted file proves that a launcher wrote the variable for this process, so it opened
    // the socket for it too; `from_env` adopts once, and no number twice, so nothing in the process owns it.
    unsafe { take_over(fd) }
}

/// What kind of file `fd` is, as the system tells it.
fn target_of(fd: RawFd) -> Result<String, &'static str> {
    let link = fs::readlink(format!("/proc/self/fd/{fd}"), Vec::new()).map_err(|_| "is not open")?;
    link.into_string().map_err(|_| "has no readable name")
}

/// # Safety
/// `fd` is open, and nothing in this process owns it.
unsafe fn take_over(fd: RawFd) -> Result<OwnedFd, &'static str> {
    // SAFETY: the caller's promise.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl_setfd(&file, FdFlags::CLOEXEC).map_err(|_| "is not open")?;
    Ok(file)
}
