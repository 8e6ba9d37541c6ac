//! The lock's public interface.

use crate::{
    Error, ReadGuard, Result, WriteGuard,
    acquire::{PATIENCE, RECOVERING, Wait},
    fork, join, name,
    session::Session,
};
use core::time::Duration;
use rdma_fabric::Time;
use rma_lock::{
    LockError,
    locks::{OwnedReadGuard, OwnedWriteGuard},
};
use std::{
    path::{self, Path, PathBuf},
    sync::{Arc, Mutex},
    time::Instant,
};

/// A readers-writer lock between processes, identified by a name. See [the crate](crate).
///
/// Readers are preferred: while readers hold the lock shared, more readers are admitted, and
/// writers wait. A thread that takes the lock exclusively while it already holds it exclusively
/// deadlocks. Each value is a separate member, of which there may be
/// [`PROCESSES`](crate::PROCESSES) at a time; one value may be shared by all threads of a process.
#[derive(Debug)]
pub struct NamedLock {
    pub(crate) path: PathBuf,
    /// The process that opened it.
    pub(crate) process: u32,
    /// The membership in the generation of the lock that was used last.
    pub(crate) session: Mutex<Arc<Session>>,
    /// Held by the thread that joins the next generation.
    pub(crate) joins: Mutex<()>,
}

impl NamedLock {
    /// Opens the lock called `name` of this user: the file
    /// `/tmp/onesided-locks-<user>/<name>.lock`, or `<name>.lock` in the directory whose absolute
    /// path is in the environment variable `ONESIDED_LOCK_DIR`. Creates it if it does not exist.
    ///
    /// # Errors
    /// [`Error::Name`]; [`Error::Foreign`] for a file or directory that this crate cannot have
    /// created; [`Error::Full`] or [`Error::TimedOut`] if there is no place within 10 s;
    /// [`Error::Probe`] if this process cannot determine whether others are alive;
    /// [`Error::System`]; [`Error::Lock`].
    pub fn open(name: &str) -> Result<Self> {
        Self::open_path(name::path_of(name)?)
    }

    /// Opens the lock whose file is at `path`, whose directory must exist. Creates the file if it
    /// does not exist. A relative path is resolved against the current working directory by this
    /// call. A process that can change the directory can remove the file; processes that use it
    /// then receive [`Error::Removed`].
    ///
    /// # Errors
    /// As [`NamedLock::open`].
    pub fn open_path(path: impl AsRef<Path>) -> Result<Self> {
        // The file may be opened again later, when the working directory may have changed.
        let path = path::absolute(&path).map_err(|cause| Error::System {
            call: "getcwd",
            path: path.as_ref().to_owned(),
            cause,
        })?;
        let session = join::join(&path, Instant::now() + PATIENCE)?;
        Ok(NamedLock::of(path, session))
    }

    /// Returns the handle of this process, which is a member of the lock whose file is at `path`.
    pub(crate) fn of(path: PathBuf, session: Session) -> Self {
        NamedLock {
            path,
            process: fork::this_process(),
            session: Mutex::new(Arc::new(session)),
            joins: Mutex::default(),
        }
    }

    /// Returns the path of the lock's file.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Takes the lock shared.
    ///
    /// # Errors
    /// [`Error::Torn`], [`Error::Forked`], [`Error::Full`], [`Error::Removed`], [`Error::Replaced`],
    /// [`Error::Probe`], [`Error::System`], [`Error::Foreign`], [`Error::Lock`].
    pub fn read(&self) -> Result<ReadGuard> {
        self.held(self.shared(Wait::Until(None))?)
    }

    /// Takes the lock shared, or gives up after `time`.
    ///
    /// # Errors
    /// As [`NamedLock::read`], and [`Error::TimedOut`].
    pub fn read_within(&self, time: Duration) -> Result<ReadGuard> {
        self.held(self.shared(Wait::within(time))?)
    }

    /// Takes the lock shared if that does not require waiting for others to release it. Waits at most
    /// 100 ms for the recovery from a death, and returns `None` if that has not ended.
    ///
    /// # Errors
    /// As [`NamedLock::read`].
    pub fn try_read(&self) -> Result<Option<ReadGuard>> {
        self.shared(Wait::Not)
    }

    /// Takes the lock exclusively.
    ///
    /// # Errors
    /// As [`NamedLock::read`].
    pub fn write(&self) -> Result<WriteGuard> {
        self.held(self.exclusive(Wait::Until(None))?)
    }

    /// Takes the lock exclusively, or gives up after `time`.
    ///
    /// # Errors
    /// As [`NamedLock::write`], and [`Error::TimedOut`].
    pub fn write_within(&self, time: Duration) -> Result<WriteGuard> {
        self.held(self.exclusive(Wait::within(time))?)
    }

    /// Takes the lock exclusively if that does not require waiting for others to release it. Waits at most
    /// 100 ms for the recovery from a death, and returns `None` if that has not ended.
    ///
    /// # Errors
    /// As [`NamedLock::write`].
    pub fn try_write(&self) -> Result<Option<WriteGuard>> {
        self.exclusive(Wait::Not)
    }

    /// Takes the lock exclusively even if the protected data may be torn, in order to examine it:
    /// [`WriteGuard::torn`] returns whether it may be. Once the data is consistent again, declare
    /// so with [`WriteGuard::clear_torn`].
    ///
    /// # Errors
    /// As [`NamedLock::write`], but never [`Error::Torn`].
    pub fn mend(&self) -> Result<WriteGuard> {
        self.held(self.mended(Wait::Until(None))?)
    }

    /// Takes the lock as [`NamedLock::mend`] does, or gives up after `time`.
    ///
    /// # Errors
    /// As [`NamedLock::mend`], and [`Error::TimedOut`].
    pub fn mend_within(&self, time: Duration) -> Result<WriteGuard> {
        self.held(self.mended(Wait::within(time))?)
    }

    /// Takes the lock as [`NamedLock::mend`] does if that does not require waiting for others to
    /// release it.
    ///
    /// # Errors
    /// As [`NamedLock::mend`].
    pub fn try_mend(&self) -> Result<Option<WriteGuard>> {
        self.mended(Wait::Not)
    }

    /// Converts the result of a call with a wait: `None` means that it timed out.
    fn held<G>(&self, guard: Option<G>) -> Result<G> {
        guard.ok_or_else(|| Error::timed_out(&self.path))
    }

    fn shared(&self, wait: Wait) -> Result<Option<ReadGuard>> {
        let held = self.take(wait, |view| {
            view.run(wait.deadline(), async {
                Ok(match wait {
                    Wait::Not => view.within(RECOVERING, view.lock.try_read()).await?,
                    Wait::Until(at) => Some(view.lock.read_before(view.time(at)).await?),
                }
                .map(|guard| -> OwnedReadGuard { guard.into_owned() }))
            })
        })?;
        Ok(held.map(|(session, owned)| ReadGuard::new(session, owned)))
    }

    fn exclusive(&self, wait: Wait) -> Result<Option<WriteGuard>> {
        let held = self.take(wait, |view| {
            view.run(wait.deadline(), async {
                Ok(match wait {
                    Wait::Not => view.within(RECOVERING, view.lock.try_write()).await?,
                    Wait::Until(at) => Some(view.lock.write_before(view.time(at)).await?),
                }
                .map(|guard| -> OwnedWriteGuard { guard.into_owned() }))
            })
        })?;
        Ok(held.map(|(session, owned)| WriteGuard::new(session, owned)))
    }

    fn mended(&self, wait: Wait) -> Result<Option<WriteGuard>> {
        let held = self.take(wait, |view| {
            view.run(wait.deadline(), async {
                let deadline = match wait {
                    Wait::Not => Time::ZERO,
                    Wait::Until(at) => view.time(at),
                };
                match view.lock.mend_before(deadline).await {
                    Err(LockError::TimedOut) if matches!(wait, Wait::Not) => Ok(None),
                    mended => Ok(Some(mended?.into_owned())),
                }
            })
        })?;
        Ok(held.map(|(session, owned)| WriteGuard::new(session, owned)))
    }
}
