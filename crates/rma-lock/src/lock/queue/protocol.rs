//! The interface between a lock with a table of steps and its driver.

use super::{Call, NodeId, Queue, Transition, drive::Drive};
use crate::{
    LockError, Result,
    lock::detach::HasFabric,
    steps::{End, Node, Table},
};
use core::task::{Context, Poll};
use rdma_fabric::{FabricError, RemoteWord};
use std::borrow::Cow;

/// The driver's interface to a lock's steps.
pub(crate) trait Track: Copy {
    /// Returns the result of the steps; `None` before they have ended.
    fn end(&self) -> Option<End>;

    /// Returns whether the acquisition has not had any effect yet.
    fn is_outside(&self) -> bool;

    /// Notifies the steps that their future was dropped.
    fn set_dropped(&mut self);

    /// Returns this rank's node, if one is in use, and its state after the end.
    fn node(&self) -> Option<(NodeId, Node)>;

    /// Returns whether another rank woke this one.
    fn woken(&self) -> bool;

    /// Returns the word of the lock with which a holder entered, if it needs that later.
    fn word(&self) -> u64 {
        0
    }

    /// Returns whether the future was dropped.
    fn is_dropped(&self) -> bool;
}

/// The first step of a call, whose atomic was posted outside the table.
pub(crate) trait FirstStep<Steps>: Copy + Send + Unpin + 'static {
    /// Returns the steps that await this atomic.
    fn steps(self) -> Steps;
}

/// For locks whose calls always begin with their table.
#[derive(Clone, Copy)]
pub(crate) enum NoFirstStep {}

impl<Steps> FirstStep<Steps> for NoFirstStep {
    fn steps(self) -> Steps {
        match self {}
    }
}

/// The state of a holder: its queue node, if any, whether another rank woke it, and the word with
/// which it entered, if needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Held {
    pub(crate) node: Option<NodeId>,
    pub(crate) woken: bool,
    pub(crate) word: u64,
}

/// The part at one rank of a lock with a table of steps.
///
/// Functions that only call a function of [`Drive`] are compiled in the crate that implements them;
/// otherwise each crate that uses the lock would compile them again.
pub(crate) trait Protocol: HasFabric + Send + Sync + Sized + 'static {
    type Table: Table<Steps: Track>;
    /// A call that usually ends with its first atomic.
    type First: FirstStep<StepsOf<Self>>;

    fn table(&self) -> &Self::Table;

    fn queue(&self) -> &Queue;

    /// Returns a word at the home, by its number, if it is already resolved.
    fn home_now(&self, number: u8) -> Option<&RemoteWord<u64>>;

    /// Returns a word at the home.
    fn home_word(&self, number: u8) -> Result<Cow<'_, RemoteWord<u64>>, FabricError> {
        if let Some(word) = self.home_now(number) {
            return Ok(Cow::Borrowed(word));
        }
        // Resolved each time: a rank that accesses this word has to wait anyway.
        let queue = self.queue();
        Ok(Cow::Owned(queue.fabric.remote_word(queue.at_home(8 * u64::from(number))?)?))
    }

    /// Returns what a call has acquired that ends because its first atomic has returned `found`; `None`
    /// if it has to continue.
    fn ends_at_once(&self, first: Self::First, found: u64) -> Option<Option<Held>>;

    /// Reacts to the end of an acquisition or release.
    fn ended(&self, _steps: &StepsOf<Self>) {}

    /// Reacts to a change that this rank has published.
    fn continued(&self) {}

    /// Continues after an operation on another rank's node has failed, if the lock tolerates that;
    /// otherwise returns the error.
    fn failed(&self, _steps: &mut StepsOf<Self>, error: LockError) -> Result<Option<Transition>> {
        Err(error)
    }

    /// [`Call::advance_first`].
    fn poll_first(call: &mut Call<Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Option<Held>>>>;

    /// [`Drive::resume`].
    fn resume(drive: &mut Drive<Self>, cx: &mut Context<'_>) -> Poll<Result<Option<Held>>>;

    /// [`Drive::detach`].
    fn detach(drive: Box<Drive<Self>>);
}

pub(crate) type StepsOf<P> = <<P as Protocol>::Table as Table>::Steps;
