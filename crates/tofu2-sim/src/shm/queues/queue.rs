//! A control queue from its owner's side.

mod posting;

use super::{
    config::{Geometry, Stop},
    executor::Executor,
    lock::{Lock, LockGuard},
    own::TagTable,
    poster::Poster,
    view::{View, directory_at},
};
use crate::shm::{
    endpoint::Endpoint,
    memory::allocator::RegisteredExtent,
    notices::ring,
    waiting::{Wait, WaitsFor},
};
use core::{
    fmt,
    sync::atomic::Ordering::SeqCst,
    task::{Context, Poll},
};
use rdma_fabric::{
    Deps, Refused, Region, Result,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueSpec, Stadd},
    provider::{self, Ended, QueueSide, Slot},
};
use std::sync::Arc;

/// A control queue over shared memory, usable on any thread.
///
/// Commands that are released by other ranks' puts are executed by those ranks' CPUs. Commands left
/// to this rank, because those CPUs do only a bounded amount of work or because a rank died, are
/// executed whenever this rank polls the queue or waits for anything.
pub(crate) struct Queue {
    endpoint: Endpoint,
    id: QueueId,
    spec: QueueSpec,
    geometry: Geometry,
    /// The queue's memory; `None` once it was closed.
    open: Option<Open>,
    pub(crate) poster: Lock<Poster>,
    /// The longest put or get, in bytes.
    longest: u32,
}

/// The memory of an open queue.
#[derive(Debug)]
pub(crate) struct Open {
    pub(crate) words: RegisteredExtent,
    pub(crate) tags: Arc<TagTable>,
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Queue({}, {:?})", self.id, self.geometry)
    }
}

impl Queue {
    pub(crate) fn new(endpoint: Endpoint, id: QueueId, spec: QueueSpec, geometry: Geometry, open: Open) -> Self {
        let longest = endpoint.job().queues.machine.longest;
        Queue { endpoint, id, spec, geometry, open: Some(open), poster: Lock::default(), longest }
    }

    pub(crate) fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    pub(crate) fn name(&self) -> QueueId {
        self.id
    }

    #[inline]
    fn poster(&self) -> LockGuard<'_, Poster> {
        self.poster.lock()
    }

    /// Returns the queue's words.
    ///
    /// # Errors
    /// [`QueueError::NotOpen`]: only while it is being closed.
    #[inline]
    pub(crate) fn view(&self) -> Result<View<'_>, QueueError> {
        let closed = QueueError::NotOpen(self.id);
        let open = self.open.as_ref().ok_or(closed)?;
        let words = (open.words.key, open.words.extent.offset);
        let tags = open.tags.taken.extent.offset;
        View::own(self.endpoint.segment(), self.id, self.geometry, words, tags).ok_or(closed)
    }

    pub(crate) fn table(&self) -> Result<&TagTable, QueueError> {
        self.open.as_ref().map(|open| &*open.tags).ok_or(QueueError::NotOpen(self.id))
    }

    fn executor(&self) -> Executor<'_> {
        self.endpoint.executor()
    }

    /// Executes the commands of this queue that are left to this rank, if any.
    fn help(&self) {
        if self.geometry.mode == rdma_fabric::control_queue::QueueMode::Session
            && self.view().is_ok_and(|queue| queue.turns().is_due())
        {
            self.executor().help(self.id);
        }
    }

    /// Executes what was handed over to this rank. Returns true if there may have been anything, or
    /// if nothing is ever handed over to this queue.
    #[inline]
    fn serve(&self) -> bool {
        self.geometry.mode != rdma_fabric::control_queue::QueueMode::Session || self.endpoint.serve_queues()
    }

    #[inline]
    fn take_notice(&self) -> Result<Option<MrqNotice>> {
        let queue = self.view()?;
        let executor = self.executor();
        let control = &executor.job.control;
        if !ring::is_empty(&queue.mrq()) || control.anybody_ended() {
            match queue.mrq().consume(|| control.anybody_ended(), |rank| executor.has_ended(rank)) {
                Ok(None) => {}
                Ok(notice) => return Ok(notice),
                Err(_) => return Err(queue.corrupt("the message receive queue").into()),
            }
        }
        Ok(None)
    }
}

/// Index of the word of a slot that holds the post's place in the line for room, counted from 1.
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

    /// Deregisters a tag and waits for commands that copy more than 64 bytes. A shorter one whose
    /// thread is stopped between its check and its copy may still reach the region afterwards, as
    /// when the region itself is deregistered.
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
                    match Wait::in_slot(&self.endpoint, slot, |wait| wait.until_looked(cx, WaitsFor::Queue, &deps)) {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => continue,
                        // Room that was made before the error counts.
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
        // Notices that arrived before the trouble still count.
        self.take_notice()
    }

    fn poll_wait(&self, slot: &mut Slot, _: QueueSide, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        Wait::in_slot(&self.endpoint, slot, |wait| wait.until_looked(cx, WaitsFor::Queue, &deps))
    }

    fn end_wait(&self, slot: &mut Slot, _: Option<QueueSide>, _: Ended) {
        if slot.0[PLACE] != 0 && self.poster().leave_line(slot.0[PLACE] - 1) {
            // The next waiter may be asleep.
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

/// How often to look whether a rank is still executing before the queue is closed anyway, with its
/// words never used again. A command takes less time, unless its process is stopped or the claim is
/// damaged.
const CLOSING: u32 = 1 << 14;

impl Queue {
    /// Closes the queue. Returns how many commands were never started, and the error that was not
    /// reported.
    pub(crate) fn shut(&mut self) -> (u64, Option<QueueError>) {
        let Ok(queue) = self.view() else { return (0, None) };
        let (segment, me) = (self.endpoint.segment(), self.endpoint.me());
        if let Some(at) = directory_at(self.id) {
            segment.word(at).store(0, SeqCst);
        }
        let executor = self.endpoint.executor();
        let mut quiet = true;
        if queue.is_session() {
            self.endpoint.own_queues().set_session(self.id, false);
            // A rank that is executing now stops after its command, and no rank starts executing
            // after this.
            queue.stop(Stop::Closed);
            let turns = queue.turns();
            let has_it = || turns.seize(me.number(), |rank| executor.has_ended(rank));
            quiet = (0..CLOSING).any(|_| {
                has_it() || {
                    std::thread::yield_now();
                    false
                }
            });
        }
        let mut poster = self.poster();
        let remaining = poster.remaining(&queue);
        let error = poster.take_error(&queue);
        drop(poster);
        if let Some(Open { words, tags }) = self.open.take() {
            let (mut allocator, segment) = (self.endpoint.allocator(), self.endpoint.segment());
            // A rank that is still executing reads both.
            let taken = [Some(words), Arc::into_inner(tags).map(|table| table.taken)];
            for taken in taken.into_iter().flatten() {
                if quiet { allocator.free(segment, me, &taken) } else { allocator.leak(segment, &taken) }
            }
        }
        self.endpoint.own_queues().give_back(self.endpoint.job(), me, self.id);
        (remaining, error)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shut();
    }
}
