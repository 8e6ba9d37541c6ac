//! File descriptors of this crate: all are 3 or above, and closed on exec.
//!
//! A program may have closed its standard descriptors. The next file that it opens, even inside a
//! library, is then descriptor 0, 1 or 2, and the program's next `printf` or `scanf` accesses that
//! file.

use rustix::{
    fs::{Mode, OFlags, fcntl_getfl},
    io::{Errno, fcntl_dupfd_cloexec, retry_on_intr},
    path::Arg,
};
use std::{
    fs::File,
    io::{self, Read},
    os::fd::{AsFd, AsRawFd, IntoRawFd, OwnedFd, RawFd},
    path::Path,
};

/// The first descriptor that is not a standard one.
const FIRST: RawFd = 3;

/// Opens `path`.
pub(crate) fn open(path: impl Arg + Copy, flags: OFlags, mode: Mode) -> Result<OwnedFd, Errno> {
    // The file must not have a standard number even temporarily: another thread may print at that
    // moment.
    let _reserved = Reserved::new()?;
    above(retry_on_intr(|| rustix::fs::open(path, flags | OFlags::CLOEXEC, mode))?)
}

/// Returns a second descriptor of the same open file description.
pub(crate) fn again(file: impl AsFd) -> Result<OwnedFd, Errno> {
    fcntl_dupfd_cloexec(file, FIRST)
}

/// Moves a descriptor above the standard ones.
pub(crate) fn above(file: OwnedFd) -> Result<OwnedFd, Errno> {
    if file.as_raw_fd() >= FIRST { Ok(file) } else { again(&file) }
}

/// Reads a short text, such as those of `/proc`.
pub(crate) fn read(path: &Path) -> io::Result<Vec<u8>> {
    let mut bytes = Vec::with_capacity(512);
    File::from(open(path, OFlags::RDONLY, Mode::empty())?).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// The closed standard descriptors, temporarily occupied by descriptors that allow neither reads
/// nor writes, so that accesses to them fail as before.
struct Reserved(Vec<OwnedFd>);

impl Reserved {
    fn new() -> Result<Self, Errno> {
        let mut reserved = Reserved(Vec::new());
        loop {
            let file = rustix::fs::open("/", OFlags::PATH | OFlags::CLOEXEC, Mode::empty())?;
            if file.as_raw_fd() >= FIRST {
                return Ok(reserved);
            }
            reserved.0.push(file);
        }
    }
}

impl Drop for Reserved {
    fn drop(&mut self) {
        for file in self.0.drain(..) {
            // Another thread may have reused the number for a file of the program in the meantime.
            if !fcntl_getfl(&file).is_ok_and(|flags| flags.contains(OFlags::PATH)) {
                let _ = file.into_raw_fd();
            }
        }
    }
}
