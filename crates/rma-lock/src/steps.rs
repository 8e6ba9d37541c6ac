//! The steps of the locks with queues, as plain data.
//!
//! A protocol is written once, as a table: what a rank does next ([`Table::pending`]), and where
//! what that finds leads ([`Table::resume`]). The lock drives the table over its fabric
//! (`queue/drive.rs`); the explicit-state models of `onesided-twin` search the same table.
//!
//! For those models and for tests; nothing here is part of the crate's interface.

pub use crate::fair::Class;
pub use crate::{
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
    /// What a node says about its neighbours.
    Next(NodeId),
}

/// One operation of a rank, or one access to its own memory.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Op {
    /// Taking a queue node that is ready to be waited on. Finds its bits; 0 if none could be had.
    Take,
    /// Making every put of this rank visible.
    FlushData,
    /// Making this rank's puts to the home visible.
    FlushHome,
    /// A remote atomic. Finds the previous value.
    Atomic(Word, Amo<u64>),
    /// Getting a word; loading it if it is in this rank's node.
    Get(Word),
    /// Getting a word of the home, after a moment.
    Look(Word),
    /// Putting a word. Finds nothing.
    Put(Word, u64),
    /// Storing into a word of this rank's node. Finds nothing.
    Store(Word, u64),
    /// Beginning the next turn of a node that is in no queue any more. Finds nothing.
    Retire(NodeId),
    /// [`Op::Retire`] of this rank's node, which is then free to be taken again.
    GiveBack(NodeId),
    /// Waiting until this rank's node is woken. Finds how it was ([`Wait`]); 0 if the wait was given
    /// up.
    Wait(NodeId),
}

/// What a rank is about to do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Pending {
    /// The operation.
    pub op: Op,
    /// What the rank publishes before it; taken back if the operation can't be posted.
    pub announced: Option<Transition>,
}

impl From<Op> for Pending {
    #[inline]
    fn from(op: Op) -> Self {
        Pending { op, announced: None }
    }
}

/// How an acquisition or release ended.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum End {
    /// The lock is held.
    Inside,
    /// The lock was released.
    Out,
    /// A try found somebody in the way.
    NotNow,
    /// The acquisition was given up, and nothing is left to undo.
    GaveUp(Reason),
    /// An operation failed between two steps.
    Broken,
}

/// Why an acquisition was given up.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Reason {
    /// The wait that ended says why.
    Told,
    /// Nobody awaits it any more.
    Dropped,
    /// Too many hold the lock.
    Refused,
    /// The home word keeps everybody out.
    KeptOut,
}

/// What becomes of the queue node of an acquisition or release that has ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Node {
    /// It stays taken: by the holder, or by a queue from which nobody takes it.
    Kept,
    /// It is given back as it was: nobody else has known it.
    Fresh,
    /// It is given back, and its words say whether it is out of its queue.
    Worn,
}

/// A lock's protocol.
pub trait Table {
    /// The position of an acquisition or release, and what it remembers.
    type Steps: Copy + fmt::Debug + Send + Sync + 'static;

    /// Returns what is done next; `None` if `steps` have ended.
    fn pending(&self, steps: &Self::Steps) -> Option<Pending>;

    /// Continues after the pending operation has found `found`. Returns what the rank publishes
    /// then.
    ///
    /// # Errors
    /// [`crate::LockError::Corrupt`].
    fn resume(&self, steps: &mut Self::Steps, found: u64) -> Result<Option<Transition>>;
}
