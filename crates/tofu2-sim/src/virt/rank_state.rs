//! What is kept per rank: little for all, the rest on first use.

use super::{flush::Unflushed, prefetch::Near, receive_queue::ReceiveQueue, watch::Watch};
use std::{collections::VecDeque, task::Waker};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Status {
    Running,
    /// Its program has ended well.
    Finished,
    /// Its program failed.
    Lost,
}

#[derive(Debug)]
pub(super) struct RankState {
    /// Until when the rank's CPU is busy, in picoseconds.
    pub(super) cpu_until: u64,
    /// Bytes of memory registered.
    pub(super) registered: u64,
    /// Operations posted and not complete, and commands of control queues under way.
    pub(super) outstanding: u32,
    /// Number of symmetric allocations so far.
    pub(super) symmetric: u32,
    /// Number of registered waits.
    pub(super) watching: u32,
    /// Where its fabric is, and what it passed to its last atomic.
    pub(super) near: [Near; 2],
    /// In the run queue.
    pub(super) queued: bool,
    pub(super) status: Status,
    /// Not running, and none of its operations is under way any more.
    pub(super) departed: bool,
    extra: Option<Box<Extra>>,
}

const _: () = assert!(size_of::<RankState>() <= 48);

/// State that most ranks of a large job never need.
#[derive(Debug, Default)]
pub(super) struct Extra {
    pub(super) watches: Vec<Watch>,
    pub(super) next_watch: u32,
    /// Ranks to wake when this one leaves.
    pub(super) dependents: Vec<u32>,
    pub(super) unflushed: Unflushed,
    /// Tickets of those who wait for room in the own TOQ.
    pub(super) room_line: VecDeque<u64>,
    pub(super) receive_queue: ReceiveQueue,
    /// Open control queues.
    pub(super) queues: Vec<u32>,
    /// Commands of control queues under way; counted in `outstanding` too.
    pub(super) commands: u32,
    /// Wakers of combinators that want to be told which of their parts to poll.
    pub(super) wakers: Vec<Waker>,
}

impl RankState {
    pub(super) fn new() -> Self {
        RankState {
            cpu_until: 0,
            registered: 0,
            outstanding: 0,
            symmetric: 0,
            watching: 0,
            near: [Near::default(); 2],
            queued: true,
            status: Status::Running,
            departed: false,
            extra: None,
        }
    }

    /// Operations posted and not complete, without commands of control queues.
    pub(super) fn operations(&self) -> u32 {
        self.outstanding - self.extra.as_deref().map_or(0, |extra| extra.commands)
    }

    /// The rare state, made now if need be.
    pub(super) fn extra(&mut self) -> &mut Extra {
        self.extra.get_or_insert_default()
    }

    /// The rare state, if there is any.
    #[inline]
    pub(super) fn existing(&mut self) -> Option<&mut Extra> {
        self.extra.as_deref_mut()
    }

    pub(super) fn take_extra(&mut self) -> Option<Box<Extra>> {
        self.extra.take()
    }
}
