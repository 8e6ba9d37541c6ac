//! The state of an acquisition or release: its next step, and what it knows.

use super::INSIDE;
use crate::{
    lock::{
        fair::Class,
        queue::{NodeId, Track},
    },
    steps::{End, Node},
};

/// The next step.
#[allow(missing_docs, reason = "named as on the locks' page")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// The acquisition or release has ended.
    End(End),
    /// Making the holder's puts visible before it leaves.
    Flush,
    Take,
    F1,
    /// Checking whether the reader ahead is inside, for a try.
    Ahead,
    /// F1 behind a reader inside, for a try.
    Behind,
    F2,
    F3,
    F4,
    F5,
    F5Back,
    F6,
    /// F6: the wait has ended without a wake.
    GiveUp,
    F7,
    F7Count,
    G1Load,
    G1,
    G1Mark,
    /// G1 of the last in the queue, if it was not woken: the mark in the node is withdrawn.
    G1Unsay,
    G2,
    G3,
    G4,
    /// G5, F7: waking `next`.
    G5,
    /// Retiring the node that has left.
    Retire,
}

/// The next node in the queue, and its class.
pub(crate) type Next = (NodeId, Class);

/// An acquisition or release of a fair lock.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Steps {
    /// The next step.
    pub at: At,
    /// The result, unless a step changes it.
    pub ends: End,
    /// This rank's class.
    pub class: Class,
    /// Whether it gives up instead of waiting.
    pub tries: bool,
    /// Whether its future was dropped, so that a holder must leave again.
    pub dropped: bool,
    /// Whether another rank woke it.
    pub woken: bool,
    /// Whether it is leaving.
    pub leaves: bool,
    /// Whether no other rank knows `me`.
    pub clean: bool,
    /// This rank's node.
    pub me: Option<NodeId>,
    /// The node ahead of this rank's in the queue; later the leaving node, which is this rank's or
    /// one that was given up.
    pub node: Option<Next>,
    /// The node behind it.
    pub next: Option<Next>,
    /// Pending: a node to retire.
    pub done: Option<NodeId>,
    /// Whether `next` has given up.
    pub absent: bool,
}

impl Steps {
    const fn new(at: At, ends: End, class: Class) -> Self {
        Steps {
            at,
            ends,
            class,
            tries: false,
            dropped: false,
            woken: false,
            leaves: false,
            clean: false,
            me: None,
            node: None,
            next: None,
            done: None,
            absent: false,
        }
    }

    /// An acquisition.
    pub const fn acquire(class: Class, tries: bool) -> Self {
        Steps { tries, ..Steps::new(At::Take, End::Inside, class) }
    }

    /// The release of a holder.
    pub const fn release(class: Class, node: NodeId, woken: bool) -> Self {
        Steps { woken, me: Some(node), leaves: true, ..Steps::new(At::Flush, End::Out, class) }
    }

    /// Continues at `at`, with this rank's node leaving.
    pub(in crate::lock::fair) fn leaving(mut self, at: At) -> Self {
        (self.at, self.node) = (at, self.me.map(|me| (me, self.class)));
        self
    }

    /// Returns the state of this rank's node after the steps have ended, if one is in use.
    pub fn node_after(&self) -> Option<Node> {
        self.me.map(|_| match self.at {
            At::End(End::Inside) => Node::Kept,
            _ if self.clean => Node::Clean,
            _ => Node::Dirty,
        })
    }

    /// Returns the value that the leaving node's next word had while its owner was inside.
    pub(super) fn said(&self) -> u64 {
        let own = self.leaves && self.node == self.me.map(|me| (me, Class::Reader));
        if own { INSIDE } else { 0 }
    }
}

impl Track for Steps {
    fn end(&self) -> Option<End> {
        if let At::End(end) = self.at { Some(end) } else { None }
    }

    fn is_outside(&self) -> bool {
        matches!(self.at, At::Take | At::F1)
    }

    fn set_dropped(&mut self) {
        self.dropped = true;
    }

    fn node(&self) -> Option<(NodeId, Node)> {
        self.me.zip(self.node_after())
    }

    fn woken(&self) -> bool {
        self.woken
    }

    fn is_dropped(&self) -> bool {
        self.dropped
    }
}
