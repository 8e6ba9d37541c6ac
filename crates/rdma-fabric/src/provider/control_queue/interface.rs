//! The traits that a provider implements to support control queues.

use super::{Completion, MrqNotice, Pointers, Posting, QueueId, QueueLimits, QueueSpec, Stadd};
use crate::{
    Deps, Refused, Region, Result,
    provider::{Ended, WaitState},
};
use core::{
    any::Any,
    fmt,
    task::{Context, Poll},
};

/// The control queues of a rank: programs open them with
/// `fabric_offload::ControlQueue::open`.
pub trait Queues {
    /// Returns the limits of the rank's queues.
    fn limits(&self) -> QueueLimits;
    /// Opens a queue.
    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>>;
}

/// The ring of a queue that a wait observes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueueSide {
    /// The transmit complete queue. The caller has checked it without success.
    Completion,
    /// The message receive queue. The caller has checked it without success.
    Notice,
}

/// An open control queue: `fabric_offload::ControlQueue`, for programs.
pub trait Queue: Any + fmt::Debug + Send + Sync {
    /// Returns the queue's name.
    fn id(&self) -> QueueId;
    /// Returns the specification with which the queue was opened.
    fn spec(&self) -> QueueSpec;
    /// Returns the queue's pointers.
    fn pointers(&self) -> Pointers;
    /// Registers a region, under the fixed tag if one is given.
    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd>;
    /// Refuses peers' writes, or allows them again.
    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()>;
    /// Ends a registration.
    fn deregister(&self, at: Stadd) -> Result<()>;
    /// Posts as many commands as there is room for, ahead of those that wait for room; returns the
    /// number posted, and the reason why it is not all.
    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>);
    /// Posts one command, in the order of those that wait for room.
    fn poll_post(
        &self,
        wait_state: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>>;
    /// Takes the next completion.
    fn poll_tcq(&self) -> Result<Option<Completion>>;
    /// Takes the next notice.
    fn poll_mrq(&self) -> Result<Option<MrqNotice>>;
    /// Waits until the caller has to check `side` again.
    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>>;
    /// Ends a wait at a `side` or, without one, for room. Called for every wait state that is not
    /// empty. The preceding poll of that side found the awaited entry.
    fn end_wait(&self, wait_state: &mut WaitState, side: Option<QueueSide>, ended: Ended);
    /// Closes the queue; returns the number of commands that never started.
    fn close(self: Box<Self>) -> Result<u64>;
}
