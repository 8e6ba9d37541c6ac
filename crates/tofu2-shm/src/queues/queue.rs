//! A control queue from its owner's side.

mod attending;
mod closing;
mod posting;

use super::{
    config::Geometry,
    executor::Executor,
    lock::{Lock, LockGuard},
    own::TagTable,
    poster::Poster,
    remote::RemoteCommands,
    view::View,
};
use crate::{
    endpoint::Endpoint,
    memory::allocator::RegisteredExtent,
    notices::ring,
    waiting::{Wait, WaitsFor},
};
use core::{
    fmt,
    task::{Context, Poll},
};
use rdma_fabric::{
    Deps, Rank, Refused, Region, Result,
    control_queue::{
        Completion, ExpectedReports, MrqNotice, Pointers, Posting, ProgramCommand, QueueError, QueueId, QueueMode,
        QueueSpec, Stadd,
    },
    provider::{self, Ended, QueueSide, WaitState},
};
use std::sync::Arc;

/// A control queue over shared memory, usable on any thread.
///
/// Commands that are released by other ranks' puts are executed by those ranks' CPUs. Commands that
/// are left to this rank, because those CPUs do only a bounded amount of work or because a rank
/// died, are executed whenever this rank polls the queue or waits for anything.
pub(crate) struct Queue {
    endpoint: Endpoint,
    id: QueueId,
    spec: QueueSpec,
    geometry: Geometry,
    /// The queue's memory; `None` once it was closed.
    open: Option<Open>,
    pub(crate) poster: Lock<Poster>,
    /// Its commands that were sent to other nodes, in a job that runs on several nodes.
    remote: Option<Arc<RemoteCommands>>,
    /// The longest put or get, in bytes.
    longest: u32,
    /// Whether a command that leaves a notice waits, as for room, while the target's message receive
    /// queue is full.
    patient: bool,
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
    pub(crate) fn new(
        endpoint: Endpoint,
        id: QueueId,
        spec: QueueSpec,
        geometry: Geometry,
        open: Open,
        remote: Option<Arc<RemoteCommands>>,
    ) -> Self {
        let longest = endpoint.job().queues.machine.longest;
        let poster = Lock::new(Poster::new(remote.clone()));
        Queue { endpoint, id, spec, geometry, open: Some(open), poster, remote, longest, patient: false }
    }

    /// Makes a queue that is not in session mode refuse commands, as if it were full, whose notice
    /// finds no room at their target.
    #[cfg(target_os = "linux")]
    pub(crate) fn patient(mut self) -> Self {
        self.patient = true;
        self
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

    #[inline]
    fn is_session(&self) -> bool {
        self.geometry.mode == QueueMode::Session
    }

    /// Executes the commands of this queue that are left to this rank, if any.
    fn help(&self) {
        if self.is_session() && self.view().is_ok_and(|queue| queue.turns().is_due()) {
            self.executor().help(self.id);
        }
    }

    /// Executes the commands that were handed over to this rank. Returns true if there may have
    /// been any, or if no command is ever handed over to this queue.
    #[inline]
    fn serve(&self) -> bool {
        !self.is_session() || self.endpoint.serve_queues()
    }

    /// Returns the ranks that a wait depends on. While commands to other nodes are in flight, it is
    /// this rank alone: these commands complete even if their target is lost, or has left.
    fn depends_on<'a>(&self, deps: Deps<'a>, own: &'a [Rank; 1]) -> Deps<'a> {
        let is_idle = self.remote.as_ref().is_none_or(|remote| remote.is_idle());
        if is_idle { deps } else { Deps::Ranks(own) }
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

/// Index of the word of a wait state that holds the post's place in the line for room, counted from
/// 1.
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

    fn prepare(&self, commands: &[ProgramCommand]) -> Option<usize> {
        self.prepare_program(commands)
    }

    fn try_post_program(&self, program: usize, number: u64) -> bool {
        self.post_program(program, number)
    }

    fn poll_post(
        &self,
        wait_state: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if wait_state.0[PLACE] == 0 {
            wait_state.0[PLACE] = self.poster().stand_in_line() + 1;
        }
        let place = wait_state.0[PLACE] - 1;
        let own = [self.endpoint.me()];
        loop {
            let deps = self.depends_on(deps, &own);
            let posted = match self.post_in_turn(*posting, place) {
                Ok(Some(())) => Ok(()),
                Ok(None) => {
                    match Wait::resume(&self.endpoint, wait_state, |wait| wait.until_polled(cx, WaitsFor::Queue, &deps))
                    {
                        Poll::Pending => return Poll::Pending,
                        Poll::Ready(Ok(())) => continue,
                        // Room that was made before the error takes precedence.
                        Poll::Ready(Err(error)) => {
                            self.post_in_turn(*posting, place).and_then(|posted| posted.ok_or(error))
                        }
                    }
                }
                Err(error) => Err(error),
            };
            provider::Queue::end_wait(self, wait_state, None, Ended::Reached);
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
        // Notices that arrived before the error are still delivered.
        self.take_notice()
    }

    fn take_expected(&self, expected: &mut ExpectedReports, is_wait: bool) {
        self.take_reports(expected, is_wait);
    }

    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if self.attend(side) {
            return Poll::Ready(Ok(()));
        }
        let own = [self.endpoint.me()];
        let deps = self.depends_on(deps, &own);
        Wait::resume(&self.endpoint, wait_state, |wait| wait.until_polled(cx, WaitsFor::Queue, &deps))
    }

    fn end_wait(&self, wait_state: &mut WaitState, _: Option<QueueSide>, _: Ended) {
        if wait_state.0[PLACE] != 0 && self.poster().leave_line(wait_state.0[PLACE] - 1) {
            // The next waiter may be asleep.
            self.endpoint.segment().ring_for_notice();
        }
        Wait::end(&self.endpoint, wait_state);
    }

    fn close(mut self: Box<Self>) -> Result<u64> {
        match self.shut() {
            (remaining, None) => Ok(remaining),
            (_, Some(error)) => Err(error.into()),
        }
    }
}
