//! A control queue as its owner has it.

mod closing;
mod posting;

use super::{
    executor::Executor,
    geometry::Geometry,
    lock::{Held, Lock},
    own::TagTable,
    poster::Poster,
    words::View,
};
use crate::shm::{endpoint::Endpoint, own::Taken, stall::For, waiting::Wait};
use core::{
    fmt,
    task::{Context, Poll},
};
use rdma_fabric::{
    Deps, Refused, Region, Result,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueSpec, Stadd},
    provider::{self, Ended, QueueSide, Slot},
};
use std::sync::Arc;

/// A control queue over shared memory. May be used on any thread.
///
/// Commands that others' arrivals release are executed by those others' CPUs; what is left to this rank, because of a bound on
/// their work or of a death, it executes whenever it polls the queue or waits for anything.
pub(super) struct Queue {
    endpoint: Endpoint,
    id: QueueId,
    spec: QueueSpec,
    geometry: Geometry,
    /// `None` once it was closed.
    open: Option<Open>,
    pub(super) poster: Lock<Poster>,
    /// The longest put or get, in bytes.
    longest: u32,
}

/// The memory of an open queue.
#[derive(Debug)]
pub(super) struct Open {
    pub(super) words: Taken,
    pub(super) tags: Arc<TagTable>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}, {:?})", self.id, self.geometry)
    }
}

impl Queue {
    pub(super) fn new(endpoint: Endpoint, id: QueueId, spec: QueueSpec, geometry: Geometry, open: Open) -> Self {
        let longest = endpoint.job().queues.machine.longest;
        Queue { endpoint, id, spec, geometry, open: Some(open), poster: Lock::default(), longest }
    }

    pub(super) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(super) fn name(&self) -> QueueId {
        self.id
    }

    #[inline]
    fn poster(&self) -> Held<'_, Poster> {
        self.poster.lock()
    }

    /// # Errors
    /// [`QueueError::NotOpen`]: only while it is being closed.
    #[inline]
    pub(super) fn view(&self) -> Result<View<'_>, QueueError> {
        let closed = QueueError::NotOpen(self.id);
        let open = self.open.as_ref().ok_or(closed)?;
        let words = (open.words.key, open.words.extent.offset);
        let tags = open.tags.taken.extent.offset;
        View::own(self.endpoint.segment(), self.id, self.geometry, words, tags).ok_or(closed)
    }

    pub(super) fn table(&self) -> Result<&TagTable, QueueError> {
        self.open.as_ref().map(|open| &*open.tags).ok_or(QueueError::NotOpen(self.id))
    }

    fn executor(&self) -> Executor<'_> {
        self.endpoint.executor()
    }

    /// Execute what this rank is left with of the queue, if anything.
    fn help(&self) {
        if self.geometry.mode == rdma_fabric::control_queue::QueueMode::Session
            && self.view().is_ok_and(|queue| queue.turns().is_due())
        {
            self.executor().help(self.id);
        }
    }

    /// Execute what was handed over to this rank. Whether there may have been anything, or nothing is ever handed over.
    #[inline]
    fn serve(&self) -> bool {
        self.geometry.mode != rdma_fabric::control_queue::QueueMode::Session || self.endpoint.serve_queues()
    }

    #[inline]
    fn take_notice(&self) -> Result<Option<MrqNotice>> {
        let queue = self.view()?;
        let executor = self.executor();
        let control = &executor.job.control;
        if !queue.mrq().is_empty() || control.anybody_ended() {
            match queue.mrq().consume(|| control.anybody_ended(), |rank| executor.has_ended(rank)) {
                Ok(None) => {}
                Ok(notice) => return Ok(notice),
                Err(_) => return Err(queue.corrupt("the message receive queue").into()),
            }
        }
        Ok(None)
    }
}

/// Where in a slot the place stands that somebody has in the line of those who wait for room, counted from 1.
const PLACE: usize = 3;

impl provider::Queue for Queue {
    fn id(&self) -> QueueId {
        self.id
    }

    fn spec(&self) -> QueueSpec {
        self.spec
    }

    fn pointers(&self) -> Pointers {
        self.help();
        match self.view() {
            Ok(queue) => self.poster().pointers(&queue),
            Err(_) => Pointers { read: 0, write: 0, scheduled: 0 },
        }
    }

    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd> {
        match fixed {
            None => self.name_somehow(region),
            Some(tag) => self.name_as(region, tag),
        }
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.restrict(at, read_only)
    }

    /// Waits for commands that copy more than 64 bytes. A shorter one whose thread is stopped between its check and its copy may
    /// still reach the region afterwards, as with the region's own end.
    fn deregister(&self, at: Stadd) -> Result<()> {
        self.forget(at)
    }

    #[inline]
    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        if let [posting] = postings {
            return match self.post_one(posting) {
                Ok(()) => (1, Ok(())),
                Err(refused) => (0, Err(refused)),
            };
        }
        self.post_many(postings)
    }

    fn poll_post(&self, slot: &mut Slot, posting: &Posting, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if slot.0[PLACE] == 0 {
            slot.0[PLACE] = self.poster().stand_in_line() + 1;
        }
        let place = slot.0[PLACE] - 1;
        loop {
            let posted = match self.post_in_turn(*posting, place) {
                Ok(Some(())) => Ok(()),
                Ok(None) => {
                    match Wait::in_slot(&self.endpoint, slot, |wait| wait.until_looked(cx, For::Queue, &deps)) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => continue,
                        // What happened before counts.
                        Poll::Ready(Err(error)) => {
                            self.post_in_turn(*posting, place).and_then(|posted| posted.ok_or(error))
                        }
                    }
                }
                Err(error) => Err(error),
            };
            provider::Queue::end_wait(self, slot, None, Ended::Reached);
            return Poll::Ready(posted);
        }
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.serve();
        Ok(self.poster().completion(&self.view()?)?)
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        if let Some(notice) = self.take_notice()? {
            return Ok(Some(notice));
        }
        if self.serve()
            && let Some(notice) = self.take_notice()?
        {
            return Ok(Some(notice));
        }
        self.poster().trouble(&self.view()?)?;
        // What was left before the trouble.
        self.take_notice()
    }

    fn poll_wait(&self, slot: &mut Slot, _: QueueSide, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Wait::in_slot(&self.endpoint, slot, |wait| wait.until_looked(cx, For::Queue, &deps))
    }

    fn end_wait(&self, slot: &mut Slot, _: Option<QueueSide>, _: Ended) {
        if slot.0[PLACE] != 0 && self.poster().leave_line(slot.0[PLACE] - 1) {
            // The next one may be asleep.
            self.endpoint.segment().ring_for_notice();
        }
        Wait::end(&self.endpoint, slot);
    }

    fn close(mut self: Box<Self>) -> Result<u64> {
        match self.shut() {
            (remaining, None) => Ok(remaining),
            (_, Some(error)) => Err(error.into()),
        }
    }
}
