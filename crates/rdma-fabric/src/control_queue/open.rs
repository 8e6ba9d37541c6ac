//! An open control queue, as its rank holds it.

use super::{Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd};
use crate::{
    Deps, Fabric, FabricError, Refused, Region, Result,
    provider::{Ended, Queue, Side, Slot},
};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
};

/// A control queue of this rank. Dropping it closes it: commands that have not started are dropped; whatever addresses it
/// afterwards fails with [`QueueError::NotOpen`](crate::control_queue::QueueError::NotOpen).
pub struct ControlQueue(Box<dyn Queue>);

impl ControlQueue {
    /// What the provider has of it.
    pub fn provider(&self) -> &dyn Queue {
        &*self.0
    }
}

impl fmt::Debug for ControlQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl Fabric {
    /// What queues there are.
    pub fn queue_limits(&self) -> QueueLimits {
        self.provider().queues().map_or(QueueLimits::NONE, |queues| queues.limits())
    }

    /// Open a control queue. Local: peers learn its id by other means.
    ///
    /// # Errors
    /// [`crate::control_queue::QueueError::InUse`], [`crate::control_queue::QueueError::NoneFree`], [`crate::control_queue::QueueError::Limit`] (depths that are no power of two, or above
    /// the limit, count as such), [`FabricError::OutOfMemory`]; [`FabricError::Unsupported`] where there are no queues.
    pub fn open_queue(&self, spec: QueueSpec) -> Result<ControlQueue> {
        let absent = FabricError::Unsupported { feature: &"control queues" };
        self.provider().queues().ok_or(absent)?.open(spec).map(ControlQueue)
    }
}

impl ControlQueue {
    /// Its name.
    pub fn id(&self) -> QueueId {
        self.0.id()
    }

    /// How it was opened; engine and number are those it got.
    pub fn spec(&self) -> QueueSpec {
        self.0.spec()
    }

    /// Register `region` on this queue under an automatic tag: the address of its first byte. The same region again has the
    /// same address.
    ///
    /// # Errors
    /// [`crate::control_queue::QueueError::TooManyTags`], [`FabricError::StaleRegion`], [`FabricError::Unsupported`] for memory that queues can't
    /// reach.
    pub fn register(&self, region: &Region) -> Result<Stadd> {
        self.0.register(region, None)
    }

    /// Register it under the fixed tag `tag`: peers can name it by [`Stadd::fixed`] without being told.
    ///
    /// # Errors
    /// As [`ControlQueue::register`], [`crate::control_queue::QueueError::TagInUse`].
    pub fn register_fixed(&self, region: &Region, tag: u8) -> Result<Stadd> {
        self.0.register(region, Some(tag))
    }

    /// Refuse writes of peers to what is registered under `at` from now on, or allow them again.
    ///
    /// # Errors
    /// [`crate::control_queue::QueueError::NoSuchTag`].
    pub fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.0.set_read_only(at, read_only)
    }

    /// End the registration of `at`'s tag. Commands that address it afterwards fail with [`crate::control_queue::QueueError::NoSuchTag`]; those being
    /// executed finish first. The region itself stays.
    ///
    /// # Errors
    /// [`crate::control_queue::QueueError::NoSuchTag`].
    pub fn deregister(&self, at: Stadd) -> Result<()> {
        self.0.deregister(at)
    }

    /// Post a command: [`Refused::Full`] if the TOQ has no room for all its slots now. Never blocks. A posting is plain data,
    /// so it isn't given back.
    ///
    /// # Errors
    /// [`Refused`] with [`crate::control_queue::QueueError::Limit`] for numbers out of range, or the error that stopped the queue.
    #[inline]
    pub fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        self.0.try_post(&[posting]).1
    }

    /// Post a command, waiting for room, first come first served. A session queue gets room as peers advance it: `deps`.
    ///
    /// # Errors
    /// As [`ControlQueue::try_post`]; [`FabricError::Deadlock`] or [`FabricError::PeersLeft`] where nothing will ever drain the
    /// queue, as when it is full of delayed starts.
    pub async fn post(&self, posting: Posting, deps: Deps<'_>) -> Result<()> {
        self.post_all(&[posting], deps).await
    }

    /// Post several commands one after the other, as [`ControlQueue::post`] of each. But a provider may let those that find room begin together, when
    /// all of them are there: that is cheaper. Those before one that fails are posted; if the future is dropped, the first few are.
    ///
    /// # Errors
    /// As [`ControlQueue::post`], of the first that fails.
    pub async fn post_all(&self, postings: &[Posting], deps: Deps<'_>) -> Result<()> {
        let mut rest = postings;
        while !rest.is_empty() {
            let (posted, refused) = self.0.try_post(rest);
            match refused {
                Ok(()) => return Ok(()),
                Err(Refused::Failed(error, ())) => return Err(error),
                Err(Refused::Full(())) => {}
            }
            let Some((next, others)) = rest.get(posted..).and_then(<[_]>::split_first) else { return Ok(()) };
            InLine { queue: &*self.0, posting: next, deps, slot: Slot::default() }.await?;
            rest = others;
        }
        Ok(())
    }

    /// The next completion, if one is here. Completions come in posting order.
    ///
    /// # Errors
    /// What stopped the queue, or a command's first error that was not reported otherwise.
    pub fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.0.poll_tcq()
    }

    /// Wait for the next completion.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`] and [`Fabric::wait_until`].
    pub fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        Next {
            queue: &*self.0,
            look: |queue: &dyn Queue| queue.poll_tcq(),
            side: Side::Completion,
            deps,
            slot: Slot::default(),
        }
    }

    /// The next notice, if one is here. Whoever gets it sees what it tells of (acquire).
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`], [`crate::control_queue::QueueError::MrqOverflow`].
    pub fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.0.poll_mrq()
    }

    /// Wait for the next notice.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_mrq`] and [`Fabric::wait_until`].
    pub fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        Next {
            queue: &*self.0,
            look: |queue: &dyn Queue| queue.poll_mrq(),
            side: Side::Notice,
            deps,
            slot: Slot::default(),
        }
    }

    /// Where it stands now.
    pub fn pointers(&self) -> Pointers {
        self.0.pointers()
    }

    /// Close it and tell how many of its commands were never started.
    ///
    /// # Errors
    /// A command's first error that was not reported otherwise; the queue is closed all the same.
    pub fn close(self) -> Result<u64> {
        self.0.close()
    }
}

/// Posts one command in the order of those who wait for room.
struct InLine<'a> {
    queue: &'a dyn Queue,
    posting: &'a Posting,
    deps: Deps<'a>,
    slot: Slot,
}

impl Future for InLine<'_> {
    type Output = Result<()>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let me = &mut *self;
        me.queue.poll_post(&mut me.slot, me.posting, me.deps, cx)
    }
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if !self.slot.is_empty() {
            self.queue.end_wait(&mut self.slot, None, Ended::GivenUp);
        }
    }
}

/// Waits for what a side of a queue has next.
struct Next<'a, 'd, L> {
    queue: &'a dyn Queue,
    look: L,
    side: Side,
    deps: Deps<'d>,
    slot: Slot,
}

impl<L> Unpin for Next<'_, '_, L> {}

impl<T, L: FnMut(&dyn Queue) -> Result<Option<T>>> Future for Next<'_, '_, L> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        let me = &mut *self;
        let mut failed = None;
        loop {
            match (me.look)(me.queue) {
                Ok(Some(found)) => {
                    if !me.slot.is_empty() {
                        me.queue.end_wait(&mut me.slot, Some(me.side), Ended::Reached);
                        me.slot = Slot::default();
                    }
                    return Poll::Ready(Ok(found));
                }
                Ok(None) => {}
                Err(error) => return Poll::Ready(Err(error)),
            }
            // What came before counts.
            if let Some(error) = failed {
                return Poll::Ready(Err(error));
            }
            match me.queue.poll_wait(&mut me.slot, me.side, me.deps, cx) {
                Poll::Pending => return Poll::Pending,
                Poll::Ready(outcome) => failed = outcome.err(),
            }
        }
    }
}

impl<L> Drop for Next<'_, '_, L> {
    fn drop(&mut self) {
        if !self.slot.is_empty() {
            self.queue.end_wait(&mut self.slot, Some(self.side), Ended::GivenUp);
        }
    }
}
