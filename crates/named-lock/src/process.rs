//! Identifies this process, and determines whether another one is alive.
//!
//! A process has ended if its pidfd reports so, or if its ID belongs to a process that was started
//! at another time, to a thread, or to no process. Where pidfds are refused (by a filter of system
//! calls, or an old kernel), `/proc` alone decides. A failed probe proves neither that a process is
//! alive nor that it has ended: it is an error, [`Unknown`].

use crate::{Error, Result, descriptor};
use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, pidfd_open, test_kill_process},
};
use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

/// The identity of a process among all processes of its machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Process {
    pub(crate) number: u32,
    /// Its start time in the system's ticks; needed because process IDs are reused.
    pub(crate) started: u64,
}

/// The properties that processes must share in order to identify each other by their process IDs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Machine {
    /// The PID namespace.
    pub(crate) namespace: u64,
    /// The identifier of the current boot.
    pub(crate) boot: [u64; 2],
}

/// All probes of a process failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unknown {
    pub(crate) process: u32,
    pub(crate) cause: Errno,
}

impl Process {
    /// Returns this process.
    ///
    /// # Errors
    /// [`Error::System`] if there is no `/proc`; [`Error::Probe`] if processes cannot be probed.
    pub(crate) fn this(path: &Path) -> Result<Self> {
        let number = std::process::id();
        let stat = Stat::of(number).map_err(Error::refused("read", Path::new("/proc/self/stat")))?;
        let this = Process { number, started: stat.started };
        match this.has_ended() {
            Ok(false) => Ok(this),
            Ok(true) => Err(Error::probe(path)(Unknown { process: number, cause: Errno::SRCH })),
            Err(unknown) => Err(Error::probe(path)(unknown)),
        }
    }

    /// Returns whether the process has ended; both answers are proven. A process whose parent has
    /// not yet waited for it counts as ended.
    pub(crate) fn has_ended(self) -> Result<bool, Unknown> {
        let unknown = |cause| Unknown { process: self.number, cause };
        let Some(number) = i32::try_from(self.number).ok().and_then(Pid::from_raw) else { return Ok(true) };
        // Opened before the start times are compared: while the descriptor is open and the process
        // has not ended, the ID is not reused.
        let pidfd = match pidfd_open(number, PidfdFlags::empty()).and_then(descriptor::above) {
            Ok(pidfd) => Some(pidfd),
            Err(Errno::SRCH) => return Ok(true),
            // Refused, not supported by the kernel, or the number belongs to a thread.
            Err(_) => None,
        };
        let stat = Stat::of(self.number);
        if stat.is_ok_and(|stat| stat.started != self.started) {
            return Ok(true);
        }
        let ended = match (&pidfd, stat) {
            (Some(pidfd), _) => {
                let mut ended = [PollFd::new(pidfd, PollFlags::IN)];
                poll(&mut ended, Some(&Timespec { tv_sec: 0, tv_nsec: 0 })).map_err(unknown)? == 1
            }
            (None, Ok(stat)) => stat.has_ended || is_thread(self.number).map_err(unknown)?,
            (None, Err(_)) => false,
        };
        match stat {
            _ if ended => Ok(true),
            Ok(_) => Ok(false),
            // It may have ended in the meantime, or `/proc` hides it.
            Err(cause) => match test_kill_process(number) {
                Err(Errno::SRCH) => Ok(true),
                _ => Err(unknown(cause)),
            },
        }
    }
}

/// The status of a process or thread in `/proc`.
#[derive(Clone, Copy, Debug)]
struct Stat {
    started: u64,
    /// Whether it is a zombie without other threads.
    has_ended: bool,
}

impl Stat {
    fn of(number: u32) -> Result<Self, Errno> {
        Stat::parse(&proc(number, "stat")?).ok_or(Errno::PROTO)
    }

    /// Parses fields 3, 20 and 22 (`proc_pid_stat(5)`), which follow the command in parentheses;
    /// the command may contain any characters.
    fn parse(stat: &[u8]) -> Option<Self> {
        let after = stat.iter().rposition(|&byte| byte == b')')? + 1;
        let fields: Vec<&str> = str::from_utf8(&stat[after..]).ok()?.split_ascii_whitespace().collect();
        let (state, threads, started) = (fields.first()?, fields.get(17)?, fields.get(19)?);
        let threads: u64 = threads.parse().ok()?;
        let has_ended = matches!(*state, "Z" | "X" | "x") && threads <= 1;
        Some(Stat { started: started.parse().ok()?, has_ended })
    }
}

/// Returns whether the number belongs to a thread other than its process's first.
fn is_thread(number: u32) -> Result<bool, Errno> {
    let status = proc(number, "status")?;
    let line = status.split(|&byte| byte == b'\n').find_map(|line| line.strip_prefix(b"Tgid:"));
    let group = line.and_then(|line| str::from_utf8(line).ok()?.trim().parse::<u32>().ok());
    group.map(|group| group != number).ok_or(Errno::PROTO)
}

fn proc(number: u32, file: &str) -> Result<Vec<u8>, Errno> {
    let path = PathBuf::from(format!("/proc/{number}/{file}"));
    descriptor::read(&path).map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

impl Machine {
    /// Returns the machine of this process.
    ///
    /// # Errors
    /// [`Error::System`] if there is no `/proc`.
    pub(crate) fn this() -> Result<Self> {
        let missing =
            |path: &'static str| move |cause: io::Error| Error::System { call: "read", path: path.into(), cause };
        let (namespace, boot) = ("/proc/self/ns/pid", "/proc/sys/kernel/random/boot_id");
        let namespace = fs::metadata(namespace).map_err(missing(namespace))?.ino();
        let text = descriptor::read(Path::new(boot)).map_err(missing(boot))?;
        let digits: String = text.into_iter().map(char::from).filter(char::is_ascii_hexdigit).collect();
        let bits = u128::from_str_radix(&digits, 16).unwrap_or(0);
        Ok(Machine { namespace, boot: [(bits >> 64) as u64, bits as u64] })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        process::{Command, Stdio},
        sync::mpsc,
        thread,
    };

    fn this() -> Process {
        Process::this(Path::new("lock")).expect("there is /proc")
    }

    fn started(number: u32) -> u64 {
        Stat::of(number).expect("it runs").started
    }

    #[test]
    fn a_process_has_ended_when_it_is_killed_and_not_before() {
        let this = this();
        assert_eq!(this.has_ended(), Ok(false));
        let other = Process { started: this.started + 1, ..this };
        assert_eq!(other.has_ended(), Ok(true), "another one with its number");
        let mut child = Command::new("sleep").arg("60").stdout(Stdio::null()).spawn().expect("sleep");
        let process = Process { number: child.id(), started: started(child.id()) };
        assert_eq!(process.has_ended(), Ok(false));
        assert!(!Stat::of(child.id()).expect("it runs").has_ended);
        child.kill().expect("its parent may");
        while process.has_ended() == Ok(false) {
            thread::yield_now();
        }
        assert_eq!(process.has_ended(), Ok(true));
        assert!(Stat::of(child.id()).expect("its parent has not waited").has_ended, "without a pidfd, too");
        // Also after the wait, when its ID is free.
        child.wait().expect("its parent");
        assert_eq!(process.has_ended(), Ok(true));
    }

    #[test]
    fn a_number_that_became_a_threads_is_no_process() {
        let (tell, told) = mpsc::channel();
        let (end, ended) = mpsc::channel::<()>();
        let thread = thread::spawn(move || {
            tell.send(rustix::thread::gettid().as_raw_nonzero().get().cast_unsigned()).expect("it listens");
            ended.recv().expect("it speaks");
        });
        let number = told.recv().expect("the thread's number");
        let at_that_time = started(number);
        for started in [at_that_time, at_that_time - 1] {
            assert_eq!(Process { number, started }.has_ended(), Ok(true));
        }
        assert_eq!(is_thread(number), Ok(true));
        assert_eq!(is_thread(std::process::id()), Ok(false));
        end.send(()).expect("it listens");
        thread.join().expect("no panic");
    }

    #[test]
    fn any_command_may_be_in_a_stat() {
        let line = |state: &str, threads: u32| {
            format!("7 (a) b (Z) 9) {state} 1 1 1 0 -1 0 0 0 0 0 0 0 0 0 20 0 {threads} 0 4711 0 0\n")
        };
        let stat = |line: String| Stat::parse(line.as_bytes()).map(|stat| (stat.started, stat.has_ended));
        assert_eq!(stat(line("S", 1)), Some((4711, false)));
        assert_eq!(stat(line("Z", 1)), Some((4711, true)));
        // The first thread has ended, and other threads are still running.
        assert_eq!(stat(line("Z", 3)), Some((4711, false)));
        assert_eq!(stat("7 (a) S 1".into()), None);
        assert_eq!(stat(String::new()), None);
    }
}
