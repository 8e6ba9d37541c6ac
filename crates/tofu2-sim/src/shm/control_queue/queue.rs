//! A control queue as its owner has it.

use super::{
    executor::{Executor, Work},
    geometry::{Geometry, Stop},
    lock::{Held, Lock},
    own::TagTable,
    poster::{Poster, failed},
    short::Shortly,
    words::{View, directory_at},
};
use crate::shm::{
    doorbell::Watch,
    endpoint::Endpoint,
    own::{Region, Taken},
    waiting::{self, Calling, Look},
};
use core::{fmt, future::Future, sync::atomic::Ordering::SeqCst};
use rdma_fabric::{
    Deps, FabricError, Refused, Result,
    control_queue::{
        Blocks, Command, Completion, ControlQueue, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueSpec, Stadd,
    },
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

/// Looks at who executes before a queue is closed all the same, its words never to be used again: a command takes less,
/// unless its process is stopped or the claim is damaged.
const CLOSING: u32 = 1 << 14;

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

    /// Check what can be told without memory.
    #[inline]
    fn examine(&self, posting: &Posting) -> Result<(), QueueError> {
        let Posting { command, sps, .. } = posting;
        let limit = |what, value: u64, limit: u64| Err(QueueError::Limit { queue: self.id, what, value, limit });
        if let Command::Put { len, blocks, .. } | Command::Get { len, blocks, .. } = *command {
            if len > self.longest {
                return limit("the length in bytes", len.into(), self.longest.into());
            }
            if blocks.count == 0 {
                return limit("the number of blocks", 0, u32::MAX.into());
            }
            if blocks != Blocks::ONE && u64::from(blocks.count).saturating_mul(blocks.stride) >= 1 << Stadd::OFFSET_BITS
            {
                return limit(
                    "the stride of the blocks",
                    blocks.stride,
                    (1 << Stadd::OFFSET_BITS) / u64::from(blocks.count),
                );
            }
        }
        if *sps > 15 {
            return limit("the advance in slots", (*sps).into(), 15);
        }
        let most = u64::from(self.geometry.depth) - 1;
        if command.slots() > most {
            return limit("the number of slots", command.slots(), most);
        }
        if *sps != 0 && self.geometry.checked && !command.advances() {
            return Err(QueueError::CreditIgnored { queue: self.id, sps: *sps });
        }
        Ok(())
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

    /// Execute a short put, if `posting` is one and nothing stands in the way.
    #[inline(always)]
    fn post_shortly(&self, posting: &Posting) -> Shortly {
        let Ok(queue) = self.view() else { return Shortly::Not };
        if queue.is_session() {
            return Shortly::Not;
        }
        self.poster().put_shortly(&queue, &self.executor(), posting)
    }

    /// Post anything.
    #[inline(never)]
    fn post_slowly(&self, posting: &Posting) -> Result<(), Refused<()>> {
        self.examine(posting).map_err(failed)?;
        let queue = self.view().map_err(failed)?;
        let executor = self.executor();
        let mut work = Work::new();
        let posted = self.poster().post(&queue, &executor, posting, None, &mut work);
        executor.finish(work);
        posted
    }

    /// Post as many as there is room for; how many.
    fn post_many(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let queue = match self.view() {
            Ok(queue) => queue,
            Err(error) => return (0, Err(failed(error))),
        };
        if !queue.is_session() {
            for (at, posting) in postings.iter().enumerate() {
                if let Err(refused) = self.try_post(*posting) {
                    return (at, Err(refused));
                }
            }
            return (postings.len(), Ok(()));
        }
        queue.expect_turn();
        let (executor, mut work) = (self.executor(), Work::new());
        let examine = |posting: &Posting| self.examine(posting);
        let posted = self.poster().queue_up_many(&queue, &executor, postings, examine, &mut work);
        executor.finish(work);
        posted
    }

    /// Post at last, if it is `place`'s turn and there is room.
    fn post_in_turn(&self, posting: Posting, place: u64) -> Result<Option<()>> {
        self.help();
        let (queue, executor) = (self.view()?, self.executor());
        let mut work = Work::new();
        let mut poster = self.poster();
        // Asked before: what is executed between the two makes room.
        let stuck = poster.is_stuck(&queue, place);
        let posted = poster.post(&queue, &executor, &posting, Some(place), &mut work);
        drop(poster);
        executor.finish(work);
        match posted {
            Ok(()) => Ok(Some(())),
            Err(Refused::Failed(error, ())) => Err(error),
            Err(Refused::Full(())) if stuck => Err(FabricError::Deadlock { waiting: 1 }),
            Err(Refused::Full(())) => Ok(None),
        }
    }

    /// Close it; how many commands were never started, and the error that was not reported.
    fn shut(&mut self) -> (u64, Option<QueueError>) {
        let Ok(queue) = self.view() else { return (0, None) };
        let (segment, me) = (self.endpoint.segment(), self.endpoint.me());
        if let Some(at) = directory_at(self.id) {
            segment.word(at).store(0, SeqCst);
        }
        let executor = self.endpoint.executor();
        let mut quiet = true;
        if queue.is_session() {
            self.endpoint.queues().set_session(self.id, false);
            // Whoever executes now stops after its command, and nobody comes after this.
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
            let (mut own, segment) = (self.endpoint.own(), self.endpoint.segment());
            // Who still executes reads both.
            let taken = [Some(words), Arc::into_inner(tags).map(|table| table.taken)];
            for taken in taken.into_iter().flatten() {
                if quiet { own.free(segment, me, &taken) } else { own.leak(segment, &taken) }
            }
        }
        self.endpoint.queues().give_back(self.endpoint.job(), me, self.id);
        (remaining, error)
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.shut();
    }
}

/// A place in the line of those who wait for room; left when dropped.
struct InLine<'a> {
    queue: &'a Queue,
    place: u64,
}

impl Drop for InLine<'_> {
    fn drop(&mut self) {
        if self.queue.poster().leave_line(self.place) {
            // The next one may be asleep.
            self.queue.endpoint.segment().ring_for_notice();
        }
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
        waiting::until_found(&self.endpoint, deps, Watch::Notice, look).await
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.serve();
        Ok(self.poster().completion(&self.view()?)?)
    }

    fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        waiting::until_found(&self.endpoint, deps, Watch::Notice, CompletionLook(self))
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
        waiting::until_found(&self.endpoint, deps, Watch::Notice, NoticeLook(self))
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
