//! Jobs of launchers with PMIx: `srun --mpi=pmix`, `mpirun` of Open MPI and PRRTE, and others.
//!
//! libpmix (OpenPMIx) is opened when a [`Pmix`] is created; a program needs it neither at build
//! time nor where it is not started by a launcher with PMIx. Versions 3 to 6 have the layout that
//! is used here, on 64 bits; it was compared by hand with the headers of 3.0, 3.2, 4.0, 4.1, 4.2,
//! 5.0, 6.0 and 6.1, and has run with 4.2.2.
//!
//! Every call has a time limit. PMIx's own limit (`PMIX_TIMEOUT`) is in whole seconds, and servers
//! ignore it in a fence once all ranks of a host have called the fence. So a thread of this module
//! makes the calls, and the caller waits one second longer than the library should. A call that has
//! not returned by then is abandoned together with its thread, and the client can't be used any
//! longer.
//!
//! A launcher considers a process that ends without `PMIx_Finalize` as failed, and ends its job, so
//! a [`Pmix`] has to be dropped before the process ends.

mod abi;
mod error;
mod raw;
mod worker;

pub use error::PmixError;

use self::{
    raw::{Failed, Found, Library},
    worker::Worker,
};
use crate::{Bootstrap, LauncherError};
use core::{ffi::c_int, time::Duration};
use std::{env, ffi::CString};

/// The library that [`Pmix::open`] opens.
pub const LIBRARY: &str = "libpmix.so.2";

/// The variables that each launcher with PMIx sets.
const MARKS: [&str; 2] = ["PMIX_NAMESPACE", "PMIX_RANK"];

/// The time that a call may take beyond the library's own limit.
const GRACE: Duration = Duration::from_secs(1);

/// Returns whether a launcher with PMIx started this process.
pub fn is_launched() -> bool {
    MARKS.iter().all(|mark| env::var_os(mark).is_some())
}

/// A client of the launcher that started this process. A process has at most one at a time.
/// Dropping it disconnects from the launcher (`PMIx_Finalize`), which takes at most 5 s.
#[derive(Debug)]
pub struct Pmix {
    worker: Worker,
    version: &'static str,
    namespace: String,
    rank: u32,
    ranks: usize,
    seconds: c_int,
}

impl Pmix {
    /// Connects to the launcher through [`LIBRARY`].
    ///
    /// A fence or a get ends within `within`, rounded up to whole seconds and at least one second,
    /// plus one second; so does this call.
    ///
    /// # Errors
    /// [`PmixError::NotLaunched`] if no launcher with PMIx started this process,
    /// [`PmixError::Missing`], [`PmixError::Symbol`] or [`PmixError::Version`] if its library is
    /// missing or unsuitable, [`PmixError::InUse`] if there is a client already, and the errors of
    /// the first calls.
    pub fn open(within: Duration) -> Result<Self, PmixError> {
        Self::open_library(LIBRARY, within)
    }

    /// Connects to the launcher through the library of this name or path, as [`Pmix::open`] does.
    ///
    /// # Errors
    /// Those of [`Pmix::open`].
    pub fn open_library(library: &str, within: Duration) -> Result<Self, PmixError> {
        if let Some(variable) = MARKS.into_iter().find(|mark| env::var_os(mark).is_none()) {
            return Err(PmixError::NotLaunched { variable });
        }
        let seconds = whole_seconds(within);
        let library = Library::open(library)?;
        let greet = move |session: &raw::Session| {
            (session.namespace(), session.rank(), session.get(abi::JOB, abi::JOB_SIZE, seconds))
        };
        let (worker, (namespace, rank, size)) = Worker::start(library, bound(seconds), greet)?;
        let ranks = match size.map_err(|failed| worker.failed(failed))? {
            Found::Number(size) => size as usize,
            found => return Err(no_bytes(abi::JOB, "pmix.job.size", &found)),
        };
        Ok(Self { worker, version: library.version(), namespace, rank, ranks, seconds })
    }

    /// Returns the library's version string.
    pub fn version(&self) -> &str {
        self.version
    }

    /// Returns the job's name, which is the same on all ranks and unique while the job runs.
    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    fn checked<T>(&self, made: Result<T, Failed>) -> Result<T, PmixError> {
        made.map_err(|failed| match failed {
            Failed { call, status: abi::TIMEOUT } => PmixError::TimedOut { call, within: self.within() },
            failed => self.worker.failed(failed),
        })
    }

    fn within(&self) -> Duration {
        Duration::from_secs(self.seconds.unsigned_abs().into())
    }

    fn put_bytes(&mut self, key: &str, value: &[u8]) -> Result<(), PmixError> {
        let (key, value) = (name_of(key)?, value.to_vec());
        let made = self.worker.call("PMIx_Put", bound(self.seconds), move |session| session.put(&key, &value))?;
        self.checked(made)
    }

    fn meet(&mut self) -> Result<(), PmixError> {
        let seconds = self.seconds;
        let made = self.worker.call("PMIx_Commit", bound(seconds), move |session| session.commit())?;
        self.checked(made)?;
        let made = self.worker.call("PMIx_Fence", bound(seconds), move |session| session.fence(seconds))?;
        self.checked(made)
    }

    fn get_bytes(&mut self, of: u32, key: &str) -> Result<Vec<u8>, PmixError> {
        if of as usize >= self.ranks {
            return Err(PmixError::NoSuchRank { rank: of, ranks: self.ranks });
        }
        let (name, seconds) = (name_of(key)?, self.seconds);
        let silent = |within| PmixError::Silent { rank: of, key: key.to_owned(), within };
        let made = self.worker.call("PMIx_Get", bound(seconds), move |session| session.get(of, &name, seconds));
        match made {
            Ok(Ok(Found::Bytes(bytes))) => Ok(bytes),
            Ok(Ok(found)) => Err(no_bytes(of, key, &found)),
            Ok(Err(Failed { status: abi::NOT_FOUND, .. })) => {
                Err(PmixError::NotFound { rank: of, key: key.to_owned() })
            }
            Ok(Err(Failed { status: abi::TIMEOUT, .. })) => Err(silent(self.within())),
            Ok(Err(failed)) => Err(self.worker.failed(failed)),
            Err(PmixError::TimedOut { within, .. }) => Err(silent(within)),
            Err(error) => Err(error),
        }
    }
}

impl Bootstrap for Pmix {
    fn rank(&self) -> u32 {
        self.rank
    }

    fn ranks(&self) -> usize {
        self.ranks
    }

    fn launcher(&self) -> &'static str {
        "PMIx"
    }

    fn put(&mut self, key: &str, value: &[u8]) -> Result<(), LauncherError> {
        Ok(self.put_bytes(key, value)?)
    }

    fn fence(&mut self) -> Result<(), LauncherError> {
        Ok(self.meet()?)
    }

    fn get(&mut self, of: u32, key: &str) -> Result<Vec<u8>, LauncherError> {
        Ok(self.get_bytes(of, key)?)
    }
}

/// Returns the library's limit, in whole seconds.
fn whole_seconds(within: Duration) -> c_int {
    let seconds = within.as_secs().saturating_add(u64::from(within.subsec_nanos() > 0));
    c_int::try_from(seconds.max(1)).unwrap_or(c_int::MAX)
}

/// Returns the time to wait for a call with this limit.
fn bound(seconds: c_int) -> Duration {
    Duration::from_secs(seconds.unsigned_abs().into()) + GRACE
}

/// Converts a key to the library's form.
fn name_of(key: &str) -> Result<CString, PmixError> {
    let good = !key.is_empty() && key.len() <= abi::KEY_LIMIT && !key.starts_with("pmix");
    let name = good.then(|| CString::new(key).ok()).flatten();
    name.ok_or_else(|| PmixError::BadKey { key: key.to_owned(), limit: abi::KEY_LIMIT })
}

fn no_bytes(rank: u32, key: &str, found: &Found) -> PmixError {
    let kind = match found {
        Found::Bytes(_) => abi::BYTE_OBJECT,
        Found::Number(_) => abi::UINT32,
        Found::Other(kind) => *kind,
    };
    PmixError::Kind { rank, key: key.to_owned(), kind }
}

#[cfg(test)]
mod tests {
    use super::{bound, name_of, whole_seconds};
    use core::time::Duration;

    #[test]
    fn limits_are_whole_seconds() {
        assert_eq!(whole_seconds(Duration::ZERO), 1);
        assert_eq!(whole_seconds(Duration::from_secs(3)), 3);
        assert_eq!(whole_seconds(Duration::from_millis(3001)), 4);
        assert_eq!(whole_seconds(Duration::MAX), i32::MAX);
        assert_eq!(bound(3), Duration::from_secs(4));
    }

    #[test]
    fn keys_are_checked() {
        assert_eq!(name_of("a key").expect("a key").to_bytes(), b"a key");
        for bad in ["", "pmix.rank", "a\0b", &"k".repeat(512)] {
            assert!(name_of(bad).is_err(), "{bad:?}");
        }
    }
}
