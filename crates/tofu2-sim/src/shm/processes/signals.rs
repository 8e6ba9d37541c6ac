//! Handling of signals that ask a launcher to end, while a job runs: SIGINT and SIGTERM, and SIGHUP, SIGQUIT
//! and SIGUSR1 (batch systems warn by it), unless these are ignored, as by `nohup`.
//!
//! SIGCHLD gets a handler that does nothing. A process may inherit the setting that it is ignored;
//! the system then reaps children by itself, their exit codes are lost, and their numbers may
//! belong to other processes before anybody opens a pidfd.

use super::memory_file::refused;
use rdma_fabric::{FabricError, error::Literal};
use rustix::io::Errno;
use signal_hook::{
    SigId,
    consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1},
    flag,
    low_level::{pipe, unregister},
};
use std::{
    io::{self, Read},
    os::{
        fd::{AsFd, BorrowedFd},
        unix::net::UnixStream,
    },
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
};

/// The number of jobs that this process supervises.
static JOBS: Mutex<usize> = Mutex::new(0);
/// Whether there are no jobs; the signals then have their default effect again.
static IDLE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

/// The signals that are caught, the same for all jobs of this process.
static CAUGHT: OnceLock<Vec<i32>> = OnceLock::new();

/// Returns the signals to catch, if those of these bits are ignored.
fn caught(ignored: u64) -> Vec<i32> {
    let more = [SIGHUP, SIGQUIT, SIGUSR1].into_iter().filter(|signal| ignored & 1 << (signal - 1) == 0);
    [SIGINT, SIGTERM].into_iter().chain(more).collect()
}

/// Returns the signals that this process ignores: bit 0 is signal 1. Where that can't be read, only
/// SIGINT and SIGTERM are caught, so that `nohup` keeps its effect.
fn ignored() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let bits = status.lines().find_map(|line| line.strip_prefix("SigIgn:"))?;
    u64::from_str_radix(bits.trim(), 16).ok()
}

/// Catches SIGINT, SIGTERM, SIGHUP, SIGQUIT and SIGUSR1 as long as this lives; without one they have their
/// default effect, as far as this crate's handlers matter. The last three stay ignored if they are. SIGCHLD is not ignored any more, from the first one on.
///
/// It is readable ([`AsFd`]) when a signal has come.
#[derive(Debug)]
pub struct Signals {
    /// Readable when a signal has come.
    pipe: UnixStream,
    /// The last signal that has come.
    last: Arc<AtomicUsize>,
    registered: Vec<SigId>,
    /// Whether this is counted in [`JOBS`].
    counted: bool,
}

fn failed(call: Literal) -> impl Fn(io::Error) -> FabricError {
    move |error| refused(call)(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

impl Signals {
    /// Begins to catch them.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub fn catch() -> Result<Self, FabricError> {
        let (reader, writer) = UnixStream::pair().map_err(failed(&"socketpair"))?;
        reader.set_nonblocking(true).map_err(failed(&"ioctl"))?;
        let mut signals = Signals { pipe: reader, last: Arc::default(), registered: Vec::new(), counted: false };
        let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
        // Once a handler is installed, only we can provide the default effect.
        let idle = IDLE.get_or_init(Arc::default);
        let first = Arc::strong_count(idle) == 1;
        for &signal in CAUGHT.get_or_init(|| caught(ignored().unwrap_or(u64::MAX))) {
            if first {
                flag::register_conditional_default(signal, idle.clone()).map_err(failed(&"sigaction"))?;
            }
            let last =
                flag::register_usize(signal, signals.last.clone(), signal as usize).map_err(failed(&"sigaction"))?;
            signals.registered.push(last);
            let registered =
                pipe::register(signal, writer.try_clone().map_err(failed(&"dup"))?).map_err(failed(&"sigaction"))?;
            signals.registered.push(registered);
        }
        signals.registered.push(flag::register(SIGCHLD, Arc::default()).map_err(failed(&"sigaction"))?);
        *jobs += 1;
        signals.counted = true;
        idle.store(false, SeqCst);
        drop(jobs);
        Ok(signals)
    }

    /// Takes the signal that has come since the last call.
    pub fn take(&mut self) -> Option<i32> {
        let mut buffer = [0; 64];
        while self.pipe.read(&mut buffer).is_ok_and(|count| count > 0) {}
        i32::try_from(self.last.swap(0, SeqCst)).ok().filter(|&signal| signal != 0)
    }
}

impl AsFd for Signals {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.pipe.as_fd()
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        for id in self.registered.drain(..) {
            unregister(id);
        }
        if self.counted {
            let mut jobs = JOBS.lock().unwrap_or_else(PoisonError::into_inner);
            *jobs -= 1;
            if let Some(idle) = IDLE.get().filter(|_| *jobs == 0) {
                idle.store(true, SeqCst);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_ignored_stays_ignored_but_for_two() {
        assert_eq!(caught(0), [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1]);
        assert_eq!(caught(1), [SIGINT, SIGTERM, SIGQUIT, SIGUSR1], "by nohup");
        assert_eq!(caught(u64::MAX), [SIGINT, SIGTERM]);
        assert!(ignored().is_some());
    }
}
