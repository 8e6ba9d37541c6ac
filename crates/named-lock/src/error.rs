//! The errors of named locks.

use crate::process::Unknown;
use rma_lock::LockError;
use rustix::io::Errno;
use std::{
    io,
    path::{Path, PathBuf},
};

/// The failure of a call. Unless a variant says otherwise, the lock is not held and no cleanup is
/// needed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The name is not valid: 1 to 100 bytes out of `A`–`Z`, `a`–`z`, `0`–`9`, `-`, `_` and `.`,
    /// the first of which is not `.`.
    #[error(
        "{name:?} is not the name of a lock: 1 to 100 letters of ASCII, digits, `-`, `_` and `.`, not beginning with `.`"
    )]
    Name {
        /// The given name.
        name: String,
    },
    /// A file or directory was not made by this crate, or other users can change it; it is left
    /// unchanged.
    #[error("{} {why}", path.display())]
    Foreign {
        /// The file or directory.
        path: PathBuf,
        /// The reason.
        why: &'static str,
    },
    /// The system refused a call.
    #[error("{call} of {}: {cause}", path.display())]
    System {
        /// The call.
        call: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        cause: io::Error,
    },
    /// The data that the lock protects may be half-written: the process `by` died or panicked while
    /// it wrote. [`NamedLock::mend`](crate::NamedLock::mend) takes the lock regardless;
    /// [`WriteGuard::clear_torn`](crate::WriteGuard::clear_torn) ends this state.
    #[error(
        "what {} protects may be torn: process {by} died or panicked while it wrote; take the lock by `mend`, repair what \
         it protects, and say so by `clear_torn`",
        path.display()
    )]
    Torn {
        /// The lock's file.
        path: PathBuf,
        /// The process that wrote, by its process ID at that time.
        by: u32,
    },
    /// The deadline passed before the lock was taken.
    #[error("the deadline came before the lock {}", path.display())]
    TimedOut {
        /// The lock's file.
        path: PathBuf,
    },
    /// The lock has no room for another process: the largest number of processes has it open, or a
    /// holder has held it for so long, while other processes joined and left, that no room could be
    /// made.
    #[error("{} has no room: {processes} processes may have it open at a time", path.display())]
    Full {
        /// The lock's file.
        path: PathBuf,
        /// The number of processes that may have it open.
        processes: usize,
    },
    /// This process was forked from the one that opened the lock. It must open the lock again.
    #[error("process {opened_by} opened the lock {}, and this is a child of it: open it anew", path.display())]
    Forked {
        /// The lock's file.
        path: PathBuf,
        /// The process that opened it.
        opened_by: u32,
    },
    /// The lock's file was removed while this process had the lock open. The lock was not taken,
    /// because it might not exclude processes that open it from now on. Open the lock again: the
    /// next file is created from the removed one. If an open returns this error, processes hold the
    /// lock in the removed file, and exclusion between them and this process was not possible
    /// before the deadline.
    #[error(
        "lock file {} was removed while processes have it open, which a new file would not exclude: open the lock anew when \
         they have released it",
        path.display()
    )]
    Removed {
        /// The path of the file.
        path: PathBuf,
    },
    /// As [`Error::Removed`], but another file is at the path now.
    #[error(
        "lock file {} was replaced by another file while this process has it open, which does not exclude processes that \
         use the other one: open the lock anew",
        path.display()
    )]
    Replaced {
        /// The path of the file.
        path: PathBuf,
    },
    /// It could not be determined whether a process that uses the lock is alive: neither a pidfd
    /// nor `/proc` gives an answer.
    #[error("whether process {process} lives, which uses the lock {}, cannot be found out: {cause}", path.display())]
    Probe {
        /// The lock's file.
        path: PathBuf,
        /// The process.
        process: u32,
        /// The failure of the last probe.
        cause: io::Error,
    },
    /// The underlying lock protocol failed.
    #[error("the lock {}: {cause}", path.display())]
    Lock {
        /// The lock's file.
        path: PathBuf,
        /// The cause.
        cause: LockError,
    },
}

/// The failure of a call of the lock's protocol.
#[derive(Debug)]
pub(crate) enum Failed {
    /// An error of the protocol itself.
    Lock(LockError),
    /// The call was given up because it could not be determined whether another process is alive.
    Probe(Unknown),
}

impl From<LockError> for Failed {
    fn from(error: LockError) -> Self {
        Failed::Lock(error)
    }
}

impl From<Unknown> for Failed {
    fn from(unknown: Unknown) -> Self {
        Failed::Probe(unknown)
    }
}

/// The result of a call.
pub type Result<T, E = Error> = core::result::Result<T, E>;

impl Error {
    pub(crate) fn foreign(path: &Path, why: &'static str) -> Self {
        Error::Foreign { path: path.to_owned(), why }
    }

    /// Returns a function that converts the error of a system call.
    pub(crate) fn refused(call: &'static str, path: &Path) -> impl FnOnce(Errno) -> Self {
        move |errno| Error::System { call, path: path.to_owned(), cause: errno.into() }
    }

    pub(crate) fn timed_out(path: &Path) -> Self {
        Error::TimedOut { path: path.to_owned() }
    }

    /// Returns a function that converts a failed probe.
    pub(crate) fn probe(path: &Path) -> impl FnOnce(Unknown) -> Self {
        move |Unknown { process, cause }| Error::Probe { path: path.to_owned(), process, cause: cause.into() }
    }

    /// Returns a function that converts the failure of a call of the lock's protocol.
    pub(crate) fn lock(path: &Path) -> impl FnOnce(Failed) -> Self {
        move |failed| match failed {
            Failed::Lock(cause) => Error::Lock { path: path.to_owned(), cause },
            Failed::Probe(unknown) => Error::probe(path)(unknown),
        }
    }
}
