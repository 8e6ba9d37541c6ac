//! Takes the lock in the current generation, with as many attempts as necessary.

use crate::{
    Error, NamedLock, Result, create, doorbell,
    error::Failed,
    file, fork, join,
    layout::{PROCESSES, RECOVERY},
    process::Machine,
    session::{Gate, Session, View},
    slots, torn,
};
use core::time::Duration;
use rma_lock::LockError;
use std::{
    sync::{Arc, PoisonError, TryLockError},
    thread,
    time::Instant,
};

/// How long a call waits for a place in the lock, unless it has a deadline.
pub(crate) const PATIENCE: Duration = Duration::from_secs(10);
/// The same for a try, which does not wait for holders.
const SHORTLY: Duration = Duration::from_secs(1);
/// How long a try may wait for others that recover from a death, or may itself spend on recovery.
pub(crate) const RECOVERING: Duration = Duration::from_millis(100);
/// The interval at which tries check whether the holders of the lock are alive.
const A_MOMENT: Duration = Duration::from_millis(1);
/// The pause before repeating an acquisition that failed because the maximum number of waiters was
/// reached.
const PAUSE: Duration = Duration::from_micros(500);

/// The wait limit of a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wait {
    /// Does not wait for others to release the lock.
    Not,
    /// Waits until this time; `None` means for ever.
    Until(Option<Instant>),
}

impl Wait {
    /// Waits for `time` from now on.
    pub(crate) fn within(time: Duration) -> Self {
        Wait::Until(Instant::now().checked_add(time))
    }

    pub(crate) fn deadline(self) -> Option<Instant> {
        match self {
            Wait::Not => None,
            Wait::Until(deadline) => deadline,
        }
    }

    /// Returns the deadline of waiting for a place in the lock.
    fn for_room(self) -> Instant {
        match self {
            Wait::Not => Instant::now() + SHORTLY,
            Wait::Until(deadline) => deadline.unwrap_or_else(|| Instant::now() + PATIENCE),
        }
    }
}

impl NamedLock {
    /// Takes the lock by `attempt` in the current generation, with as many attempts as necessary.
    /// If a hold is returned, the returned session has been entered.
    #[inline]
    pub(crate) fn take<K>(
        &self,
        wait: Wait,
        attempt: impl Fn(&View) -> Result<Option<K>, Failed>,
    ) -> Result<Option<(Arc<Session>, K)>> {
        let mut tries = 0;
        loop {
            let session = self.session()?;
            if !session.enter() {
                if self.wait_at_gate(&session, wait)? {
                    continue;
                }
                return Ok(None);
            }
            let outcome = attempt(&session.view);
            if let Ok(Some(owned)) = outcome {
                return match session.check_presence() {
                    Ok(()) => Ok(Some((session, owned))),
                    Err(gone) => {
                        drop(owned);
                        session.exit();
                        Err(gone)
                    }
                };
            }
            let goes_on = self.consider(&session, wait, outcome.map(|_| ()), &mut tries);
            session.exit();
            if !goes_on? {
                return Ok(None);
            }
            if Self::has_ended(&session) {
                self.replace(&session, wait)?;
            }
        }
    }

    /// Returns the membership of this process.
    #[inline]
    fn session(&self) -> Result<Arc<Session>> {
        // This precedes the mutex, which another thread may have locked when this child was forked.
        if fork::this_process() != self.process {
            return Err(Error::Forked { path: self.path.clone(), opened_by: self.process });
        }
        Ok(self.session.lock().unwrap_or_else(PoisonError::into_inner).clone())
    }

    /// Waits until the lock may be used again, in another generation if necessary. Returns false if
    /// a try should not wait for that.
    #[cold]
    fn wait_at_gate(&self, session: &Arc<Session>, wait: Wait) -> Result<bool> {
        let View { path, file, map, .. } = &session.view;
        loop {
            match Gate::of(map) {
                Gate::Open => return Ok(true),
                Gate::Closing => {
                    create::reopen(path, file, map)?;
                    match wait {
                        Wait::Not if Gate::of(map) == Gate::Closing => return Ok(false),
                        Wait::Until(Some(at)) if Instant::now() >= at => return Err(Error::timed_out(path)),
                        _ => thread::sleep(PAUSE),
                    }
                }
                Gate::Ended => {
                    let turn = match self.joins.try_lock() {
                        Ok(turn) => Some(turn),
                        Err(TryLockError::Poisoned(turn)) => Some(turn.into_inner()),
                        Err(TryLockError::WouldBlock) => None,
                    };
                    if turn.is_some() {
                        // Another thread may have joined already.
                        if Arc::ptr_eq(&self.session()?, session) {
                            let joined = Arc::new(join::join(path, wait.for_room())?);
                            *self.session.lock().unwrap_or_else(PoisonError::into_inner) = joined;
                        }
                        return Ok(true);
                    }
                    match wait {
                        Wait::Until(Some(at)) if Instant::now() >= at => return Err(Error::timed_out(path)),
                        _ => thread::sleep(PAUSE),
                    }
                    if !Arc::ptr_eq(&self.session()?, session) {
                        return Ok(true);
                    }
                }
            }
        }
    }

    /// Returns whether to try again after an attempt that did not take the lock.
    #[cold]
    fn consider(&self, session: &Session, wait: Wait, outcome: Result<(), Failed>, tries: &mut u32) -> Result<bool> {
        let view = &session.view;
        let outcome = match outcome {
            Ok(()) => Ok(()),
            Err(Failed::Lock(error)) => Err(error),
            Err(failed) => return Err(Error::lock(&self.path)(failed)),
        };
        match outcome {
            // A try found the lock taken, perhaps by a process that has died.
            Ok(()) => {
                *tries += 1;
                Ok(*tries <= 3 && Self::recovers(view, A_MOMENT).map_err(Error::lock(&self.path))?)
            }
            Err(LockError::TimedOut) => {
                // If the deadline had already passed, the wait had no time for this check.
                slots::look(&view.map, view.rank, doorbell::LONGEST).map_err(Error::probe(&self.path))?;
                Err(Error::timed_out(&self.path))
            }
            Err(LockError::Torn { by }) => {
                Err(Error::Torn { path: self.path.clone(), by: torn::process_of(&view.map, by) })
            }
            Err(LockError::TooManyWaiting { .. }) => match wait {
                Wait::Not => {
                    *tries += 1;
                    Ok(*tries <= 3 && Self::recovers(view, A_MOMENT).map_err(Error::lock(&self.path))?)
                }
                Wait::Until(Some(at)) if Instant::now() >= at => Err(Error::timed_out(&self.path)),
                // This process has no waiter in the queue, so no wait of it detects a death.
                Wait::Until(_) => {
                    if !Self::recovers(view, doorbell::LONGEST).map_err(Error::lock(&self.path))? {
                        thread::sleep(PAUSE);
                    }
                    Ok(true)
                }
            },
            Err(LockError::Unrecoverable { .. }) => Ok(true),
            Err(error) => Err(Error::lock(&self.path)(error.into())),
        }
    }

    /// Recovers from a death from which no process has recovered yet, if there is one. Checks for
    /// deaths first, unless a process has done so within `pause`.
    fn recovers(view: &View, pause: Duration) -> Result<bool, Failed> {
        slots::look(&view.map, view.rank, pause)?;
        let known = RECOVERY.deaths - view.run(None, view.lock.room())?.deaths;
        if slots::deaths(&view.map) <= known as u64 {
            return Ok(false);
        }
        let until = Some(Instant::now() + RECOVERING);
        match view.run(until, view.lock.recover_from(view.lock.epoch(), view.time(until))) {
            // A death that cannot be recovered from ends the generation.
            Ok(()) | Err(Failed::Lock(LockError::Unrecoverable { .. })) => Ok(true),
            Err(Failed::Lock(LockError::TimedOut)) => Ok(false),
            Err(failed) => Err(failed),
        }
    }

    /// Returns whether the lock can no longer be acquired in this generation.
    fn has_ended(session: &Session) -> bool {
        session.view.run(None, session.view.lock.room()).is_ok_and(|room| room.epochs == 0)
    }

    /// Replaces the generation of a session, which has ended, as soon as no process holds the lock
    /// in it.
    #[cold]
    fn replace(&self, session: &Arc<Session>, wait: Wait) -> Result<()> {
        let View { path, file, map, .. } = &session.view;
        let deadline = wait.for_room();
        loop {
            if Gate::of(map) == Gate::Ended {
                return Ok(());
            }
            let own = file::again(file, path)?;
            if !file::lock(&own, path, Some(deadline))? {
                return Err(Error::timed_out(path));
            }
            let renewed = if file::is_at(&own, path)? {
                create::renew(path, &own, map, Machine::this()?, join::FIRMLY)
            } else if Gate::of(map) == Gate::Ended {
                // Another process has replaced it.
                Ok(true)
            } else {
                session.check_presence().map(|()| false)
            };
            file::unlock(&own);
            if renewed? {
                return Ok(());
            }
            if Instant::now() >= deadline {
                return Err(Error::Full { path: path.clone(), processes: PROCESSES });
            }
            thread::sleep(Duration::from_millis(20));
        }
    }
}
