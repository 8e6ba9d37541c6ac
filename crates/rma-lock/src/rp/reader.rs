//! Readers: one atomic in, one atomic out, unless a writer is about.

use super::{
    Core, NodeId, NotOver, Posting, READER, RpLock, WRITER_ACTIVE, WRITER_INTERESTED,
    layout::Part,
    not_over,
    owed::{InFlight, Owed, Quit},
    publish::Step,
    settle::Duties,
    shortcut::{Try, shortcut},
};
use crate::{LockError, ReadGuard, Result, error::Trouble};
use core::{future::Future, mem};
use rdma_fabric::{Amo, Fabric, Time};
use std::sync::Arc;

const COUNT_ME: Amo<u64> = Amo::Add(READER);
const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());

/// The count that the last reader finds at U1 if a writer waits for it.
const LAST: u64 = READER + WRITER_INTERESTED;

struct Enter<'a, F: Fabric>(&'a RpLock<F>);

impl<'a, F: Fabric> Try for Enter<'a, F> {
    type Out = Result<ReadGuard<'a, F>>;
    type Stage = NotOver<F>;

    #[inline(always)]
    fn now(self) -> Result<Self::Out, NotOver<F>> {
        self.0.core.count_me()?;
        Ok(Ok(ReadGuard::new(self.0)))
    }
}

struct TryEnter<'a, F: Fabric>(&'a RpLock<F>);

impl<'a, F: Fabric> Try for TryEnter<'a, F> {
    type Out = Result<Option<ReadGuard<'a, F>>>;
    type Stage = NotOver<F>;

    #[inline(always)]
    fn now(self) -> Result<Self::Out, NotOver<F>> {
        self.0.core.count_me()?;
        Ok(Ok(Some(ReadGuard::new(self.0))))
    }
}

/// U1, whose guard is still armed if it was not posted.
pub(crate) struct Leave<'a, F: Fabric>(pub(crate) ReadGuard<'a, F>);

impl<'a, F: Fabric> Try for Leave<'a, F> {
    type Out = Result<()>;
    type Stage = (ReadGuard<'a, F>, NotOver<F>);

    #[inline(always)]
    fn now(self) -> Result<Self::Out, Self::Stage> {
        match self.0.lock().core.uncount_me() {
            Ok(()) => {
                mem::forget(self.0);
                Ok(Ok(()))
            }
            Err(exit) => Err((self.0, exit)),
        }
    }
}

impl<F: Fabric> RpLock<F> {
    /// Take the lock shared.
    ///
    /// What earlier writers put is visible to gets posted afterwards. Without a writer inside this is 1
    /// remote atomic.
    ///
    /// Dropping the future takes back what it has done: a reader that waits is uncounted by whoever would have woken it, at the cost of
    /// 1 atomic on own memory now; one that is counted, or let in, uncounts itself in the background.
    ///
    /// # Errors
    /// [`LockError::Fabric`]; [`LockError::TooManyWaiting`]; [`LockError::Broken`] if an earlier call failed half-way. The loss of any
    /// rank ends a wait with [`rdma_fabric::FabricError::PeerLost`]; nothing is left to undo then.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard<'_, F>>> {
        self.read_before(Time::MAX)
    }

    /// Take the lock shared, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would have woken
    /// this rank takes its reader off the count. Dropping the future does the same.
    ///
    /// # Errors
    /// As [`RpLock::read`], and [`LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, F>>> {
        shortcut(Enter(self), move |entry| async move {
            if !self.count_me_later(entry).await? {
                Owed::new(&self.core, |core, quit| wait_as_reader(core, deadline, quit)).await?;
            }
            Ok(ReadGuard::new(self))
        })
    }

    /// Take the lock shared if no writer is inside. 1 remote atomic if so, 2 or more if not. Dropping the future takes back what it
    /// has done.
    ///
    /// # Errors
    /// As [`RpLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, F>>>> {
        shortcut(TryEnter(self), move |entry| async move {
            if !self.count_me_later(entry).await? {
                let withdrawn =
                    Owed::new(&self.core, |core, _| async move { core.answer(core.withdraw_reader().await) });
                return withdrawn.await.map(|()| None);
            }
            Ok(Some(ReadGuard::new(self)))
        })
    }

    /// R1 from `entry` on. True if no writer is inside, and so am I.
    async fn count_me_later(&self, entry: NotOver<F>) -> Result<bool> {
        let core = &self.core;
        let old = match entry.map(|posting| *posting) {
            Some(Posting::Over(result)) => result.map_err(|error| core.broke(error.into()))?,
            Some(Posting::InFlight(posted)) => InFlight::new(core, posted, forget_me).await?,
            None => {
                core.check()?;
                let posted = core.post(Step::READER_ARRIVES, &core.count, COUNT_ME).await?;
                InFlight::new(core, posted, forget_me).await?
            }
        };
        if old & WRITER_ACTIVE != 0 {
            return Ok(false);
        }
        core.publish(Step::READER_ENTERS).map_err(|error| core.broke(error.into()))?;
        Ok(true)
    }

    /// U1 from `exit` on. Dropped before U1 is posted, the guard does it all in the background.
    pub(crate) async fn uncount_me_later(guard: ReadGuard<'_, F>, exit: NotOver<F>) -> Result<()> {
        let core = &guard.lock().core;
        let mut flushed = Ok(());
        let posting = match exit {
            Some(posting) => *posting,
            None => {
                flushed = core.flush_data().await;
                Posting::InFlight(core.post(Step::READER_LEAVES, &core.count, UNCOUNT_ME).await?)
            }
        };
        mem::forget(guard);
        let old = match posting {
            Posting::InFlight(posted) => InFlight::new(core, posted, finish_leaving).await?,
            Posting::Over(result) => result.map_err(|error| core.broke(error.into()))?,
        };
        core.publish(Step::READER_IS_GONE).map_err(|error| core.broke(error.into()))?;
        if old == LAST {
            Owed::new(core, |core, _| async move { core.answer(core.after_uncounting(old).await) }).await?;
        }
        flushed
    }

    /// Release a shared hold that nobody will.
    pub(crate) fn release_read_unawaited(&self) {
        let core = self.core.clone();
        self.core.fabric.detach(async move {
            let _ = core.flush_data().await;
            let posted = match core.post(Step::READER_LEAVES, &core.count, UNCOUNT_ME).await {
                Ok(posted) => posted,
                Err(error) => return drop(core.broke(error.into())),
            };
            let _ = core.answer(core.uncounted(posted).await);
        });
    }
}

/// R1 was posted by a future that is dropped.
#[cold]
fn forget_me<F: Fabric>(core: &Arc<Core<F>>, posted: F::Handle<u64>) {
    let owner = core.clone();
    core.fabric.detach(async move {
        let counted = async {
            posted.await?;
            owner.withdraw_reader().await
        };
        let _ = owner.answer(counted.await);
    });
}

/// U1 was posted by a future that is dropped.
#[cold]
fn finish_leaving<F: Fabric>(core: &Arc<Core<F>>, posted: F::Handle<u64>) {
    let owner = core.clone();
    core.fabric.detach(async move { drop(owner.answer(owner.uncounted(posted).await)) });
}

/// R2–R7, after R1 met a writer.
async fn wait_as_reader<F: Fabric>(core: Arc<Core<F>>, deadline: Time, quit: Quit) -> Result<()> {
    core.answer(core.queue_as_reader(deadline, &quit).await)
}

impl<F: Fabric> Core<F> {
    /// R1 as far as nothing has to be waited for: counted, and inside.
    #[inline(always)]
    fn count_me(&self) -> Result<(), NotOver<F>> {
        if !self.is_fast() || self.broken.get().is_some() {
            return Err(None);
        }
        let old = self.announced_now(Step::READER_ARRIVES, &self.count, COUNT_ME)?;
        if old & WRITER_ACTIVE == 0 && self.publish(Step::READER_ENTERS).is_ok() {
            return Ok(());
        }
        Err(not_over(Posting::Over(Ok(old))))
    }

    /// U1 as far as nothing has to be waited for.
    #[inline(always)]
    pub(crate) fn uncount_me(&self) -> Result<(), NotOver<F>> {
        if !self.is_fast() {
            return Err(None);
        }
        let old = self.announced_now(Step::READER_LEAVES, &self.count, UNCOUNT_ME)?;
        if old != LAST && self.publish(Step::READER_IS_GONE).is_ok() {
            return Ok(());
        }
        Err(not_over(Posting::Over(Ok(old))))
    }

    async fn uncounted(&self, posted: F::Handle<u64>) -> Result<(), Trouble> {
        let old = posted.await?;
        self.publish(Step::READER_IS_GONE)?;
        self.after_uncounting(old).await
    }

    /// Take an announced reader back.
    async fn withdraw_reader(&self) -> Result<(), Trouble> {
        let old = self.fabric.atomic(&self.count, UNCOUNT_ME).await?; // U1
        self.publish(Step::READER_GIVES_UP)?;
        self.after_uncounting(old).await
    }

    async fn queue_as_reader(&self, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let own = match self.take_fresh_node() {
            Some(own) => own,
            None => match self.take_node(deadline, quit).await {
                Ok(own) => own, // R2
                Err(Trouble::GaveUp(error)) => {
                    self.withdraw_reader().await?;
                    return Err(Trouble::GaveUp(error));
                }
                Err(broken) => return Err(broken),
            },
        };
        let id = own.id;
        // R3: onto the stack. Only the owner, or whoever finds it abandoned, reads its next.
        let below = self.fabric.swap(&self.readers, id.bits()).await?;
        let next = self.decode("readers", below)?;
        if next.is_some() {
            self.fabric.store(self.own(id.slot(), Part::Next)?, below)?;
        }
        // R4: the writer may have left between R1 and R3 without seeing me.
        if self.fabric.get_word(&self.count).await? & WRITER_ACTIVE == 0 {
            // R5: whoever is there may enter; it may be me.
            let top = self.fabric.swap(&self.readers, 0).await?;
            if let Some(top) = self.decode("readers", top)? {
                self.settle(Duties { reader: Some(top), ..Duties::default() }).await?;
            }
        }
        // R6. Given up, the node stays on the stack; its waker will make it ready again.
        let woken = self.wait_to_be_woken(&own, deadline, quit).await;
        if let Err(Trouble::GaveUp(_)) = woken {
            self.publish(Step::READER_GIVES_UP)?;
        }
        woken?;
        self.publish(Step::READER_ENTERS)?;
        self.retire(id).await?;
        drop(own);
        // R7
        if next.is_some() {
            self.settle(Duties { reader: next, ..Duties::default() }).await?;
        }
        if quit.is_set() {
            let left = self.post(Step::READER_LEAVES, &self.count, UNCOUNT_ME).await?;
            self.uncounted(left).await?;
            return Err(Trouble::GaveUp(Quit::REASON));
        }
        Ok(())
    }

    /// U1 for somebody else, U2, U3. Yields the writer to be let in, if this was the last reader.
    pub(super) async fn reader_leaves(&self) -> Result<Option<NodeId>, Trouble> {
        match self.fabric.atomic(&self.count, UNCOUNT_ME).await? {
            LAST => self.let_writer_in().await,
            _ => Ok(None),
        }
    }

    /// U2–U4, if the count was `old` before U1.
    #[inline]
    async fn after_uncounting(&self, old: u64) -> Result<(), Trouble> {
        if old == READER + WRITER_INTERESTED
            && let Some(writer) = self.let_writer_in().await?
        {
            self.settle(Duties { writer: Some(writer), ..Duties::default() }).await?;
        }
        Ok(())
    }

    /// U2, U3; X7: turn interest into activity. Fails if a reader came in, who will then do it. The head is read *after* the
    /// swap: it has no identity, and may have succeeded for a later writer than the one seen before.
    pub(super) async fn let_writer_in(&self) -> Result<Option<NodeId>, Trouble> {
        let old = self.fabric.compare_swap(&self.count, WRITER_INTERESTED, WRITER_ACTIVE).await?;
        if old != WRITER_INTERESTED {
            return Ok(None);
        }
        let [head] = self.fabric.get(&self.head, [0]).await?;
        match self.decode("head", head)? {
            Some(writer) => Ok(Some(writer)),
            None => Err(Trouble::Broken(LockError::corrupt("head", 0))),
        }
    }
}
