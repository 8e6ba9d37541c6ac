//! Readers: one atomic in, one atomic out, unless a writer is about.

use super::{
    Begun, Core, CountedLock, Scheme,
    in_flight::{Dropped, InFlight},
    scheme::{READER, READERS_WAIT},
    settle::Duties,
};
use crate::{
    LockError, ReadGuard, Result, crowd,
    error::Trouble,
    owed::{Owed, Quit},
    queue::{Lane, NodeId, Part, Step},
    shortcut::{Now, Try, shortcut},
};
use core::{
    future::Future,
    marker::PhantomData,
    mem,
    pin::{Pin, pin},
    task::{Context, Poll},
};
use rdma_fabric::{Amo, Handle, Time};
use std::sync::Arc;

const COUNT_ME: Amo<u64> = Amo::Add(READER);
const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());

/// R1, for a `Held` that is a guard or may be one.
struct Enter<'a, S: Scheme, Held>(&'a CountedLock<S>, PhantomData<fn() -> Held>);

/// R1, posted.
struct Entering<'a, S: Scheme, Held>(InFlight<'a, S, Arrival>, PhantomData<fn() -> Held>);

impl<'a, S: Scheme, Held: From<ReadGuard<'a, S>>> Try for Enter<'a, S, Held> {
    type Out = Result<Held>;
    type Posted = Entering<'a, S, Held>;
    type Stage = Entry;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let (lock, core) = (self.0, &self.0.core);
        if !core.is_whole() {
            return Now::Stuck(Entry::Outside);
        }
        let lane = core.published.lane();
        let old = match core.begin(lane, Step::READER_ARRIVES, &core.count, COUNT_ME) {
            Begun::Over(old) => old,
            Begun::Refused => return Now::Stuck(Entry::Outside),
            Begun::Posted(mut posted) => match Pin::new(&mut posted).poll(cx) {
                Poll::Pending => return Now::Posted(Entering(InFlight::new(lock, posted), PhantomData)),
                Poll::Ready(Ok(old)) => old,
                Poll::Ready(Err(error)) => return Now::Over(Err(core.broke_by(error))),
            },
        };
        match lock.enter(lane, old) {
            Ok(held) => Now::Over(held),
            Err(entry) => Now::Stuck(entry),
        }
    }
}

impl<'a, S: Scheme, Held: From<ReadGuard<'a, S>>> Future for Entering<'a, S, Held> {
    type Output = Result<Result<Held>, Entry>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = self.0.lock();
        Pin::new(&mut self.0).poll(cx).map(|old| match old {
            Ok(old) => lock.enter(lock.core.published.lane(), old),
            Err(error) => Ok(Err(error)),
        })
    }
}

/// Where an acquisition stands that is not over yet.
#[derive(Debug)]
pub enum Entry {
    /// R1 was not posted.
    Outside,
    /// R1 met a writer, or too many readers, in this word.
    Counted(u64),
}

/// A call, so that the word need not be kept in memory where nobody is in the way.
#[cold]
#[inline(never)]
fn counted(old: u64) -> Entry {
    Entry::Counted(old)
}

/// U1.
pub(crate) struct Leave<'a, S: Scheme>(pub(crate) ReadGuard<'a, S>);

/// U1, posted.
pub(crate) struct Leaving<'a, S: Scheme>(InFlight<'a, S, Departure>);

impl<'a, S: Scheme> Try for Leave<'a, S> {
    type Out = Result<()>;
    type Posted = Leaving<'a, S>;
    type Stage = Exit<'a, S>;

    #[inline(always)]
    fn now(self, cx: &mut Context<'_>) -> Now<Self> {
        let Leave(guard) = self;
        let (lock, core) = (guard.lock(), &guard.lock().core);
        if !core.ordered_everywhere {
            // One that has to wait is begun again with the rest.
            match pin!(core.fabric.flush_all()).poll(cx) {
                Poll::Ready(Ok(())) => {}
                Poll::Ready(Err(error)) => return Now::Stuck(Exit::Inside(guard, Some(Err(error.into())))),
                Poll::Pending => return Now::Stuck(Exit::Inside(guard, None)),
            }
        }
        let lane = core.published.lane();
        let old = match core.begin(lane, Step::READER_LEAVES, &core.count, UNCOUNT_ME) {
            Begun::Over(old) => {
                mem::forget(guard);
                old
            }
            Begun::Refused => return Now::Stuck(Exit::Inside(guard, Some(Ok(())))),
            Begun::Posted(mut posted) => {
                mem::forget(guard);
                match Pin::new(&mut posted).poll(cx) {
                    Poll::Pending => return Now::Posted(Leaving(InFlight::new(lock, posted))),
                    Poll::Ready(Ok(old)) => old,
                    Poll::Ready(Err(error)) => return Now::Over(Err(core.broke_by(error))),
                }
            }
        };
        match lock.leave(lane, old) {
            Ok(left) => Now::Over(left),
            Err(exit) => Now::Stuck(exit),
        }
    }
}

impl<'a, S: Scheme> Future for Leaving<'a, S> {
    type Output = Result<Result<()>, Exit<'a, S>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let lock = self.0.lock();
        Pin::new(&mut self.0).poll(cx).map(|old| match old {
            Ok(old) => lock.leave(lock.core.published.lane(), old),
            Err(error) => Ok(Err(error)),
        })
    }
}

/// Where a release stands that is not over yet.
#[derive(Debug)]
pub enum Exit<'a, S: Scheme> {
    /// U1 was not posted, the guard is armed. What the flush met, if that is over.
    Inside(ReadGuard<'a, S>, Option<Result<()>>),
    /// Uncounted, the last reader before a writer; what U1 found.
    Last(&'a CountedLock<S>, u64),
}

impl<S: Scheme> CountedLock<S> {
    /// Take the lock shared.
    ///
    /// What earlier writers put is visible to gets posted afterwards. Without a writer in its way this is 1
    /// remote atomic.
    ///
    /// Dropping the future takes back what it has done: whoever would have woken a reader that waits finds its mark, and uncounts it if it is
    /// counted, at the cost of 1 atomic on own memory now; one that is about to wait, or let in, uncounts itself in the background.
    ///
    /// # Errors
    /// [`LockError::Fabric`]; [`LockError::TooManyWaiting`]; [`LockError::TooManyHolders`];
    /// [`LockError::Broken`] if an earlier call failed half-way. The loss of any rank ends a wait
    /// with [`rdma_fabric::FabricError::PeerLost`]; nothing is left to undo then.
    #[inline]
    pub fn read(&self) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        self.read_before(Time::MAX)
    }

    /// Take the lock shared, or give up at `deadline`. Giving up costs 1 atomic on own memory; whoever would have woken
    /// this rank takes its reader off the count. Dropping the future does the same.
    ///
    /// # Errors
    /// As [`CountedLock::read`], and [`LockError::TimedOut`].
    #[inline]
    pub fn read_before(&self, deadline: Time) -> impl Future<Output = Result<ReadGuard<'_, S>>> {
        shortcut(Enter(self, PhantomData), move |entry| S::read_later(self, entry, deadline))
    }

    /// Take the lock shared if no writer is in the way. 1 remote atomic if so, 2 or more if not. Dropping the future takes back what it
    /// has done.
    ///
    /// # Errors
    /// As [`CountedLock::read`].
    #[inline]
    pub fn try_read(&self) -> impl Future<Output = Result<Option<ReadGuard<'_, S>>>> {
        shortcut(Enter(self, PhantomData), move |entry| S::try_read_later(self, entry))
    }

    /// [`CountedLock::read_before`] from `entry` on.
    pub(super) async fn wait_to_read(&self, entry: Entry, deadline: Time) -> Result<ReadGuard<'_, S>> {
        if !self.count_me_later(entry).await? {
            Owed::new(&self.core, |core, quit| wait_as_reader(core, deadline, quit)).await?;
        }
        Ok(ReadGuard::new(self))
    }

    /// [`CountedLock::try_read`] from `entry` on.
    pub(super) async fn read_or_withdraw(&self, entry: Entry) -> Result<Option<ReadGuard<'_, S>>> {
        if !self.count_me_later(entry).await? {
            let withdrawn = Owed::new(&self.core, |core, _| async move { core.answer(core.withdraw_reader().await) });
            return withdrawn.await.map(|()| None);
        }
        Ok(Some(ReadGuard::new(self)))
    }

    /// The result of R1 is here.
    #[inline(always)]
    fn enter<'a, Held: From<ReadGuard<'a, S>>>(&'a self, lane: Lane, old: u64) -> Result<Result<Held>, Entry> {
        if old & (S::KEEPS_OUT | S::TOO_MANY) != 0 {
            return Err(counted(old));
        }
        Ok(match self.core.publish_in(lane, Step::READER_ENTERS) {
            Ok(()) => Ok(ReadGuard::new(self).into()),
            Err(error) => Err(self.core.broke_by(error)),
        })
    }

    /// The result of U1 is here.
    #[inline(always)]
    fn leave(&self, lane: Lane, old: u64) -> Result<Result<()>, Exit<'_, S>> {
        match self.core.publish_in(lane, Step::READER_IS_GONE) {
            Ok(()) if S::is_last(old) => Err(Exit::Last(self, old)),
            Ok(()) => Ok(Ok(())),
            Err(error) => Ok(Err(self.core.broke_by(error))),
        }
    }

    /// R1 from `entry` on. True if no writer is inside, and so am I.
    async fn count_me_later(&self, entry: Entry) -> Result<bool> {
        let core = &self.core;
        let old = match entry {
            Entry::Counted(old) => old,
            Entry::Outside => {
                core.check()?;
                let posted = core.post(Step::READER_ARRIVES, &core.count, COUNT_ME).await?;
                InFlight::<_, Arrival>::new(self, posted).await?
            }
        };
        if old & S::TOO_MANY != 0 {
            Owed::new(core, |core, _| async move { core.answer(core.refuse_reader(old).await) }).await?;
        }
        if old & S::KEEPS_OUT == 0 {
            core.publish(Step::READER_ENTERS).map_err(|error| core.broke_by(error))?;
            return Ok(true);
        }
        Ok(false)
    }

    /// U1 from `exit` on. Dropped before U1 is posted, the guard does it all in the background.
    pub(crate) async fn uncount_me_later(exit: Exit<'_, S>) -> Result<()> {
        let (lock, old, flushed) = match exit {
            Exit::Last(lock, old) => (lock, old, Ok(())),
            Exit::Inside(guard, flushed) => {
                let (lock, core) = (guard.lock(), &guard.lock().core);
                let flushed = match flushed {
                    Some(flushed) => flushed,
                    None => core.flush_data().await,
                };
                let posted = core.post(Step::READER_LEAVES, &core.count, UNCOUNT_ME).await?;
                mem::forget(guard);
                let old = InFlight::<_, Departure>::new(lock, posted).await?;
                core.publish(Step::READER_IS_GONE).map_err(|error| core.broke_by(error))?;
                if !S::is_last(old) {
                    return flushed;
                }
                (lock, old, flushed)
            }
        };
        Owed::new(&lock.core, |core, _| async move { core.answer(core.after_uncounting(old).await) }).await?;
        flushed
    }

    /// Release a shared hold that nobody will: at once as far as that is possible, the rest in the background.
    pub(crate) fn release_read_unawaited(&self) {
        if self.core.ordered_everywhere {
            let lane = self.core.published.lane();
            match self.core.begin(lane, Step::READER_LEAVES, &self.core.count, UNCOUNT_ME) {
                Begun::Over(old) => {
                    if let Err(Exit::Last(..)) = self.leave(lane, old) {
                        S::wake_unawaited(&self.core, old);
                    }
                    return;
                }
                Begun::Posted(posted) => return Departure::dropped(&self.core, posted),
                Begun::Refused => {}
            }
        }
        S::release_read_unawaited(&self.core);
    }
}

impl<S: Scheme> Core<S> {
    pub(super) fn detach_release(self: &Arc<Self>) {
        let core = self.clone();
        self.fabric.detach(async move {
            let _ = core.flush_data().await;
            let posted = match core.post(Step::READER_LEAVES, &core.count, UNCOUNT_ME).await {
                Ok(posted) => posted,
                Err(error) => return drop(core.broke(error.into())),
            };
            let _ = core.answer(core.uncounted(posted).await);
        });
    }

    pub(super) fn detach_wake(self: &Arc<Self>, old: u64) {
        let core = self.clone();
        self.fabric.detach(async move { drop(core.answer(core.after_uncounting(old).await)) });
    }

    pub(super) fn detach_withdrawal(self: &Arc<Self>, posted: Handle<u64>) {
        let core = self.clone();
        self.fabric.detach(async move {
            let counted = async {
                posted.await?;
                core.withdraw_reader().await
            };
            let _ = core.answer(counted.await);
        });
    }

    pub(super) fn detach_departure(self: &Arc<Self>, posted: Handle<u64>) {
        let core = self.clone();
        self.fabric.detach(async move { drop(core.answer(core.uncounted(posted).await)) });
    }
}

/// R1 was posted by a future that is dropped: the reader takes itself back.
struct Arrival;

impl Dropped for Arrival {
    #[cold]
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>) {
        S::withdraw_unawaited(core, posted);
    }
}

/// U1 was posted by a future that is dropped: the rest of the release.
struct Departure;

impl Dropped for Departure {
    #[cold]
    fn dropped<S: Scheme>(core: &Arc<Core<S>>, posted: Handle<u64>) {
        S::leave_unawaited(core, posted);
    }
}

/// R2–R7, after R1 met a writer.
async fn wait_as_reader<S: Scheme>(core: Arc<Core<S>>, deadline: Time, quit: Quit) -> Result<()> {
    let waited = if S::WAITS_COUNTED {
        core.wait_counted(deadline, &quit).await
    } else {
        core.wait_uncounted(deadline, &quit).await
    };
    core.answer(waited)
}

impl<S: Scheme> Core<S> {
    async fn uncounted(&self, posted: Handle<u64>) -> Result<(), Trouble> {
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

    /// R1 found too many readers in `old`: take an announced reader back, which may be the last one
    /// before a writer now.
    async fn refuse_reader(&self, old: u64) -> Result<(), Trouble> {
        self.withdraw_reader().await?;
        // There may be room in another epoch.
        Err(Trouble::GaveUp(if S::is_shut(old) { LockError::KeptOut } else { crowd::refusal() }))
    }

    async fn wait_counted(&self, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let own = match self.take_fresh_node(self.published.lane()) {
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
        let below = self.fabric.swap(&self.readers()?, id.bits()).await?;
        let next = self.decode("readers", below)?;
        if next.is_some() {
            self.fabric.store(self.own(id.slot(), Part::Next)?, below)?;
        }
        // R4: the writer may have left between R1 and R3 without seeing me.
        if self.fabric.get_word(&self.count).await? & S::HOLDS_UP == 0 {
            // R5: whoever is there may enter; it may be me.
            let top = self.fabric.swap(&self.readers()?, 0).await?;
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
        let kept_out = S::SURVIVES && S::is_shut(self.fabric.get_word(&self.count).await?);
        if kept_out || quit.is_set() {
            let left = self.post(Step::READER_LEAVES, &self.count, UNCOUNT_ME).await?;
            self.uncounted(left).await?;
            return Err(Trouble::GaveUp(if kept_out { LockError::KeptOut } else { Quit::REASON }));
        }
        Ok(())
    }

    /// The same if waiting readers are not counted: U1, and R3–R7 until R1 finds no writer.
    async fn wait_uncounted(&self, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        loop {
            let old = self.fabric.atomic(&self.count, UNCOUNT_ME).await?; // U1
            self.after_uncounting(old).await?;
            if let Err(trouble) = self.wait_for_another_try(deadline, quit).await {
                if let Trouble::GaveUp(_) = trouble {
                    self.publish(Step::READER_GIVES_UP)?;
                }
                return Err(trouble);
            }
            let old = self.fabric.atomic(&self.count, COUNT_ME).await?; // R1
            if old & S::TOO_MANY != 0 {
                return self.refuse_reader(old).await;
            }
            if old & S::KEEPS_OUT == 0 {
                break;
            }
        }
        self.publish(Step::READER_ENTERS)?;
        if quit.is_set() {
            let left = self.post(Step::READER_LEAVES, &self.count, UNCOUNT_ME).await?;
            self.uncounted(left).await?;
            return Err(Trouble::GaveUp(Quit::REASON));
        }
        Ok(())
    }

    /// The hold of a reader of this rank is no longer its own.
    pub(crate) fn pass_reader_on(&self) {
        if let Err(error) = self.publish(Step::READER_ENTERED.undone()) {
            self.broke_by(error);
        }
    }

    /// A hold that another reader let go of is this rank's.
    pub(crate) fn take_reader_over(&self) {
        if let Err(error) = self.publish(Step::READER_ENTERED) {
            self.broke_by(error);
        }
    }

    /// R2–R7 of a reader that is not counted.
    async fn wait_for_another_try(&self, deadline: Time, quit: &Quit) -> Result<(), Trouble> {
        let own = match self.take_fresh_node(self.published.lane()) {
            Some(own) => own,
            None => self.take_node(deadline, quit).await?, // R2
        };
        let id = own.id;
        let below = self.fabric.swap(&self.readers()?, id.bits()).await?; // R3
        let next = self.decode("readers", below)?;
        if next.is_some() {
            self.fabric.store(self.own(id.slot(), Part::Next)?, below)?;
        } else {
            // R4: the first of those that wait tells the writer of all; if there is none, it does what that would have done.
            let old = self.fabric.fetch_or(&self.count, READERS_WAIT).await?;
            if old & S::KEEPS_OUT == 0 {
                let top = self.sweep(READERS_WAIT).await?; // R5
                self.settle(Duties { reader: top, ..Duties::default() }).await?;
            }
        }
        // R6. Given up, the node stays on the stack; its waker will make it ready again.
        self.wait_to_be_woken(&own, deadline, quit).await?;
        self.retire(id).await?;
        drop(own);
        self.settle(Duties { reader: next, ..Duties::default() }).await?; // R7
        if quit.is_set() { Err(Trouble::GaveUp(Quit::REASON)) } else { Ok(()) }
    }

    /// U1 for somebody else, U2, U3. Yields the writer to be let in, if this was the last reader.
    pub(super) async fn reader_leaves(&self) -> Result<Option<NodeId>, Trouble> {
        match self.fabric.atomic(&self.count, UNCOUNT_ME).await? {
            old if S::is_last(old) => self.let_writer_in(old - READER).await,
            _ => Ok(None),
        }
    }

    /// U2–U4, if the count word was `old` before U1.
    #[inline]
    async fn after_uncounting(&self, old: u64) -> Result<(), Trouble> {
        if S::is_last(old)
            && let Some(writer) = self.let_writer_in(old - READER).await?
        {
            self.settle(Duties { writer: Some(writer), ..Duties::default() }).await?;
        }
        Ok(())
    }

    /// U2, U3; X7: turn the interest in `word`, in which no reader is counted, into activity. Fails if a reader came in, who will then do it. A
    /// head apart is read *after* the swap: it has no identity, and may have succeeded for a later writer than the one seen before.
    pub(super) async fn let_writer_in(&self, word: u64) -> Result<Option<NodeId>, Trouble> {
        if !self.activate(word).await? {
            return Ok(None);
        }
        let (name, head) = if S::HEAD_APART {
            let head = self.fabric.get_word(&self.writers()?.head).await?;
            ("head", head)
        } else {
            ("count", S::head(word))
        };
        match self.decode(name, head)? {
            Some(writer) => Ok(Some(writer)),
            None => Err(Trouble::Broken(LockError::corrupt(name, head))),
        }
    }

    /// The swap. That readers began or ceased to wait does not matter.
    pub(super) async fn activate(&self, mut word: u64) -> Result<bool, Trouble> {
        loop {
            let old = self.fabric.compare_swap(&self.count, word, S::granted(word)).await?;
            if old == word {
                return Ok(true);
            }
            if S::WAITS_COUNTED || old ^ word != READERS_WAIT {
                return Ok(false);
            }
            word = old;
        }
    }
}
