//! Open files from launcher to rank: the two sides of an exec.

use rustix::{
    fs,
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, set_parent_process_death_signal},
};
use std::{
    os::fd::{FromRawFd, OwnedFd, RawFd},
    os::unix::process::CommandExt,
    process::Command,
    sync::Arc,
};

/// What the names of all our memory files start with.
pub(super) const FILE_PREFIX: &str = "onesided-";

/// Let `command`'s process have `files` and its `own` one under the same numbers, and be killed when this thread ends.
pub(super) fn pass_on(command: &mut Command, files: Arc<[OwnedFd]>, own: OwnedFd) {
    let launcher = getpid();
    // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor locks.
    unsafe { command.pre_exec(move || prepare(launcher, &files, &own).map_err(Into::into)) };
}

fn prepare(launcher: Pid, files: &[OwnedFd], own: &OwnedFd) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(launcher) {
        // It died before the line above: nobody will send the signal.
        return Err(Errno::SRCH);
    }
    files.iter().chain([own]).try_for_each(|file| fcntl_setfd(file, FdFlags::empty()))
}

/// Take over the inherited memory file `fd`, closed on exec from now on. At most once per number; what is wrong with it
/// otherwise.
pub(super) fn adopt(fd: RawFd) -> Result<OwnedFd, &'static str> {
    let ours = target_of(fd)?.starts_with(&format!("/memfd:{FILE_PREFIX}"));
    if !ours {
        return Err("is no memory file of a launcher");
    }
    // SAFETY: open, by the link. This process opens no files of that name before it has adopted all it inherited
    // (`attach` runs once, a launcher's files are its own), so nothing in it owns this one.
    unsafe { take_over(fd) }
}

/// The same for a socket.
///
/// # Safety
/// Nothing in this process owns file `fd`.
pub(super) unsafe fn adopt_socket(fd: RawFd) -> Result<OwnedFd, &'static str> {
    if !target_of(fd)?.starts_with("socket:") {
        return Err("is no socket");
    }
    // SAFETY: open, by the link; owned by nothing, by the caller's promise.
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
