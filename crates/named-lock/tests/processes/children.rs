//! Starts the processes of a case.

use named_lock::NamedLock;
use process_tests::child::{Child, this_program};
use std::{path::PathBuf, time::Duration};
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
    pub(crate) fn start(&self, role: &str, args: &[&str]) -> Child {
        let mut command = this_program(["role", role]);
        command.arg(self.path()).args(args);
        Child::start(command)
    }
}

/// Waits for the end of a process, which must be a success.
pub(crate) fn succeed(child: Child) {
    child.succeed_within(HANG);
}
