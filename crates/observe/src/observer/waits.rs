//! Waits, from their first unsuccessful poll until they end.

use super::{Observer, slab::Slab};
use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::{Recorder, only},
};
use rdma_fabric::{
    Rank,
    provider::{Ended, WaitFor, WaitState},
};
use std::{mem, task::Poll};

/// A wait that has begun.
#[derive(Debug)]
pub(super) struct Wait {
    /// The wait state of the provider below.
    pub(super) below: WaitState,
    /// The event, without its end.
    pub(super) event: Event,
    /// Whether a poll found it pending.
    pub(super) blocked: bool,
}

impl Wait {
    pub(super) fn new(event: Event) -> Self {
        Wait { below: WaitState::default(), event, blocked: false }
    }
}

/// The waits that have begun. Outer wait states hold their numbers: the provider below may need all
/// of a wait state for itself.
#[derive(Debug, Default)]
pub(super) struct Waits(Slab<Wait>);

impl Waits {
    /// Stores a wait that begins, and its number in `slot`.
    pub(super) fn begin(&self, wait_state: &mut WaitState, event: Event) {
        wait_state.0[0] = self.0.put(Wait::new(event)).get();
    }

    /// Polls a wait that has begun.
    pub(super) fn poll<T>(&self, wait_state: &WaitState, poll: impl FnOnce(&mut WaitState) -> Poll<T>) -> Poll<T> {
        let number = wait_state.0[0];
        // Not while the lock is held.
        let mut below = self.0.with(number, |wait| mem::take(&mut wait.below)).unwrap_or_default();
        let stands = poll(&mut below);
        self.0.with(number, |wait| {
            wait.below = below;
            wait.blocked |= stands.is_pending();
        });
        stands
    }

    /// Takes the wait of a state and empties the state; `None` if no wait began.
    pub(super) fn end(&self, wait_state: &mut WaitState) -> Option<Wait> {
        self.0.take(mem::take(wait_state).0[0])
    }
}

impl Recorder {
    /// Records a wait that has ended.
    pub(super) fn ended(&self, wait: &Wait, kind: WaitKind, end_ps: u64) {
        let event = Event { end_ps, ..wait.event };
        let mut record = self.lock();
        if wait.blocked {
            record.waited(kind, event.peer, event.begin_ps, end_ps);
        }
        if EventKind::of_wait(kind).is_some() {
            record.happened(event);
        }
    }
}

impl Observer {
    /// Returns the event of a wait that begins now, and counts the wait if all waits of its kind
    /// are counted.
    pub(super) fn beginning(&self, wait_for: &WaitFor<'_>) -> Event {
        let now_ps = self.now_ps();
        let counts = &mut self.recorder.lock().counts;
        match wait_for {
            WaitFor::Word(word, deps) => {
                counts.word_waits += 1;
                Event::new(EventKind::WaitWord, only(deps), now_ps).at(word.addr(), word.len())
            }
            WaitFor::Notice(deps) => Event::new(EventKind::WaitNotice, only(deps), now_ps),
            WaitFor::Room(target) => Event::new(EventKind::WaitRoom, target.map(Rank::number), now_ps),
            WaitFor::Flush(target) => {
                let target = target.map(Rank::number);
                counts.with(target).flushes += 1;
                Event::new(EventKind::Flush, target, now_ps)
            }
            WaitFor::Until(_) => Event::new(EventKind::Sleep, None, now_ps),
            WaitFor::Busy(_) | WaitFor::Charge(..) => Event::new(EventKind::Compute, None, now_ps),
        }
    }

    /// Records a wait that has ended.
    pub(super) fn wait_ends(&self, wait: &Wait, wait_for: &WaitFor<'_>, ended: Ended) {
        let end_ps = self.now_ps();
        let kind = match wait_for {
            WaitFor::Word(..) => WaitKind::Word,
            WaitFor::Notice(_) if ended == Ended::Reached => return self.notice_was_awaited(wait, end_ps),
            WaitFor::Notice(_) => WaitKind::Notice,
            WaitFor::Room(_) => WaitKind::Room,
            WaitFor::Flush(_) => WaitKind::Flush,
            WaitFor::Until(_) | WaitFor::Busy(_) | WaitFor::Charge(..) => return self.spent(wait, end_ps),
        };
        self.recorder.ended(wait, kind, end_ps);
    }

    /// Records a wait that ended with the notice that this thread has just taken: the notice's
    /// event began when the wait did.
    fn notice_was_awaited(&self, wait: &Wait, end_ps: u64) {
        let Some((peer, number)) = self.taken.take() else {
            return self.recorder.ended(wait, WaitKind::Notice, end_ps);
        };
        let (peer, begin_ps) = (Some(peer), wait.event.begin_ps);
        let mut record = self.recorder.lock();
        if wait.blocked {
            record.waited(WaitKind::Notice, peer, begin_ps, end_ps);
        }
        let is_it = |event: &Event| (event.kind, event.peer, event.notice) == (EventKind::Notice, peer, Some(number));
        if let Some(arrived) = record.events.as_mut().and_then(|events| events.newest(is_it)) {
            (arrived.begin_ps, arrived.end_ps) = (begin_ps, end_ps);
        }
    }

    /// Records time that the program spent computing or sleeping. In wall-clock time, computing is
    /// not a call of the fabric.
    fn spent(&self, wait: &Wait, end_ps: u64) {
        if wait.event.kind == EventKind::Sleep || end_ps.saturating_sub(wait.event.begin_ps) > 1_000_000 {
            self.recorder.lock().happened(Event { end_ps, ..wait.event });
        }
    }
}
