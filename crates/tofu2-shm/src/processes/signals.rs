//! Handling of the signals that ask a launcher to terminate, while a job runs.
//!
//! SIGCHLD gets a handler that does nothing. A process may inherit a disposition that ignores it;
//! the system then reaps children by itself, their exit codes are lost, and their process IDs may
//! be reused before a pidfd is opened.

use super::memory_file::refused;
use rdma_fabric::{FabricError, error::Literal};
use rustix::io::Errno;
use signal_hook::{
    SigId,
    consts::{SIGALRM, SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGVTALRM, SIGXCPU},
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

/// The signals that are commonly sent to end a process, as far as they can be caught. By default
/// each of them would terminate the launcher immediately, and with it the ranks, by SIGKILL.
pub(crate) const TERMINATING: [i32; 9] =
    [SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1, SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU];

/// The signals among them that end a job regardless of the process's disposition: shells start
/// commands in the background with SIGINT and SIGQUIT ignored.
const ALWAYS: [i32; 3] = [SIGINT, SIGQUIT, SIGTERM];

/// The state of the handlers that this process has installed.
static INSTALLED: Mutex<Installed> = Mutex::new(Installed { jobs: 0, defaults: 0 });
/// True if there are no jobs; the signals then have their default effect again.
static IDLE: OnceLock<Arc<AtomicBool>> = OnceLock::new();

#[derive(Debug)]
struct Installed {
    /// The number of jobs that this process supervises.
    jobs: usize,
    /// The signals whose default effect this crate provides when there is no job: bit `n - 1` for
    /// signal `n`.
    defaults: u64,
}

/// Catches the signals that ask a process to end (SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1,
/// SIGUSR2, SIGALRM, SIGVTALRM, SIGXCPU) while this value lives; without one they have their
/// default effect, as far as this crate's handlers are concerned. Except for the first two and
/// SIGQUIT, a signal that this process ignores (SIGHUP under `nohup`) or handles itself is left
/// alone. SIGCHLD is no longer ignored once the first such value exists.
///
/// It is readable ([`AsFd`]) when a signal has arrived.
#[derive(Debug)]
pub struct Signals {
    /// Readable when a signal has arrived.
    pipe: UnixStream,
    /// The last signal that has arrived.
    last: Arc<AtomicUsize>,
    registered: Vec<SigId>,
    /// Whether this value is counted in [`INSTALLED`].
    counted: bool,
}

fn failed(call: Literal) -> impl Fn(io::Error) -> FabricError {
    move |error| refused(call)(Errno::from_io_error(&error).unwrap_or(Errno::INVAL))
}

/// Returns the signals that this process ignores or handles: bit `n - 1` for signal `n`. Returns 0
/// if the system does not report them.
fn taken() -> u64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let bits = |name| {
        let bits = text.lines().find_map(|line| line.strip_prefix(name));
        bits.and_then(|bits| u64::from_str_radix(bits.trim(), 16).ok()).unwrap_or(0)
    };
    bits("SigIgn:") | bits("SigCgt:")
}

impl Signals {
    /// Starts catching signals.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub fn catch() -> Result<Self, FabricError> {
        let (reader, writer) = UnixStream::pair().map_err(failed(&"socketpair"))?;
        reader.set_nonblocking(true).map_err(failed(&"ioctl"))?;
        let mut signals = Signals { pipe: reader, last: Arc::default(), registered: Vec::new(), counted: false };
        let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
        // Once a handler is installed, only this crate can provide the default effect.
        let idle = IDLE.get_or_init(Arc::default);
        let taken = taken();
        for signal in TERMINATING {
            let bit = 1 << (signal - 1);
            let is_ours = installed.defaults & bit != 0;
            if taken & bit != 0 && !is_ours && !ALWAYS.contains(&signal) {
                continue;
            }
            if !is_ours {
                flag::register_conditional_default(signal, idle.clone()).map_err(failed(&"sigaction"))?;
                installed.defaults |= bit;
            }
            let last =
                flag::register_usize(signal, signals.last.clone(), signal as usize).map_err(failed(&"sigaction"))?;
            signals.registered.push(last);
            let registered =
                pipe::register(signal, writer.try_clone().map_err(failed(&"dup"))?).map_err(failed(&"sigaction"))?;
            signals.registered.push(registered);
        }
        signals.registered.push(flag::register(SIGCHLD, Arc::default()).map_err(failed(&"sigaction"))?);
        installed.jobs += 1;
        signals.counted = true;
        idle.store(false, SeqCst);
        drop(installed);
        Ok(signals)
    }

    /// Takes the signal that has arrived since the last call.
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
            let mut installed = INSTALLED.lock().unwrap_or_else(PoisonError::into_inner);
            installed.jobs -= 1;
            if let Some(idle) = IDLE.get().filter(|_| installed.jobs == 0) {
                idle.store(true, SeqCst);
            }
        }
    }
}
