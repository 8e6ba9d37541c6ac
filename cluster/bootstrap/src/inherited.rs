//! Descriptors that this process inherited and knows by number.
//!
//! The invariant of the one unsafe block: the number is used only for the call that duplicates it,
//! which fails if no descriptor of that number is open. Only the duplicate is owned and closed
//! here.
#![allow(unsafe_code)]

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    fd::{AsFd, BorrowedFd, OwnedFd},
    io::{Errno, read},
};
use std::{
    io,
    time::{Duration, Instant},
};

/// Returns a duplicate of the descriptor `number`, with the close-on-exec flag set.
pub(crate) fn duplicate(number: i32) -> io::Result<OwnedFd> {
    if number < 0 {
        return Err(Errno::BADF.into());
    }
    // SAFETY: `number` is not -1, and the borrow ends with the call, which has no effect on the
    // descriptor itself; if it is closed, the call fails.
    unsafe { BorrowedFd::borrow_raw(number) }.try_clone_to_owned()
}

/// Reads a line of up to `limit` bytes, byte by byte, so that the following bytes stay unread. The
/// line ends with a newline, which is not returned, or at the end of the file.
pub(crate) fn read_line(from: impl AsFd, limit: usize, within: Duration) -> io::Result<String> {
    let until = Instant::now() + within;
    let (mut line, mut byte) = (Vec::new(), [0]);
    loop {
        wait_readable(&from, until)?;
        match read(&from, &mut byte) {
            Ok(0) => break,
            Ok(_) if byte[0] == b'\n' => break,
            Ok(_) if line.len() == limit => return Err(io::ErrorKind::InvalidData.into()),
            Ok(_) => line.push(byte[0]),
            Err(Errno::INTR | Errno::AGAIN) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
    String::from_utf8(line).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Waits until the descriptor is readable or at its end.
pub(crate) fn wait_readable(from: impl AsFd, until: Instant) -> io::Result<()> {
    loop {
        let left = until.checked_duration_since(Instant::now()).ok_or(io::ErrorKind::TimedOut)?;
        let limit = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        match poll(&mut [PollFd::new(&from, PollFlags::IN)], Some(&limit)) {
            Ok(0) => return Err(io::ErrorKind::TimedOut.into()),
            Ok(_) => return Ok(()),
            Err(Errno::INTR) => {}
            Err(cause) => return Err(cause.into()),
        }
    }
}
