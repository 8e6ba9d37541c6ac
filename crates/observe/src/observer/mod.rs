//! The provider between a program and its fabric, which records operations and waits.

mod gates;
mod operations;
mod queues;
mod slab;
mod waits;

use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::Recorder,
};
use operations::Operation;
pub use queues::observed_queue;
use rdma_fabric::{
    AccessPolicy, Amo, Blocks, Fabric, Multicasts, Notice, OwnedMemory, Rank, Region, Result, forward,
    provider::{
        BarrierUnit, BlockPuts, Boxed, Colours, Ended, HelperTask, Multicast, Place, Posted, Protected, Provider,
        Queues, Sink, Source, Token, WaitFor, WaitState,
    },
};
use slab::{Latest, Slab};
use std::{
    future::poll_fn,
    task::{Context, Poll},
};
use waits::{Wait, Waits};

/// Wraps `fabric` so that every operation and wait is recorded in a [`Recorder`].
///
/// Nothing else changes: results, errors, order and virtual time are those of `fabric`, except that
/// there are no references to protected memory. An operation costs the same as with memory that
/// is not mapped, plus two uncontended locks and two clock reads.
#[must_use]
pub fn observed(fabric: &Fabric, recorder: Recorder) -> Fabric {
    fabric.layered(Observer::new(fabric.clone(), recorder))
}

#[derive(Debug)]
struct Observer {
    below: Fabric,
    recorder: Recorder,
    operations: Slab<Operation>,
    waits: Waits,
    /// The notice that each thread took last: its poster, and its number among the poster's
    /// notices.
    taken: Latest<(u32, u64)>,
}

impl Observer {
    fn new(below: Fabric, recorder: Recorder) -> Self {
        let (operations, waits, taken) = (Slab::default(), Waits::default(), Latest::default());
        Observer { below, recorder, operations, waits, taken }
    }

    fn now_ps(&self) -> u64 {
        self.below.provider().now().as_picos()
    }

    /// Creates the event of an operation on `place` that is posted now.
    fn event(&self, kind: EventKind, place: &Place) -> Event {
        Event::new(kind, Some(place.rank().number()), self.now_ps()).at(place.addr(), place.len())
    }

    /// Waits for `future`, which ends with a registration or the end of one.
    fn registering<'a, T: 'a>(&'a self, mut future: Boxed<'a, T>) -> Boxed<'a, T> {
        Box::pin(async move {
            let event = Event::new(EventKind::Registration, None, self.now_ps());
            let mut guard = Registering { observer: self, wait: Wait::new(event) };
            poll_fn(|cx| {
                let poll = future.as_mut().poll(cx);
                guard.wait.blocked |= poll.is_pending();
                poll
            })
            .await
        })
    }
}

/// A registration that is waited for; recorded when this is dropped.
struct Registering<'a> {
    observer: &'a Observer,
    wait: Wait,
}

impl Drop for Registering<'_> {
    fn drop(&mut self) {
        self.observer.recorder.ended(&self.wait, WaitKind::Registration, self.observer.now_ps());
    }
}

impl Provider for Observer {
    forward!(alloc, adopt, resolve_hidden, read, write, wake, now, detach, abort);

    fn alloc_symmetric(&self, bytes: usize) -> Boxed<'_, Result<Region>> {
        self.registering(self.below.provider().alloc_symmetric(bytes))
    }

    fn release(&self, region: Region) -> Boxed<'_, Result<OwnedMemory>> {
        self.registering(self.below.provider().release(region))
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        let kind = if notice.is_some() { EventKind::PutNotify } else { EventKind::Put };
        let event = self.event(kind, to);
        self.posted(self.below.provider().put(to, from, notice), event)
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        let event = self.event(EventKind::Get, from);
        self.posted(self.below.provider().get(from, to), event)
    }

    fn copy(&self, to: &Place, from: &Place) -> Posted {
        let event = self.event(EventKind::Copy, to);
        self.posted(self.below.provider().copy(to, from), event)
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        let event = self.event(EventKind::of_atomic(&amo), word);
        self.posted(self.below.provider().atomic(word, amo), event)
    }

    fn nop(&self) -> Posted {
        let event = Event::new(EventKind::Nop, None, self.now_ps());
        self.posted(self.below.provider().nop(), event)
    }

    fn poll(&self, token: &mut Token, into: Sink<'_>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        self.poll_operation(token, into, cx)
    }

    fn test(&self, token: &Token) -> bool {
        self.test_operation(token)
    }

    fn forget(&self, token: Token) {
        self.forget_operation(&token);
    }

    fn try_notice(&self, waiting: bool) -> Result<Option<Notice>> {
        let begin_ps = self.now_ps();
        let notice = self.below.provider().try_notice(waiting)?;
        if let Some(notice) = &notice {
            let (peer, number) = (notice.from.number(), self.recorder.taken(notice));
            if waiting {
                self.taken.set((peer, number));
            }
            let event = Event::new(EventKind::Notice, Some(peer), begin_ps).arrived(notice, number);
            let end_ps = self.now_ps();
            self.recorder.lock().happened(Event { end_ps, ..event });
        }
        Ok(notice)
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        if let WaitFor::Charge(..) = wait_for {
            return self.below.provider().poll_wait(wait_state, wait_for, cx);
        }
        if wait_state.is_empty() {
            self.waits.begin(wait_state, self.beginning(&wait_for));
        }
        self.waits.poll(wait_state, |below| self.below.provider().poll_wait(below, wait_for, cx))
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        if let WaitFor::Charge(..) = wait_for {
            return self.below.provider().end_wait(wait_state, wait_for, ended);
        }
        // If no wait began, the first check of the word succeeded.
        let mut wait = self.waits.end(wait_state).unwrap_or_else(|| Wait::new(self.beginning(&wait_for)));
        if !wait.below.is_empty() || matches!(wait_for, WaitFor::Word(..)) {
            self.below.provider().end_wait(&mut wait.below, wait_for, ended);
        }
        self.wait_ends(&wait, &wait_for, ended);
    }

    fn multicast(&self) -> Option<&dyn Multicast> {
        self.below.provider().multicast().map(|_| self as _)
    }

    fn block_puts(&self) -> Option<&dyn BlockPuts> {
        self.below.provider().block_puts().map(|_| self as _)
    }

    fn queues(&self) -> Option<&dyn Queues> {
        self.below.provider().queues().map(|_| self as _)
    }

    fn gates(&self) -> Option<&dyn BarrierUnit> {
        self.below.provider().gates().map(|_| self as _)
    }

    fn colours(&self) -> Option<&dyn Colours> {
        self.below.provider().colours().map(|_| self as _)
    }

    fn protected(&self) -> Option<&dyn Protected> {
        self.below.provider().protected().map(|_| self as _)
    }

    fn helper(&self, _: &Fabric, name: &'static str, task: HelperTask) -> Result<()> {
        let recorder = self.recorder.clone();
        self.below.provider().helper(&self.below, name, Box::new(move |below| task(observed(&below, recorder))))
    }
}

/// A multicast is recorded as a put to each member, of which the first one ends with it.
impl Multicast for Observer {
    fn reaches(&self, members: &[Rank]) -> Result<()> {
        Multicasts::reach(&self.below, members)
    }

    fn multicast(&self, to: &[Place], from: Source<'_>) -> Posted {
        let put = |to: &Place| self.event(EventKind::Put, to);
        let first = put(&to[0]);
        let below = self.below.provider().multicast().expect("there are some");
        let posted = below.multicast(to, from);
        if matches!(posted, Posted::Complete(_) | Posted::Pending(_)) {
            to[1..].iter().for_each(|to| drop(self.posted(Posted::Complete(0), put(to))));
        }
        self.posted(posted, first)
    }
}

/// A put of blocks is recorded as one put of the bytes of all blocks.
impl BlockPuts for Observer {
    fn put_blocks(&self, to: &Place, from: &Place, len: usize, blocks: Blocks) -> Posted {
        let event = self.event(EventKind::Put, to).at(to.addr(), len.saturating_mul(blocks.count as usize));
        let below = self.below.provider().block_puts().expect("there are some");
        self.posted(below.put_blocks(to, from, len, blocks), event)
    }
}

/// Protected memory is observed as well.
impl Protected for Observer {
    fn open(&self, like: &Fabric, policy: AccessPolicy) -> Result<Fabric> {
        // Accesses through references would not be seen.
        let below = self.below.protected(policy.without_references())?;
        Ok(like.sibling(Observer::new(below, self.recorder.clone())))
    }

    fn abandon(&self, region: Region) {
        region.abandon(&self.below);
    }
}
