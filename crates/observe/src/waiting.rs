//! One wait, from its first poll until it is done or dropped.

use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::Recorder,
};
use rdma_fabric::Fabric;
use std::{
    future::{Future, poll_fn},
    pin::pin,
};

/// Notes the wait when it is dropped.
pub(crate) struct Waiting<'a> {
    recorder: &'a Recorder,
    /// For the clock.
    below: &'a Fabric,
    kind: WaitKind,
    /// What to write into the trace, but for its end.
    pub(crate) event: Option<Event>,
    /// For whom, as far as that is known.
    pub(crate) peer: Option<u32>,
    begin_ps: u64,
    /// Whether a poll found it not done.
    blocked: bool,
}

impl<'a> Waiting<'a> {
    pub(crate) fn begin(recorder: &'a Recorder, below: &'a Fabric, kind: WaitKind, peer: Option<u32>) -> Self {
        let begin_ps = below.now().as_picos();
        let event = EventKind::of_wait(kind).map(|kind| Event::new(kind, peer, begin_ps));
        Waiting { recorder, below, kind, event, peer, begin_ps, blocked: false }
    }

    /// Runs `future`, and see whether it has to wait.
    pub(crate) async fn until<T>(&mut self, future: impl Future<Output = T>) -> T {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            self.blocked |= poll.is_pending();
            poll
        })
        .await
    }
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        let end_ps = self.below.now().as_picos();
        let mut record = self.recorder.lock();
        if self.blocked {
            record.waited(self.kind, self.peer, self.begin_ps, end_ps);
        }
        if let Some(event) = self.event {
            record.happened(Event { peer: self.peer, end_ps, ..event });
        }
    }
}
