//! Control queues: commands and waits.
//!
//! Commands are recorded when they are posted. Only the provider knows when one is *executed*, so a
//! trace shows it where it was posted.

use super::{
    Observer,
    slab::Latest,
    waits::{Wait, Waits},
};
use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::{Recorder, only},
};
use rdma_fabric::{
    Deps, Fabric, FabricError, Refused, Region, Result,
    control_queue::{
        Command, Completion, MrqKind, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd,
    },
    provider::{Ended, Queue, QueueSide, Queues, WaitState},
};
use std::task::{Context, Poll};

/// Returns a command's target, if it has one.
fn target_of(posting: &Posting) -> Option<u32> {
    posting.command.target().map(|queue| queue.rank().number())
}

/// Returns a command's kind in counters and traces, and the number of bytes it moves.
fn described(posting: &Posting) -> (EventKind, u64) {
    let put = if posting.remote_notice { EventKind::PutNotify } else { EventKind::Put };
    match &posting.command {
        Command::Put { len, blocks, .. } => (put, u64::from(*len) * u64::from(blocks.count)),
        Command::PutInline { bytes, .. } => (put, bytes.as_bytes().len() as u64),
        Command::Get { len, blocks, .. } => (EventKind::Get, u64::from(*len) * u64::from(blocks.count)),
        Command::Nop => (EventKind::Nop, 0),
        Command::Atomic { amo, width, .. } => (EventKind::of_atomic(amo), *width as u64),
    }
}

impl Recorder {
    /// Records a command that has just been posted, at `now_ps`.
    fn commanded(&self, now_ps: u64, posting: &Posting) {
        let ((kind, bytes), peer) = (described(posting), target_of(posting));
        let mut record = self.lock();
        record.counts.note(kind, peer, posting.command.commands().into(), bytes);
        if let Some(peer) = peer.filter(|_| posting.remote_notice) {
            record.counts.sent_by_queue(peer, posting.command.commands().into());
        }
        record.happened(Event { bytes, ..Event::new(kind, peer, now_ps) });
    }
}

impl Queues for Observer {
    fn limits(&self) -> QueueLimits {
        self.below.provider().queues().map_or(QueueLimits::NONE, |queues| queues.limits())
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>> {
        let none = FabricError::Unsupported { feature: &"control queues" };
        let below = self.below.provider().queues().ok_or(none)?.open(spec)?;
        Ok(observed_queue(&self.below, below, self.recorder.clone()))
    }
}

/// Wraps a control queue of `fabric`, which some code opened past it, so that its commands and waits are
/// recorded.
#[must_use]
pub fn observed_queue(fabric: &Fabric, below: Box<dyn Queue>, recorder: Recorder) -> Box<dyn Queue> {
    let (fabric, waits, noticed) = (fabric.clone(), Waits::default(), Latest::default());
    Box::new(ObservedQueue { below, fabric, recorder, waits, noticed })
}

#[derive(Debug)]
struct ObservedQueue {
    below: Box<dyn Queue>,
    /// The fabric, for its clock.
    fabric: Fabric,
    recorder: Recorder,
    waits: Waits,
    /// The rank whose notice each thread took last.
    noticed: Latest<u32>,
}

impl ObservedQueue {
    fn now_ps(&self) -> u64 {
        self.fabric.provider().now().as_picos()
    }

    /// Ends the wait of a state, and that of the state below.
    fn ended(&self, wait_state: &mut WaitState, side: Option<QueueSide>, ended: Ended) -> Option<Wait> {
        let mut wait = self.waits.end(wait_state)?;
        if !wait.below.is_empty() {
            self.below.end_wait(&mut wait.below, side, ended);
        }
        Some(wait)
    }

    fn note(&self, wait: &Wait, side: Option<QueueSide>) {
        let kind = match side {
            Some(QueueSide::Completion) => WaitKind::Operation,
            Some(QueueSide::Notice) => WaitKind::Notice,
            None => WaitKind::Room,
        };
        self.recorder.ended(wait, kind, self.now_ps());
    }

    fn full(&self, posting: &Posting, change: impl FnOnce(&mut u64)) {
        change(&mut self.recorder.lock().counts.with(target_of(posting)).full);
    }
}

impl Queue for ObservedQueue {
    fn id(&self) -> QueueId {
        self.below.id()
    }

    fn spec(&self) -> QueueSpec {
        self.below.spec()
    }

    fn pointers(&self) -> Pointers {
        self.below.pointers()
    }

    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd> {
        self.below.register(region, fixed)
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.below.set_read_only(at, read_only)
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.below.deregister(at)
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let (posted, outcome) = self.below.try_post(postings);
        let now_ps = self.now_ps();
        postings.iter().take(posted).for_each(|posting| self.recorder.commanded(now_ps, posting));
        if let (Err(Refused::Full(())), Some(refused)) = (&outcome, postings.get(posted)) {
            self.full(refused, |full| *full += 1);
        }
        (posted, outcome)
    }

    fn poll_post(
        &self,
        wait_state: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if wait_state.is_empty() {
            // The posting has just found no room; it is not refused but waits.
            self.full(posting, |full| *full = full.saturating_sub(1));
            let target = target_of(posting);
            self.waits.begin(wait_state, Event::new(EventKind::WaitRoom, target, self.now_ps()));
        }
        let stands = self.waits.poll(wait_state, |below| self.below.poll_post(below, posting, deps, cx));
        if let Poll::Ready(posted) = &stands {
            let ended = if matches!(posted, Ok(())) { Ended::Reached } else { Ended::GivenUp };
            self.end_wait(wait_state, None, ended);
            if posted.is_ok() {
                self.recorder.commanded(self.now_ps(), posting);
            }
        }
        stands
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        self.below.poll_tcq()
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        let notice = self.below.poll_mrq()?;
        if let Some(notice) = &notice {
            let peer = notice.peer.rank().number();
            self.noticed.set(peer);
            if matches!(notice.kind, MrqKind::RemotePut | MrqKind::RemoteGet | MrqKind::RemoteAtomic) {
                self.recorder.lock().counts.taken_by_queue(peer);
            }
        }
        Ok(notice)
    }

    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        if wait_state.is_empty() {
            self.waits.begin(wait_state, Event::new(EventKind::WaitNotice, only(&deps), self.now_ps()));
        }
        self.waits.poll(wait_state, |below| self.below.poll_wait(below, side, deps, cx))
    }

    fn end_wait(&self, wait_state: &mut WaitState, side: Option<QueueSide>, ended: Ended) {
        if let Some(mut wait) = self.ended(wait_state, side, ended) {
            if side == Some(QueueSide::Notice) && ended == Ended::Reached {
                wait.event.peer = self.noticed.take().or(wait.event.peer);
            }
            self.note(&wait, side);
        }
    }

    fn close(self: Box<Self>) -> Result<u64> {
        self.below.close()
    }
}
