//! Which process this is, and whether another one lives.

use crate::{Error, Result};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open},
};
use std::{fs, os::unix::fs::MetadataExt, path::Path};

/// What distinguishes a process from all others of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u32,
    /// When it was started, in the system's ticks: numbers are used again.
    pub(crate) started: u64,
}

/// What processes must have in common to know each other by their numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The name space of processes' numbers.
    pub(crate) namespace: u64,
    /// This start of the machine.
    pub(crate) boot: [u64; 2],
}

impl Process {
    /// Returns this process.
    ///
    /// # Errors
    /// [`Error::System`] if there is no `/proc`.
    pub(crate) fn this() -> Result<Self> {
        let number = std::process::id();
        match started(number) {
            Some(started) => Ok(Process { number, started }),
            None => Err(Error::refused("read", Path::new("/proc/self/stat"))(Errno::NOENT)),
        }
    }

    /// Returns whether the process has ended, which is proven then. A process whose parent has not
    /// yet waited for it has ended as well.
    pub(crate) fn has_ended(self) -> bool {
        let Some(number) = i32::try_from(self.number).ok().and_then(Pid::from_raw) else { return true };
        let process = match pidfd_open(number, PidfdFlags::empty()) {
            Ok(process) => process,
            Err(errno) => return errno == Errno::SRCH,
        };
        // What the number means now: while the descriptor is open and the process has not ended, it
        // can't mean another one afterwards.
        if started(self.number).is_some_and(|started| started != self.started) {
            return true;
        }
        let mut ended = [PollFd::new(&process, PollFlags::IN)];
        poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).is_ok_and(|ended| ended == 1)
    }
}

/// Returns when a process was started: field 22 of its `stat`, after the command in parentheses,
/// which may hold any characters.
fn started(number: u32) -> Option<u64> {
    let stat = fs::read(format!("/proc/{number}/stat")).ok()?;
    let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
    str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace().nth(19)?.parse().ok()
}

impl Machine {
    /// Returns where this process runs.
    ///
    /// # Errors
    /// [`Error::System`] if there is no `/proc`.
    pub(crate) fn this() -> Result<Self> {
        let missing =
            |path: &'static str| move |cause: std::io::Error| Error::System { call: "read", path: path.into(), cause };
        let (namespace, boot) = ("/proc/self/ns/pid", "/proc/sys/kernel/random/boot_id");
        let namespace = fs::metadata(namespace).map_err(missing(namespace))?.ino();
        let text = fs::read_to_string(boot).map_err(missing(boot))?;
        let digits: String = text.chars().filter(char::is_ascii_hexdigit).collect();
        let bits = u128::from_str_radix(&digits, 16).unwrap_or(0);
        Ok(Machine { namespace, boot: [(bits >> 64) as u64, bits as u64] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::process::{Command, Stdio};

    #[test]
    fn a_process_has_ended_when_it_is_killed_and_not_before() {
        let this = Process::this().expect("there is /proc");
        assert!(!this.has_ended());
        assert!(Process { started: this.started + 1, ..this }.has_ended(), "another one with its number");
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
        let number = child.id();
        let process = Process { number, started: started(number).expect("it runs") };
        assert!(!process.has_ended());
        child.kill().expect("its parent may");
        while !process.has_ended() {
            std::thread::yield_now();
        }
        // Also afterwards, when its number is free.
        child.wait().expect("its parent");
        assert!(process.has_ended());
    }
}
