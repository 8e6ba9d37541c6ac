//! Readers: one atomic in, one atomic out, unless a writer is present.

use super::{
    CountedLock, Scheme, Started,
    awaited::{Arrival, AwaitedAtomic, Departure, Dropped},
    guard::ReadGuard,
    reader_wait::wait_as_reader,
    scheme::READER,
};
use crate::{
    Result,
    detach::DetachOnDrop,
    in_place::{Attempt, FastPath, in_place},
    queue::{Lane, Transition},
};
use core::{
    future::Future,
    marker::PhantomData,
    mem,
    pin::{Pin, pin},
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Time};

pub(super) const COUNT_ME: Amo<u64> = Amo::Add(READER);
pub(super) const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());

/// R1, for a `Held` that is a guard or may be one.
struct ReadNow<'a, S: Scheme, Held>(&'a CountedLock<S>, PhantomData<fn() -> Held>);

/// R1, posted.
struct ArrivalPosted<'a, S: Scheme, Held>(AwaitedAtomic<'a, S, Arrival>, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: From<ReadGuard<'a, S>>> FastPath for ReadNow<'a, S, Held> {
    type Out = Result<Held>;
    type Posted = ArrivalPosted<'a, S, Held>;
    type Stage = ReadEntry;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Attempt<Self> {
        let (lock, core) = (self.0, &self.0.core);
        if !core.broken.is_whole() {
            return Attempt::NotDone(ReadEntry::Outside);
        }
        let lane = core.published.lane();
        let old = match core.begin(lane, Transition::READER_ARRIVES, &core.count, COUNT_ME) {
            Started::Done(old) => old,
            Started::Refused => return Attempt::NotDone(ReadEntry::Outside),
            Started::Posted(mut posted) => match Pin::new(&mut posted).poll(cx) {
                Poll::Pending => return Attempt::Posted(ArrivalPosted(AwaitedAtomic::new(lock, posted), PhantomData)),
                Poll::Ready(Ok(old)) => old,
                Poll::Ready(Err(error)) => return Attempt::Done(Err(core.broken.by_fabric(error))),
            },
        };
        match lock.enter(lane, old) {
            Ok(held) => Attempt::Done(held),
            Err(entry) => Attempt::NotDone(entry),
        }
    }
}

impl<'a, S: Scheme, Held: From<ReadGuard<'a, S>>> Future for ArrivalPosted<'a, S, Held> {
    type Output = Result<Result<Held>, ReadEntry>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = self.0.lock();
        Pin::new(&mut self.0).poll(cx).map(|old| match old {
            Ok(old) => lock.enter(lock.core.published.lane(), old),
            Err(error) => Ok(Err(error)),
        })
    }
}

/// The state of an acquisition that is not complete yet.
#[derive(Debug)]
pub enum ReadEntry {
    /// R1 was not posted.
    Outside,
    /// R1 found this word, with a writer or too many readers in it.
    Counted(u64),
}

/// Returns the acquisition's state. This is a call, so that the word need not be kept in memory
/// where nobody is in the way.
#[cold]
#[inline(never)]
fn counted(old: u64) -> ReadEntry {
    ReadEntry::Counted(old)
}

/// U1.
pub(crate) struct ReleaseRead<'a, S: Scheme>(pub(crate) ReadGuard<'a, S>);

/// U1, posted.
pub(crate) struct DeparturePosted<'a, S: Scheme>(AwaitedAtomic<'a, S, Departure>);

impl<'a, S: Scheme> FastPath for ReleaseRead<'a, S> {
    type Out = Result<()>;
    type Posted = DeparturePosted<'a, S>;
    type Stage = ReadExit<'a, S>;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Attempt<Self> {
        let ReleaseRead(guard) = self;
        let (lock, core) = (guard.lock(), &guard.lock().core);
        if !core.ordered_everywhere {
            // A flush that has to wait starts again with the rest.
            match pin!(core.fabric.flush_all()).poll(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Attempt::NotDone(ReadExit::Inside(guard, Some(Err(error.into())))),
                Poll::Pending => return Attempt::NotDone(ReadExit::Inside(guard, None)),
            }
        }
        let lane = core.published.lane();
        let old = match core.begin(lane, Transition::READER_LEAVES, &core.count, UNCOUNT_ME) {
            Started::Done(old) => {
                mem::forget(guard);
                old
            }
            Started::Refused => return Attempt::NotDone(ReadExit::Inside(guard, Some(Ok(())))),
            Started::Posted(mut posted) => {
                mem::forget(guard);
                match Pin::new(&mut posted).poll(cx) {
                    Poll::Pending => return Attempt::Posted(DeparturePosted(AwaitedAtomic::new(lock, posted))),
                    Poll::Ready(Ok(old)) => old,
                    Poll::Ready(Err(error)) => return Attempt::Done(Err(core.broken.by_fabric(error))),
                }
            }
        };
        match lock.leave(lane, old) {
            Ok(left) => Attempt::Done(left),
            Err(exit) => Attempt::NotDone(exit),
        }
    }
}

impl<'a, S: Scheme> Future for DeparturePosted<'a, S> {
    type Output = Result<Result<()>, ReadExit<'a, S>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = self.0.lock();
        Pin::new(&mut self.0).poll(cx).map(|old| match old {
            Ok(old) => lock.leave(lock.core.published.lane(), old),
            Err(error) => Ok(Err(error)),
        })
    }
}

/// The state of a release that is not complete yet.
#[derive(Debug)]
pub enum ReadExit<'a, S: Scheme> {
    /// U1 was not posted, and the guard is armed. Holds the flush's outcome, if the flush is
    /// complete.
    Inside(ReadGuard<'a, S>, Option<Result<()>>),
    /// Uncounted, as the last reader before a writer; holds what U1 found.
    Last(&'a CountedLock<S>, u64),
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
        in_place(ReadNow(self, PhantomData), move |entry| S::read_later(self, entry, deadline))
    }

    /// Takes the lock shared if no writer is in the way. Costs 1 remote atomic on success,
    /// otherwise 2 or more. Dropping the future undoes what it has done.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, S>>>> {
        in_place(ReadNow(self, PhantomData), move |entry| S::try_read_later(self, entry))
    }

    /// Continues [`CountedLock::read_before`] from `entry` on.
    pub(super) async fn wait_to_read(&self, entry: ReadEntry, deadline: Time) -> Result<ReadGuard<'_, S>> {
        if !self.count_me_later(entry).await? {
            DetachOnDrop::new(&self.core, |core, cancelled| wait_as_reader(core, deadline, cancelled)).await?;
        }
        Ok(ReadGuard::new(self))
    }

    /// Continues [`CountedLock::try_read`] from `entry` on.
    pub(super) async fn read_or_withdraw(&self, entry: ReadEntry) -> Result<Option<ReadGuard<'_, S>>> {
        if !self.count_me_later(entry).await? {
            let withdrawn =
                DetachOnDrop::new(
                    &self.core,
                    |core, _| async move { core.broken.answer(core.withdraw_reader().await) },
                );
            return withdrawn.await.map(|()| None);
        }
        Ok(Some(ReadGuard::new(self)))
    }

    /// Enters if `old`, the result of R1, allows it.
    #[inline(always)]
    fn enter<'a, Held: From<ReadGuard<'a, S>>>(&'a self, lane: Lane, old: u64) -> Result<Result<Held>, ReadEntry> {
        if old & (S::KEEPS_OUT | S::OVER_LIMIT) != 0 {
            return Err(counted(old));
        }
        Ok(match self.core.publish_in(lane, Transition::READER_ENTERS) {
            Ok(()) => Ok(ReadGuard::new(self).into()),
            Err(error) => Err(self.core.broken.by_fabric(error)),
        })
    }

    /// Leaves when U1 has found `old`.
    #[inline(always)]
    fn leave(&self, lane: Lane, old: u64) -> Result<Result<()>, ReadExit<'_, S>> {
        match self.core.publish_in(lane, Transition::READER_IS_GONE) {
            Ok(()) if S::is_last(old) => Err(ReadExit::Last(self, old)),
            Ok(()) => Ok(Ok(())),
            Err(error) => Ok(Err(self.core.broken.by_fabric(error))),
        }
    }

    /// R1 from `entry` on. Returns true if no writer is inside, and therefore this reader is.
    async fn count_me_later(&self, entry: ReadEntry) -> Result<bool> {
        let core = &self.core;
        let old = match entry {
            ReadEntry::Counted(old) => old,
            ReadEntry::Outside => {
                core.broken.check()?;
                let posted = core.post(Transition::READER_ARRIVES, &core.count, COUNT_ME).await?;
                AwaitedAtomic::<_, Arrival>::new(self, posted).await?
            }
        };
        if old & S::OVER_LIMIT != 0 {
            DetachOnDrop::new(core, |core, _| async move { core.broken.answer(core.refuse_reader(old).await) }).await?;
        }
        if old & S::KEEPS_OUT == 0 {
            core.publish(Transition::READER_ENTERS).map_err(|error| core.broken.by_fabric(error))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// U1 from `exit` on. If it is dropped before U1 is posted, the guard does it all in the
    /// background.
    pub(crate) async fn uncount_me_later(exit: ReadExit<'_, S>) -> Result<()> {
        let (lock, old, flushed) = match exit {
            ReadExit::Last(lock, old) => (lock, old, Ok(())),
            ReadExit::Inside(guard, flushed) => {
                let (lock, core) = (guard.lock(), &guard.lock().core);
                let flushed = match flushed {
                    Some(flushed) => flushed,
                    None => core.flush_data().await,
                };
                let posted = core.post(Transition::READER_LEAVES, &core.count, UNCOUNT_ME).await?;
                mem::forget(guard);
                let old = AwaitedAtomic::<_, Departure>::new(lock, posted).await?;
                core.publish(Transition::READER_IS_GONE).map_err(|error| core.broken.by_fabric(error))?;
                if !S::is_last(old) {
                    return flushed;
                }
                (lock, old, flushed)
            }
        };
        DetachOnDrop::new(&lock.core, |core, _| async move { core.broken.answer(core.after_uncounting(old).await) })
            .await?;
        flushed
    }

    /// Releases a shared hold that nobody else will release: as far as possible at once, and the
    /// rest in the background.
    pub(crate) fn release_read_unawaited(&self) {
        if self.core.ordered_everywhere {
            let lane = self.core.published.lane();
            match self.core.begin(lane, Transition::READER_LEAVES, &self.core.count, UNCOUNT_ME) {
                Started::Done(old) => {
                    if let Err(ReadExit::Last(..)) = self.leave(lane, old) {
                        S::wake_unawaited(&self.core, old);
                    }
                    return;
                }
                Started::Posted(posted) => return Departure::dropped(&self.core, posted),
                Started::Refused => {}
            }
        }
        S::release_read_unawaited(&self.core);
    }
}
