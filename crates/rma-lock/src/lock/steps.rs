//! The steps of the queue-based locks, as plain data.
//!
//! A protocol is written once, as a table: the next operation of a rank ([`Table::pending`]), and
//! the transition for its result ([`Table::resume`]). The lock drives the table over its fabric
//! (`queue/walk.rs`); the explicit-state models of `onesided-twin` search the same table.
//!
//! This module is for those models and for tests; it is not part of the crate's public interface.

pub use crate::lock::fair::Class;
pub use crate::lock::{
    counted::steps::{At as CountedAt, CountedTable, Steps as CountedSteps, Then},
    counted::{Rules, scheme::HandOver},
    fair::steps::{At as FairAt, FairTable, Steps as FairSteps},
    queue::{NodeId, Transition, Wait, wake_word},
};

use crate::Result;
use core::fmt;
use rdma_fabric::Amo;

/// A word that a step accesses.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Word {
    /// A word at the home, by its number.
    Home(u8),
    /// The word on which a node's owner waits.
    Wake(NodeId),
    /// The link of a node to its neighbours.
    Next(NodeId),
}

/// One operation of a rank, or one access to its own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Taking a queue node that is ready to be waited on. Returns its bits; 0 if there is none.
    Take,
    /// Making every put of this rank visible.
    FlushData,
    /// Making this rank's puts to the home visible.
    FlushHome,
    /// A remote atomic. Returns the previous value.
    Atomic(Word, Amo<u64>),
    /// Getting a word; loading it if it is in this rank's node.
    Get(Word),
    /// Getting a word of the home, after a short pause.
    Look(Word),
    /// Putting a word. Returns nothing.
    Put(Word, u64),
    /// Storing into a word of this rank's node. Returns nothing.
    Store(Word, u64),
    /// Starting the next turn of a node that is no longer in a queue. Returns nothing.
    Retire(NodeId),
    /// [`Op::Retire`] of this rank's node, which is then free to be taken again.
    GiveBack(NodeId),
    /// Waiting until this rank's node is woken. Returns the kind of wake-up ([`Wait`]); 0 if the
    /// wait was abandoned.
    Wait(NodeId),
}

/// The next operation of a rank.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The operation.
    pub op: Op,
    /// The transition that the rank publishes before it; withdrawn if the operation cannot be
    /// posted.
    pub announced: Option<Transition>,
}

impl From<Op> for Pending {
    #[inline]
    fn from(op: Op) -> Self {
        Pending { op, announced: None }
    }
}

/// The result of an acquisition or release.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// The lock is held.
    Inside,
    /// The lock was released.
    Out,
    /// A try would have had to wait.
    NotNow,
    /// The acquisition was abandoned; no cleanup is needed.
    GaveUp(Reason),
    /// An operation failed between two steps.
    Broken,
}

/// The reason why an acquisition was given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The reason is determined by the wait that ended.
    Told,
    /// Its future was dropped.
    Dropped,
    /// The holder limit is reached.
    Refused,
    /// The home word keeps all ranks out.
    KeptOut,
}

/// The state of the queue node of an acquisition or release that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// It stays in use: by the holder, or in a queue from which no rank takes it.
    Kept,
    /// It is released unchanged: no other rank has known it.
    Clean,
    /// It is released, and its words show whether it has left its queue.
    Dirty,
}

/// A lock's protocol.
pub trait Table {
    /// The position of an acquisition or release, with its local variables.
    type Steps: Copy + fmt::Debug + Send + Sync + 'static;

    /// Returns the next operation; `None` if `steps` have ended.
    fn pending(&self, steps: &Self::Steps) -> Option<Pending>;

    /// Continues after the pending operation has returned `found`. Returns the transition that the
    /// rank then publishes, if any.
    ///
    /// # Errors
    /// [`crate::LockError::Corrupt`].
    fn resume(&self, steps: &mut Self::Steps, found: u64) -> Result<Option<Transition>>;
}
