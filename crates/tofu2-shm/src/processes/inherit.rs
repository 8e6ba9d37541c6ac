//! Passing the job's file from launcher to rank: the two sides of an exec.
//!
//! A rank inherits the file under its launcher's descriptor number, and reopens it through `/proc`.
//! So it has its own descriptor and takes over none: the descriptor given in the variable, genuine
//! or forged, keeps its owner.
//!
//! # Safety
//! The safety contract with the standard library (`pre_exec`): the code that runs between fork and
//! exec only makes system calls.

#![allow(unsafe_code)]

use super::{descriptors::above_standard_streams, placement::affinity};
use rustix::{
    fs::{self, Mode, OFlags},
    io::{Errno, FdFlags, fcntl_setfd},
    process::{Pid, Signal, getpid, getppid, kill_process, set_parent_process_death_signal},
    thread::sched_setaffinity,
};
use std::{
    os::{
        fd::{OwnedFd, RawFd},
        unix::process::CommandExt,
    },
    process::Command,
    sync::Arc,
};

/// The name of every launcher's memory file.
pub(crate) const FILE_NAME: &str = "onesided-job";

/// Makes `command`'s process inherit `file` under the same number, run on `cpus` only, and be
/// killed when this thread ends.
pub(crate) fn pass_on(command: &mut Command, file: Arc<OwnedFd>, cpus: Option<affinity::Set>) {
    pass_on_from(getpid(), command, file, cpus);
}

fn pass_on_from(launcher: Pid, command: &mut Command, file: Arc<OwnedFd>, cpus: Option<affinity::Set>) {
    // SAFETY: between fork and exec the closure only makes system calls; it neither allocates nor
    // locks.
    unsafe { command.pre_exec(move || prepare(launcher, &file, cpus.as_ref()).map_err(Into::into)) };
}

fn prepare(launcher: Pid, file: &OwnedFd, cpus: Option<&affinity::Set>) -> Result<(), Errno> {
    set_parent_process_death_signal(Some(Signal::KILL))?;
    if getppid() != Some(launcher) {
        // The launcher died before the line above, so the signal will never be sent. An error could not
        // be reported to it either: the standard library would abort, and leave a core file.
        kill_process(getpid(), Signal::KILL)?;
    }
    if let Some(cpus) = cpus {
        sched_setaffinity(None, cpus)?;
    }
    fcntl_setfd(file, FdFlags::empty())
}

/// Returns a new descriptor, closed on exec, for the memory file that is open as `number`;
/// otherwise a description of the problem.
pub(crate) fn reopen(number: RawFd) -> Result<OwnedFd, &'static str> {
    let path = format!("/proc/self/fd/{number}");
    let target = fs::readlink(&path, Vec::new()).map_err(|_| "is not open")?;
    // Anything else is better left unopened.
    if !target.to_bytes().starts_with(format!("/memfd:{FILE_NAME}").as_bytes()) {
        return Err("is no memory file of a launcher");
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NONBLOCK | OFlags::NOCTTY;
    above_standard_streams(|| fs::open(path, flags, Mode::empty())).map_err(|_| "can't be opened anew")
}

#[cfg(all(test, not(miri)))]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;

    #[test]
    fn a_child_whose_launcher_has_died_ends_in_silence() {
        let file: OwnedFd = std::fs::File::open("/dev/null").unwrap().into();
        let mut command = Command::new("/nonexistent/program");
        // Not this process, as if another one had adopted the child.
        pass_on_from(Pid::INIT, &mut command, Arc::new(file), None);
        let status = command.spawn().and_then(|mut child| child.wait()).unwrap();
        assert_eq!(status.signal(), Some(Signal::KILL.as_raw()), "{status}");
    }
}
