//! Proof of holding a named lock.

use crate::{Error, Result, fork, session::Session, torn};
use core::mem;
use rma_lock::locks::{OwnedReadGuard, OwnedWriteGuard};
use std::{sync::Arc, thread};

/// The data that a lock protects may be half-written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Torn {
    /// The process that died or panicked while it wrote, by its process ID at that time; 0 if it is
    /// no longer known.
    pub by: u32,
}

/// Shared access: no process holds the lock to write. Returned by
/// [`NamedLock::read`](crate::NamedLock::read).
///
/// Dropping it releases the lock without reporting errors. It keeps the lock open, even if the
/// [`NamedLock`](crate::NamedLock) is dropped. Everything that a holder does before it releases the
/// lock happens before everything that later holders do (release and acquire).
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct ReadGuard {
    /// `None` only during a release.
    hold: Option<(Arc<Session>, OwnedReadGuard)>,
}

/// Exclusive access: there is no other holder. Returned by
/// [`NamedLock::write`](crate::NamedLock::write) and [`NamedLock::mend`](crate::NamedLock::mend).
///
/// Dropping it releases the lock without reporting errors; if a panic drops it, the protected data
/// counts as torn. Otherwise as [`ReadGuard`].
#[must_use = "a guard that is dropped at once protects nothing"]
#[derive(Debug)]
pub struct WriteGuard {
    /// `None` only during a release.
    hold: Option<(Arc<Session>, OwnedWriteGuard)>,
}

impl ReadGuard {
    /// Creates the guard for a call that has entered the session.
    pub(crate) fn new(session: Arc<Session>, owned: OwnedReadGuard) -> Self {
        ReadGuard { hold: Some((session, owned)) }
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// [`Error::Forked`]: nothing is released in a child. [`Error::Lock`]: the error of the release.
    pub fn release(mut self) -> Result<()> {
        let Some((session, owned)) = self.hold.take() else { return Ok(()) };
        if let Err(forked) = session.check_process() {
            mem::forget(owned);
            return Err(forked);
        }
        let released = session.view.run(None, owned.release());
        session.exit();
        released.map_err(Error::lock(&session.view.path))
    }
}

impl Drop for ReadGuard {
    fn drop(&mut self) {
        if let Some((session, owned)) = self.hold.take() {
            drop(ReadGuard { hold: Some((session, owned)) }.release());
        }
    }
}

impl WriteGuard {
    /// Creates the guard for a call that has entered the session.
    #[inline]
    pub(crate) fn new(session: Arc<Session>, owned: OwnedWriteGuard) -> Self {
        session.set_writes(true);
        WriteGuard { hold: Some((session, owned)) }
    }

    /// Returns whether the protected data may be half-written; `Some` only if
    /// [`NamedLock::mend`](crate::NamedLock::mend) returned this guard.
    pub fn torn(&self) -> Option<Torn> {
        let (session, owned) = self.hold.as_ref()?;
        let by = owned.torn()?.by;
        Some(Torn { by: torn::process_of(&session.view.map, by) })
    }

    /// Declares that the protected data is consistent again, so that acquisitions succeed as
    /// before. This takes effect immediately, regardless of how the guard is released later.
    ///
    /// # Errors
    /// [`Error::Forked`], [`Error::Lock`].
    pub fn clear_torn(&mut self) -> Result<()> {
        let Some((session, owned)) = &mut self.hold else { return Ok(()) };
        session.check_process()?;
        if owned.torn().is_some() {
            session.view.run(None, owned.clear_torn()).map_err(Error::lock(&session.view.path))?;
            torn::clear(&session.view.map);
        }
        Ok(())
    }

    /// Releases the lock.
    ///
    /// # Errors
    /// As [`ReadGuard::release`].
    pub fn release(mut self) -> Result<()> {
        let Some((session, owned)) = self.hold.take() else { return Ok(()) };
        if let Err(forked) = session.check_process() {
            mem::forget(owned);
            return Err(forked);
        }
        // This comes first: once the lock is released, this process no longer writes.
        session.set_writes(false);
        let released = session.view.run(None, owned.release());
        session.exit();
        released.map_err(Error::lock(&session.view.path))
    }
}

impl Drop for WriteGuard {
    fn drop(&mut self) {
        let Some((session, owned)) = self.hold.take() else { return };
        if !thread::panicking() || fork::this_process() != session.process {
            drop(WriteGuard { hold: Some((session, owned)) }.release());
            return;
        }
        torn::publish(&session.view.map, session.process);
        session.set_writes(false);
        // If the thread is panicking, this marks the data as torn before the lock is passed on.
        drop(owned);
        session.exit();
    }
}
