//! The acts of a rank's program and the answers to them: its entire interaction with the world.

use crate::{cell::CellPart, dropped::Holding, loss::Ranks};
use rdma_fabric::{Amo, Notice, Rank};
use std::rc::Rc;

/// The name of a rank's operation whose handle is still held: the smallest free number.
pub(crate) type HandleId = u8;
/// The id of an operation whose handle was dropped.
pub(crate) const NO_HANDLE: HandleId = u8::MAX;

/// One act of a program. *Notifications* need no answer; all other acts do.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Act {
    /// Notification: an operation is posted.
    Post(Op),
    /// Notification: a handle is dropped before its result was taken.
    Forget(HandleId),
    /// Notification: the continuation depends on this value only.
    Step(u128),
    /// Notification: a remark for the timeline.
    Note(Rc<str>),
    /// Notification: a place in another rank's region is resolved or used. Only for regions that no
    /// run has addressed too late yet.
    Reach(Holding),
    /// The rank drops one of its own regions. A notification as long as no run has addressed the
    /// region after its drop.
    Drop(Holding),

    /// Reads local memory.
    Load(CellPart),
    /// Writes local memory.
    Store(CellPart, u64),
    /// A fact is changed and read.
    Fact(CellPart, Amo<u64>),
    /// Is the operation complete? If so, the slot is free again.
    Await(HandleId),
    /// Is the operation complete? Its handle stays either way.
    Test(HandleId),
    /// Reads a word of local memory for which the program waits.
    Watch(CellPart),
    TryNotice,
    NextNotice,
    Now,
    /// Has this time been reached?
    Sleep(u64),
    /// The program yields to others without waiting for anything.
    Yield,
    /// Which of the rank's tasks runs next?
    Choose,
    /// Is the detached future polled immediately (1) or later (0)?
    Detach,
    /// Does this rank know that another one is lost (1) or not (0)?
    IsLost(Rank),
    /// Has its owner dropped this region (1) or not (0)?
    IsDropped(Holding),
    /// Which of these ranks, as bits, does this rank know to be lost? Asked by an unsatisfied wait,
    /// at the moment of its check.
    LostAmong(Ranks),

    /// The end of the rank.
    Done,
    /// A panic, or an error.
    Failed(Rc<str>),
    /// The program has exceeded the bound on acts without an answer, and may never end.
    Endless,
}

/// The answer to an act.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Answer {
    /// It is done.
    Done,
    Value(u64),
    /// The result of an operation with several pieces.
    Words(Rc<[u64]>),
    /// Not yet.
    Pending,
    Notice(Notice),
    /// The number of a task.
    Task(u8),
    /// The operation has failed, because this rank is lost.
    Lost(Rank),
    /// The operation has failed, because its owner has dropped this region.
    Stale(Holding),
}

/// An operation to be posted.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Op {
    Atomic {
        slot: HandleId,
        target: Holding,
        at: CellPart,
        amo: Amo<u64>,
    },
    /// The pieces, and their destinations if the sink is registered memory, with its region.
    Get {
        slot: HandleId,
        target: Holding,
        pieces: Box<[(CellPart, Option<CellPart>)]>,
        sink: u32,
    },
    /// A put whose bytes have been copied. `ordered`: it arrives after the poster's earlier puts to
    /// the same target.
    Put {
        target: Holding,
        ordered: bool,
        pieces: Box<[(CellPart, u64)]>,
        notice: Option<Notice>,
    },
    /// A put whose bytes are still read from own registered memory: to, from.
    PutFrom {
        slot: HandleId,
        target: Holding,
        ordered: bool,
        pieces: Box<[(CellPart, CellPart)]>,
        notice: Option<Notice>,
    },
    /// A flush, complete when no put posted before it is in flight to the target (`None`: to any
    /// target).
    Flush {
        slot: HandleId,
        target: Option<Rank>,
    },
}
