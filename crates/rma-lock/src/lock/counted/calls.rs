//! Taking a lock: the calls of [`CountedLock`].

use super::{
    Core, CountedLock, Scheme,
    guard::{ReadGuard, WriteGuard},
};
use crate::{
    Result, RmaLock,
    lock::{
        Admitted,
        boxed::wrapped,
        queue::{self, Call},
    },
};
use core::{future::Future, marker::PhantomData, task::Context};
use rdma_fabric::{
    Time,
    fast_path::{FastPath, fast_path},
};

/// A fast path to read, where `Held` is a guard or an optional guard.
pub(crate) struct Read<'a, S: Scheme, Held>(&'a CountedLock<S>, Time, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: Admitted<ReadGuard<'a, S>>> FastPath for Read<'a, S, Held> {
    type Out = Result<Held>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Held>, Call<Core>> {
        match self.0.read_fast(Held::TRIES, self.1) {
            Ok(()) => Ok(Ok(Held::new(Some(ReadGuard::new(self.0))))),
            Err(went) => went.map(|out| out.map(|held| Held::new(held.map(|_| ReadGuard::new(self.0))))),
        }
    }
}

/// A fast path to write, where `Held` is a guard or an optional guard.
pub(crate) struct Write<'a, S: Scheme, Held>(&'a CountedLock<S>, Time, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: Admitted<WriteGuard<'a, S>>> FastPath for Write<'a, S, Held> {
    type Out = Result<Held>;
    type Stage = Call<Core>;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Held>, Call<Core>> {
        match self.0.write_fast(Held::TRIES, self.1) {
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

/// Returns the remainder of a shared acquisition.
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

/// Returns the remainder of an exclusive acquisition.
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

impl<S: Scheme> RmaLock for CountedLock<S> {
    type Shared<'a> = ReadGuard<'a, S>;
    type Exclusive<'a> = WriteGuard<'a, S>;

    #[inline]
    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        self.enter_to_read(deadline)
    }

    #[inline]
    fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, S>>>> {
        self.enter_to_read(Time::MAX)
    }

    #[inline]
    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WriteGuard<'_, S>>> {
        self.enter_to_write(deadline)
    }

    #[inline]
    fn try_write(&self) -> impl Future<Output = Result<Option<WriteGuard<'_, S>>>> {
        self.enter_to_write(Time::MAX)
    }
}

impl<S: Scheme> CountedLock<S> {
    #[inline(always)]
    fn enter_to_read<'a, Held>(&'a self, deadline: Time) -> impl Future<Output = Result<Held>>
    where
        Held: Admitted<ReadGuard<'a, S>>,
    {
        fast_path(Read::new(self, deadline), |call| read_rest(self, call))
    }

    #[inline(always)]
    fn enter_to_write<'a, Held>(&'a self, deadline: Time) -> impl Future<Output = Result<Held>>
    where
        Held: Admitted<WriteGuard<'a, S>>,
    {
        fast_path(Write::new(self, deadline), |call| write_rest(self, call))
    }
}
