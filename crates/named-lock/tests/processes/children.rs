//! Starts and kills the processes of a case.

use named_lock::NamedLock;
use rustix::process::{Pid, WaitId, WaitIdOptions, waitid};
use std::{
    env,
    io::{BufRead, BufReader, Write},
    path::{Path, PathBuf},
    process::{Child, ChildStdin, ChildStdout, Command, Stdio},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// The time after which a case counts as hanging.
pub(crate) const HANG: Duration = Duration::from_secs(20);
/// The time within which a death is reported, on a machine that is also used otherwise.
pub(crate) const SOON: Duration = Duration::from_secs(2);

/// A directory for a lock and the data that it protects.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Place(tempfile::tempdir().expect("a folder"))
    }

    /// The path of the lock's file.
    pub(crate) fn path(&self) -> PathBuf {
        self.0.path().join("lock")
    }

    /// The path of the data that the lock protects.
    pub(crate) fn data(&self) -> PathBuf {
        self.0.path().join("data")
    }

    pub(crate) fn open(&self) -> NamedLock {
        NamedLock::open_path(self.path()).expect("opened")
    }

    /// Starts a process that plays a role.
    pub(crate) fn start(&self, role: &str, args: &[&str]) -> Actor {
        Actor::new(&self.path(), role, args)
    }
}

/// A process that plays a role, killed when it is dropped.
pub(crate) struct Actor {
    child: Child,
    says: BufReader<ChildStdout>,
    hears: ChildStdin,
}

impl Actor {
    fn new(path: &Path, role: &str, args: &[&str]) -> Self {
        let mut command = Command::new(env::current_exe().expect("own path"));
        command.arg("role").arg(role).arg(path).args(args).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut child = command.spawn().expect("started");
        let says = BufReader::new(child.stdout.take().expect("a pipe"));
        let hears = child.stdin.take().expect("a pipe");
        Actor { child, says, hears }
    }

    /// Returns its next line.
    pub(crate) fn line(&mut self) -> String {
        let mut line = String::new();
        self.says.read_line(&mut line).expect("a line");
        line.trim_end().to_owned()
    }

    /// Waits for this line.
    pub(crate) fn await_line(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Signals the process to continue.
    pub(crate) fn tell(&mut self) {
        writeln!(self.hears).expect("it listens");
    }

    pub(crate) fn number(&self) -> u32 {
        self.child.id()
    }

    /// Kills it without waiting for it: it stays a zombie.
    pub(crate) fn kill(&mut self) {
        self.child.kill().expect("its parent may");
    }

    /// Kills it, and waits until it has ended; it stays a zombie.
    pub(crate) fn kill_for_good(&mut self) {
        self.kill();
        let number = Pid::from_raw(self.number().cast_signed()).expect("a number");
        waitid(WaitId::Pid(number), WaitIdOptions::EXITED | WaitIdOptions::NOWAIT).expect("its parent");
    }

    pub(crate) fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("its parent").is_none()
    }

    /// Waits until it ends, which must be with success.
    pub(crate) fn ends_well(self) {
        self.ends_well_within(HANG);
    }

    /// Waits until it ends as [`Actor::ends_well`] does, for `time`.
    pub(crate) fn ends_well_within(mut self, time: Duration) {
        let began = Instant::now();
        loop {
            if let Some(status) = self.child.try_wait().expect("its parent") {
                assert!(status.success(), "{status}");
                return;
            }
            assert!(began.elapsed() < time, "process {} hangs", self.number());
            thread::sleep(Duration::from_millis(2));
        }
    }
}

impl Drop for Actor {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
