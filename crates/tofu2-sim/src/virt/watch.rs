//! Waiting for own memory or notices, and for whom.

use super::{control_queue::Want, memory::Loc};

/// What a waiting future of a rank waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum What {
    /// A write to these bytes of the rank's own memory.
    Word(Loc),
    Notice,
    /// Something of an own control queue.
    Queue(u32, Want),
    /// The end of an operation of barrier gates, which wakes the rank when it comes.
    Gate,
}

/// A registered wait.
#[derive(Clone, Copy, Debug)]
pub(super) struct Watch {
    pub(super) id: u32,
    pub(super) what: What,
    /// A rank of the wait's dependencies that has not left; it wakes the waiter when it does.
    pub(super) dependency: Option<u32>,
    /// Of a queue: the waiter was woken and has not looked since.
    pub(super) told: bool,
    /// Nothing can happen any more: how many ranks wait.
    pub(super) deadlock: Option<u32>,
}
