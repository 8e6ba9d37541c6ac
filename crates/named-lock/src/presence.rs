//! Detects that a lock's file is no longer at its path, so that processes that open the lock now
//! use another file.
//!
//! Each acquisition calls `fstat`, which shows that the file has lost its name, by a removal or by
//! another file that was renamed to it. A file that was moved keeps its link count, but its change
//! time changes. If a directory above was moved, or covered by a mount, the file itself shows no
//! change. Therefore the path is looked up again every [`LAPSE`], and a process that finds no file
//! waits longer than that ([`BEFORE_FOUNDING`]) before it creates one: a member that has not
//! detected the change by then detects it in its next acquisition, before another file can be used.

use crate::{Error, Result};
use core::sync::atomic::{AtomicU64, Ordering::Relaxed};
use rustix::{
    fs::{Stat, fstat, lstat},
    io::Errno,
    time::{ClockId, clock_gettime},
};
use std::{
    os::fd::OwnedFd,
    path::Path,
    time::{Duration, Instant},
};

/// How long the path of a file that shows no change is trusted.
const LAPSE: Duration = Duration::from_millis(10);
/// How long a process waits before it makes a file for a lock that has none.
pub(crate) const BEFORE_FOUNDING: Duration = Duration::from_millis(25);
/// The largest step of change times: two changes within one step look the same.
const STEP: i128 = 20_000_000;

/// The state of a file when its path was last looked up.
#[derive(Debug)]
pub(crate) struct Presence {
    device: u64,
    number: u64,
    begun: Instant,
    /// The time of that lookup, in ns since `begun`.
    looked: AtomicU64,
    /// The change time before that lookup, or [`UNTRUSTED`].
    changed: AtomicU64,
}

/// Not a valid change time.
const UNTRUSTED: u64 = u64::MAX;

impl Presence {
    /// Records the identity of the file. The path is looked up at the first check.
    pub(crate) fn new(file: &OwnedFd, path: &Path) -> Result<Self> {
        let stat = fstat(file).map_err(Error::refused("fstat", path))?;
        let (looked, changed) = (AtomicU64::new(0), AtomicU64::new(UNTRUSTED));
        Ok(Presence { device: stat.st_dev, number: stat.st_ino, begun: Instant::now(), looked, changed })
    }

    /// Checks that the file is at `path`.
    ///
    /// # Errors
    /// [`Error::Removed`], [`Error::Replaced`]; [`Error::System`] if the check itself fails.
    #[inline]
    pub(crate) fn check(&self, file: &OwnedFd, path: &Path) -> Result<()> {
        // A program that closes all descriptors may have closed this one, or may have reused its
        // number for another file.
        let stat = fstat(file).ok().filter(|stat| self.is(stat));
        let now = self.begun.elapsed().as_nanos() as u64;
        if let Some(stat) = &stat
            && stat.st_nlink > 0
            && self.changed.load(Relaxed) == changed(stat)
            && now - self.looked.load(Relaxed).min(now) < LAPSE.as_nanos() as u64
        {
            return Ok(());
        }
        self.look(stat.as_ref(), path)
    }

    #[cold]
    fn look(&self, stat: Option<&Stat>, path: &Path) -> Result<()> {
        let now = self.begun.elapsed().as_nanos() as u64;
        match lstat(path) {
            Ok(there) if self.is(&there) => {}
            Ok(_) => return Err(Error::Replaced { path: path.to_owned() }),
            Err(Errno::NOENT | Errno::NOTDIR) => return Err(Error::Removed { path: path.to_owned() }),
            Err(errno) => return Err(Error::refused("lstat", path)(errno)),
        }
        let settled = stat.filter(|stat| {
            let clock = clock_gettime(ClockId::RealtimeCoarse);
            nanoseconds(clock.tv_sec, clock.tv_nsec) - nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64) > STEP
        });
        // Both values were read before the path was looked up.
        self.changed.store(settled.map_or(UNTRUSTED, changed), Relaxed);
        self.looked.store(now, Relaxed);
        Ok(())
    }

    fn is(&self, stat: &Stat) -> bool {
        (stat.st_dev, stat.st_ino) == (self.device, self.number)
    }
}

fn nanoseconds(seconds: i64, nanoseconds: i64) -> i128 {
    i128::from(seconds) * 1_000_000_000 + i128::from(nanoseconds)
}

/// Returns the change time in ns; wraps.
fn changed(stat: &Stat) -> u64 {
    nanoseconds(stat.st_ctime, stat.st_ctime_nsec as i64) as u64
}
