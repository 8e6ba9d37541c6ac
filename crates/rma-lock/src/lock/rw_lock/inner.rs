//! The parts of a [`RwLock`]: a lock of one kind, and the code paths to it.
//!
//! The first attempt for the default policy's lock is made in the caller, and its guard is stored
//! in place, which keeps it in registers. All other kinds are called out of line, and their guards
//! are boxed.

use super::{RwLock, RwLockReadGuard, RwLockWriteGuard};
use crate::{
    Guard, Lock, Result, RmaLock,
    lock::{
        boxed::{boxed, poll_or_box, wrapped},
        counted::{Leave, Read, Write, read_rest, write_rest},
    },
    locks::{
        Aggregated, BackOffLock, Barging, BargingLock, FairLock, IndicatorLock, PackedLock, ReadGuard, RecoverableLock,
        RpLock, WindowLock, WriteGuard, WritersFirstLock,
    },
};
use core::{fmt, task::Context};
use rdma_fabric::{Fabric, Rank, Time, fast_path::FastPath, provider::Boxed};

#[derive(Debug)]
pub(super) enum Reading<'a> {
    Default(ReadGuard<'a, Barging>),
    Other(Box<OtherReading<'a>>),
}

#[derive(Debug)]
pub(super) enum Writing<'a> {
    Default(WriteGuard<'a, Barging>),
    Other(Box<OtherWriting<'a>>),
}

/// Defines the kinds of lock: the lock of the default policy, and the others that are given.
macro_rules! kinds {
    ($($other:ident: $lock:ty;)*) => {
        #[derive(Clone)]
        pub(super) enum Inner {
            Barging(BargingLock),
            $($other($lock),)*
        }

        impl From<BargingLock> for Inner {
            fn from(lock: BargingLock) -> Self {
                Inner::Barging(lock)
            }
        }

        $(impl From<$lock> for Inner {
            fn from(lock: $lock) -> Self {
                Inner::$other(lock)
            }
        })*

        #[derive(Debug)]
        pub(super) enum OtherReading<'a> {
            $($other(<$lock as RmaLock>::Shared<'a>),)*
        }

        #[derive(Debug)]
        pub(super) enum OtherWriting<'a> {
            $($other(<$lock as RmaLock>::Exclusive<'a>),)*
        }

        impl fmt::Debug for RwLock {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                match &self.inner {
                    Inner::Barging(lock) => lock.fmt(f),
                    $(Inner::$other(lock) => lock.fmt(f),)*
                }
            }
        }

        impl RwLock {
            /// Returns the rank whose memory holds the lock words.
            pub fn home(&self) -> Rank {
                match &self.inner {
                    Inner::Barging(lock) => lock.home(),
                    $(Inner::$other(lock) => lock.home(),)*
                }
            }

            /// Returns the fabric of the lock.
            pub fn fabric(&self) -> &Fabric {
                match &self.inner {
                    Inner::Barging(lock) => lock.fabric(),
                    $(Inner::$other(lock) => lock.fabric(),)*
                }
            }

            /// Polls [`RwLock::read_before`]; out of line.
            #[inline(never)]
            fn poll_read(&self, deadline: Time, cx: &mut Context<'_>) -> FirstPoll<'_, Result<RwLockReadGuard<'_>>> {
                match &self.inner {
                    Inner::Barging(lock) => poll_or_box(wrapped(RmaLock::read_before(lock, deadline), read_guard), cx),
                    $(Inner::$other(lock) => {
                        let boxed = |guard| RwLockReadGuard(Reading::Other(Box::new(OtherReading::$other(guard))));
                        poll_or_box(wrapped(RmaLock::read_before(lock, deadline), boxed), cx)
                    })*
                }
            }

            /// Polls [`RwLock::write_before`]; out of line.
            #[inline(never)]
            fn poll_write(&self, deadline: Time, cx: &mut Context<'_>) -> FirstPoll<'_, Result<RwLockWriteGuard<'_>>> {
                match &self.inner {
                    Inner::Barging(lock) => poll_or_box(wrapped(RmaLock::write_before(lock, deadline), write_guard), cx),
                    $(Inner::$other(lock) => {
                        let boxed = |guard| RwLockWriteGuard(Writing::Other(Box::new(OtherWriting::$other(guard))));
                        poll_or_box(wrapped(RmaLock::write_before(lock, deadline), boxed), cx)
                    })*
                }
            }

            /// Polls [`RwLock::try_read`]; out of line.
            #[inline(never)]
            fn poll_try_read(&self, cx: &mut Context<'_>) -> FirstPoll<'_, Result<Option<RwLockReadGuard<'_>>>> {
                match &self.inner {
                    Inner::Barging(lock) => {
                        poll_or_box(wrapped(RmaLock::try_read(lock), maybe_read_guard), cx)
                    }
                    $(Inner::$other(lock) => {
                        let boxed = |guard| RwLockReadGuard(Reading::Other(Box::new(OtherReading::$other(guard))));
                        poll_or_box(wrapped(RmaLock::try_read(lock), move |guard| guard.map(boxed)), cx)
                    })*
                }
            }

            /// Polls [`RwLock::try_write`]; out of line.
            #[inline(never)]
            fn poll_try_write(&self, cx: &mut Context<'_>) -> FirstPoll<'_, Result<Option<RwLockWriteGuard<'_>>>> {
                match &self.inner {
                    Inner::Barging(lock) => {
                        poll_or_box(wrapped(RmaLock::try_write(lock), maybe_write_guard), cx)
                    }
                    $(Inner::$other(lock) => {
                        let boxed = |guard| RwLockWriteGuard(Writing::Other(Box::new(OtherWriting::$other(guard))));
                        poll_or_box(wrapped(RmaLock::try_write(lock), move |guard| guard.map(boxed)), cx)
                    })*
                }
            }
        }

        impl<'a> OtherReading<'a> {
            #[inline(never)]
            fn poll_release(self, cx: &mut Context<'_>) -> FirstPoll<'a, Result<()>> {
                match self {
                    $(OtherReading::$other(guard) => poll_or_box(Guard::release(guard), cx),)*
                }
            }
        }

        impl<'a> OtherWriting<'a> {
            #[inline(never)]
            fn poll_release(self, cx: &mut Context<'_>) -> FirstPoll<'a, Result<()>> {
                match self {
                    $(OtherWriting::$other(guard) => poll_or_box(Guard::release(guard), cx),)*
                }
            }
        }
    };
}

kinds! {
    ReaderPreference: RpLock;
    Packed: PackedLock;
    WritersFirst: WritersFirstLock;
    Fair: FairLock;
    BackOff: BackOffLock;
    TwoLevels: WindowLock;
    ByNode: Aggregated<RpLock>;
    ByNodeBackOff: Aggregated<BackOffLock>;
    Indicator: IndicatorLock<RpLock>;
    Recoverable: RecoverableLock;
}

fn read_guard(guard: ReadGuard<'_, Barging>) -> RwLockReadGuard<'_> {
    RwLockReadGuard(Reading::Default(guard))
}

fn write_guard(guard: WriteGuard<'_, Barging>) -> RwLockWriteGuard<'_> {
    RwLockWriteGuard(Writing::Default(guard))
}

fn maybe_read_guard(guard: Option<ReadGuard<'_, Barging>>) -> Option<RwLockReadGuard<'_>> {
    guard.map(read_guard)
}

fn maybe_write_guard(guard: Option<WriteGuard<'_, Barging>>) -> Option<RwLockWriteGuard<'_>> {
    guard.map(write_guard)
}

/// The outcome of a first poll: the result, or the boxed rest.
type FirstPoll<'a, Out> = core::result::Result<Out, Boxed<'a, Out>>;

/// Defines a [`FastPath`] of two parts: the attempt for a lock of the default policy, which is
/// inlined into the caller, and a function for all locks, which is not.
macro_rules! fast_path {
    ($name:ident($($field:ty),*) -> $out:ty, |$path:ident, $cx:ident| $tried:expr) => {
        pub(super) struct $name<'a>($(pub(super) $field),*);

        impl<'a> FastPath for $name<'a> {
            type Out = Result<$out>;
            type Stage = Boxed<'a, Result<$out>>;

            #[inline(always)]
            fn fast(self, $cx: &mut Context<'_>) -> FirstPoll<'a, Result<$out>> {
                let $path = self;
                $tried
            }
        }
    };
}

/// The result of a release.
fn nothing<T>(_: T) {}

/// Matches a result and rebuilds it, so that a guard that is available immediately stays in
/// registers.
macro_rules! rebuilt {
    ($fast_result:expr, $wrap:expr, $rest:expr) => {
        match $fast_result {
            Ok(Ok(out)) => Ok(Ok($wrap(out))),
            Ok(Err(error)) => Ok(Err(error)),
            Err(call) => Err(boxed(wrapped($rest(call), $wrap))),
        }
    };
}

fast_path!(ReadPath(&'a RwLock, Time) -> RwLockReadGuard<'a>, |path, cx| match &path.0.inner {
    Inner::Barging(lock) => {
        let first = Read::<_, ReadGuard<'a, Barging>>::new(lock, path.1);
        rebuilt!(first.fast(cx), read_guard, |call| read_rest(lock, call))
    }
    _ => path.0.poll_read(path.1, cx),
});

fast_path!(WritePath(&'a RwLock, Time) -> RwLockWriteGuard<'a>, |path, cx| match &path.0.inner {
    Inner::Barging(lock) => {
        let first = Write::<_, WriteGuard<'a, Barging>>::new(lock, path.1);
        rebuilt!(first.fast(cx), write_guard, |call| write_rest(lock, call))
    }
    _ => path.0.poll_write(path.1, cx),
});

fast_path!(TryReadPath(&'a RwLock) -> Option<RwLockReadGuard<'a>>, |path, cx| match &path.0.inner {
    Inner::Barging(lock) => {
        let first = Read::<_, Option<ReadGuard<'a, Barging>>>::new(lock, Time::MAX);
        rebuilt!(first.fast(cx), maybe_read_guard, |call| read_rest(lock, call))
    }
    _ => path.0.poll_try_read(cx),
});

fast_path!(TryWritePath(&'a RwLock) -> Option<RwLockWriteGuard<'a>>, |path, cx| match &path.0.inner {
    Inner::Barging(lock) => {
        let first = Write::<_, Option<WriteGuard<'a, Barging>>>::new(lock, Time::MAX);
        rebuilt!(first.fast(cx), maybe_write_guard, |call| write_rest(lock, call))
    }
    _ => path.0.poll_try_write(cx),
});

fast_path!(ReadReleasePath(Reading<'a>) -> (), |path, cx| match path.0 {
    Reading::Default(guard) => rebuilt!(Leave(guard).fast(cx), nothing, |call| call),
    Reading::Other(guard) => guard.poll_release(cx),
});

fast_path!(WriteReleasePath(Writing<'a>) -> (), |path, cx| match path.0 {
    Writing::Default(guard) => rebuilt!(Leave(guard).fast(cx), nothing, |call| call),
    Writing::Other(guard) => guard.poll_release(cx),
});
