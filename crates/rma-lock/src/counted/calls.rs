//! Taking a lock: the calls of [`CountedLock`].

use super::{
    Core, CountedLock, Scheme,
    guard::{ReadGuard, WriteGuard},
};
use crate::{
    Result,
    boxed::wrapped,
    in_place::{FastPath, in_place},
    lock::Admitted,
    queue::{self, Call},
};
use core::{future::Future, marker::PhantomData, task::Context};
use rdma_fabric::Time;

/// A short path to read, for a `Held` that is a guard or may be one.
pub(crate) struct Read<'a, S: Scheme, Held>(&'a CountedLock<S>, Time, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: Admitted<ReadGuard<'a, S>>> FastPath for Read<'a, S, Held> {
    type Out = Result<Held>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Result<Result<Held>, Call<Core>> {
        match self.0.read_now(Held::TRIES, self.1) {
            Ok(()) => Ok(Ok(Held::new(Some(ReadGuard::new(self.0))))),
            Err(went) => went.map(|out| out.map(|held| Held::new(held.map(|_| ReadGuard::new(self.0))))),
        }
    }
}

/// A short path to write, for a `Held` that is a guard or may be one.
pub(crate) struct Write<'a, S: Scheme, Held>(&'a CountedLock<S>, Time, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: Admitted<WriteGuard<'a, S>>> FastPath for Write<'a, S, Held> {
    type Out = Result<Held>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn now(self, _: &mut Context<'_>) -> Result<Result<Held>, Call<Core>> {
        match self.0.write_now(Held::TRIES, self.1) {
            Ok(held) => Ok(Ok(Held::new(Some(WriteGuard::new(self.0, held))))),
            Err(went) => {
                went.map(|out| out.map(|held| Held::new(held.map(|held| WriteGuard::new(self.0, held.into())))))
            }
        }
    }
}

impl<'a, S: Scheme, Held> Read<'a, S, Held> {
    #[inline(always)]
    pub(crate) fn new(lock: &'a CountedLock<S>, deadline: Time) -> Self {
        Read(lock, deadline, PhantomData)
    }
}

impl<'a, S: Scheme, Held> Write<'a, S, Held> {
    #[inline(always)]
    pub(crate) fn new(lock: &'a CountedLock<S>, deadline: Time) -> Self {
        Write(lock, deadline, PhantomData)
    }
}

/// Returns the rest of an acquisition to read.
pub(crate) fn read_rest<'a, S, Held>(
    lock: &'a CountedLock<S>,
    call: Call<Core>,
) -> impl Future<Output = Result<Held>> + Unpin + use<'a, S, Held>
where
    S: Scheme,
    Held: Admitted<ReadGuard<'a, S>>,
{
    wrapped(call, move |held| Held::new(held.map(|_| ReadGuard::new(lock))))
}

/// Returns the rest of an acquisition to write.
pub(crate) fn write_rest<'a, S, Held>(
    lock: &'a CountedLock<S>,
    call: Call<Core>,
) -> impl Future<Output = Result<Held>> + Unpin + use<'a, S, Held>
where
    S: Scheme,
    Held: Admitted<WriteGuard<'a, S>>,
{
    wrapped(call, move |held: Option<queue::Held>| Held::new(held.map(|held| WriteGuard::new(lock, held.into()))))
}

impl<S: Scheme> CountedLock<S> {
    /// Takes the lock shared.
    ///
    /// What earlier writers put is visible to gets posted afterwards. Without a writer in its way
    /// this costs 1 remote atomic.
    ///
    /// Dropping the future undoes what it has done. This costs a waiting reader 1 atomic on its own
    /// memory; the rank that would have woken it finds its mark, and uncounts it if it is counted.
    /// A reader that is about to wait, or has been let in, uncounts itself in the background.
    ///
    /// # Errors
    /// [`crate::LockError::Fabric`]; [`crate::LockError::TooManyWaiting`];
    /// [`crate::LockError::TooManyHolders`]; [`crate::LockError::Broken`] if an earlier call failed
    /// half-way. The loss of any rank ends a wait with [`rdma_fabric::FabricError::PeerLost`]; then
    /// nothing is left to undo.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        self.read_before(Time::MAX)
    }

    /// Takes the lock shared, or gives up at `deadline`. Giving up costs 1 atomic on this rank's
    /// own memory; the rank that would have woken it takes its reader off the count. Dropping the
    /// future has the same effect.
    ///
    /// # Errors
    /// As [`CountedLock::read`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        self.enter_to_read(deadline)
    }

    /// Takes the lock shared if no writer is in the way. Costs 1 remote atomic on success,
    /// otherwise 2 or more. Dropping the future undoes what it has done.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, S>>>> {
        self.enter_to_read(Time::MAX)
    }

    /// Takes the lock exclusively.
    ///
    /// Everything that earlier holders put is visible to gets posted afterwards. On an idle lock
    /// this costs 3 remote atomics and a put, one after the other.
    ///
    /// Dropping the future undoes what it has done. This costs a waiting writer 1 atomic on its own
    /// memory; the rank that would have woken it passes it over. A writer that has been let in
    /// releases the lock in the background.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn write(&self) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        self.write_before(Time::MAX)
    }

    /// Takes the lock exclusively, or gives up at `deadline`. Giving up costs 1 atomic on this
    /// rank's own memory; the rank that would have woken it hands the lock on. Dropping the future
    /// has the same effect.
    ///
    /// # Errors
    /// As [`CountedLock::write`], and [`crate::LockError::TimedOut`].
    #[inline]
    pub fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        self.enter_to_write(deadline)
    }

    /// Takes the lock exclusively if nobody is inside or waits to write. Dropping the future undoes
    /// what it has done.
    ///
    /// # Errors
    /// As [`CountedLock::write`].
    #[inline]
    pub fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, S>>>> {
        self.enter_to_write(Time::MAX)
    }

    #[inline(always)]
    fn enter_to_read<'a, Held>(&'a self, deadline: Time) -> impl Future<Output = Result<Held>>
    where
        Held: Admitted<ReadGuard<'a, S>>,
    {
        in_place(Read::new(self, deadline), |call| read_rest(self, call))
    }

    #[inline(always)]
    fn enter_to_write<'a, Held>(&'a self, deadline: Time) -> impl Future<Output = Result<Held>>
    where
        Held: Admitted<WriteGuard<'a, S>>,
    {
        in_place(Write::new(self, deadline), |call| write_rest(self, call))
    }
}
