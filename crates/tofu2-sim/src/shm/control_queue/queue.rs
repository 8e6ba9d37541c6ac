//! A control queue as its owner has it.

mod closing;
mod posting;

use super::{
    executor::Executor,
    geometry::Geometry,
    lock::{Held, Lock},
    own::TagTable,
    poster::Poster,
    short::Shortly,
    words::View,
};
use crate::shm::{
    endpoint::Endpoint,
    own::{Region, Taken},
    stall::For,
    waiting::{self, Calling, Look},
};
use core::{fmt, future::Future};
use posting::InLine;
use rdma_fabric::{
    Deps, Refused, Result,
    control_queue::{Completion, ControlQueue, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueSpec, Stadd},
};
use std::sync::Arc;

/// A control queue over shared memory. May be used on any thread.
///
/// Commands that others' arrivals release are executed by those others' CPUs; what is left to this rank, because of a bound on
/// their work or of a death, it executes whenever it polls the queue or waits for anything.
pub struct Queue {
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
        let closed = QueueError::NotOpen { queue: self.id };
        let open = self.open.as_ref().ok_or(closed)?;
        let words = (open.words.key, open.words.extent.offset);
        let tags = open.tags.taken.extent.offset;
        View::own(self.endpoint.segment(), self.id, self.geometry, words, tags).ok_or(closed)
    }

    pub(super) fn table(&self) -> Result<&TagTable, QueueError> {
        self.open.as_ref().map(|open| &*open.tags).ok_or(QueueError::NotOpen { queue: self.id })
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

impl ControlQueue for Queue {
    type Fabric = Endpoint;

    fn id(&self) -> QueueId {
        self.id
    }

    fn spec(&self) -> QueueSpec {
        self.spec
    }

    fn register(&self, region: &Region) -> Result<Stadd> {
        self.name_somehow(region)
    }

    fn register_fixed(&self, region: &Region, tag: u8) -> Result<Stadd> {
        self.name_as(region, tag)
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.restrict(at, read_only)
    }

    /// Waits for commands that copy more than 64 bytes. A shorter one whose thread is stopped between its check and its copy may
    /// still reach the region afterwards, as with [`Region`].
    fn deregister(&self, at: Stadd) -> Result<()> {
        self.forget(at)
    }

    #[inline]
    fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        match self.post_shortly(&posting) {
            Shortly::Done => Ok(()),
            Shortly::Released(queue) => {
                self.executor().help(queue);
                Ok(())
            }
            Shortly::Not => self.post_slowly(&posting),
        }
    }

    async fn post_all(&self, postings: &[Posting], deps: Deps<'_>) -> Result<()> {
        let mut rest = postings;
        while let [next, ..] = rest {
            let (posted, refused) = self.post_many(rest);
            match refused {
                Ok(()) => return Ok(()),
                Err(Refused::Failed(error, ())) => return Err(error),
                Err(Refused::Full(())) => {}
            }
            let next = rest.get(posted).unwrap_or(next);
            self.post(*next, deps).await?;
            rest = rest.get(posted + 1..).unwrap_or_default();
        }
        Ok(())
    }

    async fn post(&self, posting: Posting, deps: Deps<'_>) -> Result<()> {
        match self.try_post(posting) {
            Ok(()) => return Ok(()),
            Err(Refused::Failed(error, ())) => return Err(error),
            Err(Refused::Full(())) => {}
        }
        let line = InLine { queue: self, place: self.poster().stand_in_line() };
        let look = Calling(|| line.queue.post_in_turn(posting, line.place));
        waiting::until_found(&self.endpoint, deps, For::Queue, look).await
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.serve();
        Ok(self.poster().completion(&self.view()?)?)
    }

    fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        waiting::until_found(&self.endpoint, deps, For::Queue, CompletionLook(self))
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

    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        waiting::until_found(&self.endpoint, deps, For::Queue, NoticeLook(self))
    }

    fn pointers(&self) -> Pointers {
        self.help();
        match self.view() {
            Ok(queue) => self.poster().pointers(&queue),
            Err(_) => Pointers { read: 0, write: 0, scheduled: 0 },
        }
    }

    fn close(mut self) -> Result<u64> {
        match self.shut() {
            (remaining, None) => Ok(remaining),
            (_, Some(error)) => Err(error.into()),
        }
    }
}

/// Looks for the next completion.
struct CompletionLook<'a>(&'a Queue);

impl Look for CompletionLook<'_> {
    type Found = Completion;

    fn look(&mut self) -> Result<Option<Completion>> {
        self.0.poll_tcq()
    }
}

/// Looks for the next notice.
struct NoticeLook<'a>(&'a Queue);

impl Look for NoticeLook<'_> {
    type Found = MrqNotice;

    fn look(&mut self) -> Result<Option<MrqNotice>> {
        self.0.poll_mrq()
    }
}
