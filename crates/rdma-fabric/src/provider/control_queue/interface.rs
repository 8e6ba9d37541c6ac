//! The traits that a provider implements to support control queues.

use super::{
    Completion, ExpectedReports, MrqNotice, Pointers, Posting, ProgramCommand, QueueId, QueueLimits, QueueSpec, Stadd,
};
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
    /// Prepares commands for [`Queue::try_post_program`]; returns their number. `None` if that would
    /// not be cheaper than posting them, or if one of them cannot be posted.
    fn prepare(&self, commands: &[ProgramCommand]) -> Option<usize> {
        let _ = commands;
        None
    }
    /// Posts repetition `number` of the commands that were [prepared](Queue::prepare) as `program`.
    /// Returns false if it has posted none of them; then [`Queue::try_post`] gives the reason.
    fn try_post_program(&self, program: usize, number: u64) -> bool {
        let _ = (program, number);
        false
    }
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
    /// Takes reports of `expected` that have arrived, and subtracts them. Stops at any other report:
    /// [`Queue::poll_mrq`] and [`Queue::poll_tcq`] return it, as they do where this takes nothing.
    /// If the caller is going to wait for the rest, it may wait for a moment.
    fn take_expected(&self, expected: &mut ExpectedReports, is_wait: bool) {
        let _ = (expected, is_wait);
    }
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
