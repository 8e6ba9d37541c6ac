//! Descriptors that a library keeps open in a process whose program it does not control.
//!
//! The system returns the lowest free number. In a program that was started with a closed standard
//! stream this is 0, 1 or 2, and the program's next `printf` writes into the library's file. So all
//! files that this crate keeps open have numbers from 3 on.

use rustix::{
    fs::{self, Mode, OFlags},
    io::{Errno, fcntl_dupfd_cloexec},
};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

/// The first number that does not belong to a standard stream.
pub(crate) const FIRST: RawFd = 3;

/// Opens a file under a number from 3 on. During `open`, closed standard streams are `/dev/null`,
/// so that the file never has one of their numbers.
///
/// # Errors
/// The errors of `open` and of [`renumbered`].
pub(crate) fn above_standard_streams(open: impl FnOnce() -> Result<OwnedFd, Errno>) -> Result<OwnedFd, Errno> {
    let mut streams = Vec::new();
    let flags = OFlags::RDWR | OFlags::CLOEXEC;
    // A system without `/dev/null` leaves the streams closed.
    while let Ok(stream) = fs::open("/dev/null", flags, Mode::empty())
        && stream.as_raw_fd() < FIRST
    {
        streams.push(stream);
    }
    renumbered(open()?)
}

/// Returns the same file under a number from 3 on, closed on exec.
///
/// # Errors
/// [`Errno::MFILE`] if the process has reached its limit of open files.
pub(crate) fn renumbered(file: OwnedFd) -> Result<OwnedFd, Errno> {
    if file.as_raw_fd() >= FIRST { Ok(file) } else { fcntl_dupfd_cloexec(&file, FIRST) }
}
