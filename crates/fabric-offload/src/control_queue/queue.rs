//! An open control queue, as its rank holds it.

use super::{Completion, MrqNotice, Pointers, Posting, Queue, QueueId, QueueLimits, QueueSide, QueueSpec, Stadd};
use core::{
    fmt,
    future::{Future, poll_fn},
    task::Poll,
};
use rdma_fabric::{
    Deps, Fabric, FabricError, Refused, Region, Result,
    provider::{Ended, WaitGuard},
};

/// A control queue of this rank. Dropping it closes it: commands that have not started are dropped,
/// and later commands that address it fail with [`super::QueueError::NotOpen`].
pub struct ControlQueue(Box<dyn Queue>);

impl ControlQueue {
    /// Returns the provider's part of the queue.
    pub fn provider(&self) -> &dyn Queue {
        &*self.0
    }
}

impl fmt::Debug for ControlQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl ControlQueue {
    /// Returns the limits of this rank's queues; [`QueueLimits::NONE`] where there are none.
    pub fn limits(fabric: &Fabric) -> QueueLimits {
        fabric.provider().queues().map_or(QueueLimits::NONE, |queues| queues.limits())
    }

    /// Opens a control queue of this rank. Local: the program sends the ID to peers.
    ///
    /// # Errors
    /// [`super::QueueError::InUse`], [`super::QueueError::NoneFree`], [`super::QueueError::Limit`]
    /// (depths that are not a power of two, or above the limit, count as such),
    /// [`FabricError::OutOfMemory`]; [`FabricError::Unsupported`] if there are no queues.
    pub fn open(fabric: &Fabric, spec: QueueSpec) -> Result<Self> {
        let absent = FabricError::Unsupported { feature: &"control queues" };
        fabric.provider().queues().ok_or(absent)?.open(spec).map(ControlQueue)
    }

    /// Returns the queue's name.
    pub fn id(&self) -> QueueId {
        self.0.id()
    }

    /// Returns the specification of the queue, with the engine and number assigned to it.
    pub fn spec(&self) -> QueueSpec {
        self.0.spec()
    }

    /// Registers `region` on this queue under an automatic tag, and returns the address of its
    /// first byte. Registering the region again yields the same address.
    ///
    /// # Errors
    /// [`super::QueueError::TooManyTags`], [`FabricError::StaleRegion`],
    /// [`FabricError::Unsupported`] for memory that queues can't access.
    pub fn register(&self, region: &Region) -> Result<Stadd> {
        self.0.register(region, None)
    }

    /// Registers `region` under the fixed tag `tag`: peers can name it by [`Stadd::fixed`] without
    /// communication.
    ///
    /// # Errors
    /// As [`ControlQueue::register`], [`super::QueueError::TagInUse`].
    pub fn register_fixed(&self, region: &Region, tag: u8) -> Result<Stadd> {
        self.0.register(region, Some(tag))
    }

    /// From now on refuses peers' writes to the memory registered under `at`, or allows them again.
    ///
    /// # Errors
    /// [`super::QueueError::NoSuchTag`].
    pub fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.0.set_read_only(at, read_only)
    }

    /// Ends the registration of `at`'s tag. Commands that address it afterwards fail with
    /// [`super::QueueError::NoSuchTag`]; those being executed finish first. The region itself
    /// stays.
    ///
    /// # Errors
    /// [`super::QueueError::NoSuchTag`].
    pub fn deregister(&self, at: Stadd) -> Result<()> {
        self.0.deregister(at)
    }

    /// Posts a command: [`Refused::Full`] if the TOQ has no room for all its slots now. Never
    /// blocks. A posting is plain data, so it isn't returned.
    ///
    /// # Errors
    /// [`Refused`] with [`super::QueueError::Limit`] for numbers out of range, or the error that
    /// stopped the queue.
    #[inline]
    pub fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        self.0.try_post(&[posting]).1
    }

    /// Posts a command, waiting for room, first come, first served. A session queue gains room as
    /// these peers, `deps`, advance it.
    ///
    /// # Errors
    /// As [`ControlQueue::try_post`]; [`FabricError::Deadlock`] or [`FabricError::PeersLeft`] if
    /// nothing will ever drain the queue, for example when it is full of delayed starts.
    pub async fn post(&self, posting: Posting, deps: Deps<'_>) -> Result<()> {
        self.post_all(&[posting], deps).await
    }

    /// Posts several commands one after the other, each as [`ControlQueue::post`] would. However, a
    /// provider may start those that find room together once all of them are in the queue, which is
    /// cheaper. The commands before one that fails are posted; if the future is dropped, the first
    /// few are.
    ///
    /// # Errors
    /// The error of the first command that fails, as [`ControlQueue::post`].
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
            // In order among those that wait for room.
            let mut wait = WaitGuard::new(|wait_state, ended| self.0.end_wait(wait_state, None, ended));
            poll_fn(|cx| self.0.poll_post(wait.state(), next, deps, cx)).await?;
            rest = others;
        }
        Ok(())
    }

    /// Takes the next completion, if one has arrived. Completions arrive in posting order.
    ///
    /// # Errors
    /// The error that stopped the queue, or a command's first error that was not reported
    /// otherwise.
    pub fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.0.poll_tcq()
    }

    /// Waits for the next completion.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`] and [`Fabric::wait_until`].
    pub fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        self.next(QueueSide::Completion, deps, false, |queue| queue.poll_tcq())
    }

    /// Waits for the next completion, if [`ControlQueue::poll_tcq`] has just found none: a poll costs
    /// less than a future of a wait.
    ///
    /// # Errors
    /// As [`ControlQueue::next_completion`].
    pub fn await_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        self.next(QueueSide::Completion, deps, true, |queue| queue.poll_tcq())
    }

    /// Takes the next notice, if one has arrived. The caller then sees the effects that the notice
    /// reports (acquire).
    ///
    /// # Errors
    /// As [`ControlQueue::poll_tcq`], [`super::QueueError::MrqOverflow`].
    pub fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        self.0.poll_mrq()
    }

    /// Waits for the next notice.
    ///
    /// # Errors
    /// As [`ControlQueue::poll_mrq`] and [`Fabric::wait_until`].
    pub fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        self.next(QueueSide::Notice, deps, false, |queue| queue.poll_mrq())
    }

    /// Waits for the next notice, if [`ControlQueue::poll_mrq`] has just found none.
    ///
    /// # Errors
    /// As [`ControlQueue::next_notice`].
    pub fn await_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        self.next(QueueSide::Notice, deps, true, |queue| queue.poll_mrq())
    }

    /// Waits for the next entry on one side, at which the caller `has_looked` or not.
    fn next<T>(
        &self,
        side: QueueSide,
        deps: Deps<'_>,
        mut has_looked: bool,
        look: impl Fn(&dyn Queue) -> Result<Option<T>>,
    ) -> impl Future<Output = Result<T>> {
        let queue = &*self.0;
        let mut wait = WaitGuard::new(move |wait_state, ended| queue.end_wait(wait_state, Some(side), ended));
        poll_fn(move |cx| {
            let mut failed = None;
            loop {
                if !core::mem::take(&mut has_looked) {
                    match look(queue) {
                        Ok(Some(found)) => {
                            wait.end(Ended::Reached);
                            return Poll::Ready(Ok(found));
                        }
                        Ok(None) => {}
                        Err(error) => return Poll::Ready(Err(error)),
                    }
                }
                // An entry that arrived before the failure counts.
                if let Some(error) = failed {
                    return Poll::Ready(Err(error));
                }
                match queue.poll_wait(wait.state(), side, deps, cx) {
                    Poll::Pending => return Poll::Pending,
                    Poll::Ready(outcome) => failed = outcome.err(),
                }
            }
        })
    }

    /// Returns the queue's current pointers.
    pub fn pointers(&self) -> Pointers {
        self.0.pointers()
    }

    /// Closes the queue and returns the number of its commands that never started.
    ///
    /// # Errors
    /// A command's first error that was not reported otherwise; the queue is closed in any case.
    pub fn close(self) -> Result<u64> {
        self.0.close()
    }
}
