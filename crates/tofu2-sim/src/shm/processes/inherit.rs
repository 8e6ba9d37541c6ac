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

/// Let `command`'s process have `files` under the same numbers, and be killed when this thread ends.
pub(super) fn pass_on(command: &mut Command, files: Arc<[OwnedFd]>) {
    let launcher = getpid();
    // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor locks.
    unsafe { command.pre_exec(move || prepare(launcher, &files).map_err(Into::into)) };
}

fn prepare(launcher: Pid, files: &[OwnedFd]) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(launcher) {
        // It died before the line above: nobody will send the signal.
        return Err(Errno::SRCH);
    }
    files.iter().try_for_each(|file| fcntl_setfd(file, FdFlags::empty()))
}

/// Take over the inherited memory file `fd`, closed on exec from now on. At most once per number; what is wrong with it
/// otherwise.
pub(super) fn adopt(fd: RawFd) -> Result<OwnedFd, &'static str> {
    let link = fs::readlink(format!("/proc/self/fd/{fd}"), Vec::new()).map_err(|_| "is not open")?;
    let ours = link.to_str().is_ok_and(|target| target.starts_with(&format!("/memfd:{FILE_PREFIX}")));
    if !ours {
        return Err("is no memory file of a launcher");
    }
    // SAFETY: open, by the link. This process opens no files of that name before it has adopted all it inherited
    // (`attach` runs once, a launcher's files are its own), so nothing in it owns this one.
    let file = unsafe { OwnedFd::from_raw_fd(fd) };
    fcntl_setfd(&file, FdFlags::CLOEXEC).map_err(|_| "is not open")?;
    Ok(file)
}
