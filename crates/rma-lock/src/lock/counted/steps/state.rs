//! The state of an acquisition or release: its next step, and what it knows.

use super::{At, Then};
use crate::{
    lock::{
        counted::scheme::{HEAD, is_queued},
        queue::{NodeId, Track},
    },
    steps::{End, Node},
};

/// An acquisition or release of a lock that counts its readers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Steps {
    /// The next step.
    pub at: At,
    /// The continuation when no work for others remains.
    pub then: Then,
    /// The result, unless a step changes it.
    pub ends: End,
    /// Whether it is that of a writer.
    pub writes: bool,
    /// Whether it gives up instead of waiting.
    pub tries: bool,
    /// Whether its future was dropped, so that a holder must leave again.
    pub dropped: bool,
    /// Whether another rank woke it.
    pub woken: bool,
    /// Whether [`At::Activate`] is for the writer itself.
    pub mine: bool,
    /// Whether to omit the announcement when `node` leaves: it belongs to another rank, or was
    /// already announced.
    pub quiet: bool,
    /// Whether no other rank has known `me`.
    pub clean: bool,
    /// Whether it went to the queue without trying to barge in.
    pub skipped: bool,
    /// Whether `writer` is woken only to check the lock again, and not because it was admitted.
    pub offers: bool,
    /// This rank's node.
    pub me: Option<NodeId>,
    /// The node below this rank's on the stack; the node before it in the queue (W6).
    pub link: Option<NodeId>,
    /// The leaving node: this rank's, or that of a writer that gave up.
    pub node: Option<NodeId>,
    /// Its successor, if known.
    pub next: Option<NodeId>,
    /// The node below that of a reader that gave up, where the chain continues.
    pub below: Option<NodeId>,
    /// Pending: a reader to wake; it wakes the rest of its chain.
    pub reader: Option<NodeId>,
    /// Pending: `node` has given up the lock (X2, X3) and still has to pass on the queue (X4–X7).
    pub departing: bool,
    /// Pending: a writer to wake; the lock is already set active for it.
    pub writer: Option<NodeId>,
    /// Pending, after the writer is woken: a node to retire, which has handed over to it.
    pub done: Option<NodeId>,
    /// Pending: the number of readers that gave up and are still counted.
    pub leaving: u32,
    /// The count word that [`At::Activate`], [`At::B1`] or [`At::XB`] expects; for a holder that
    /// may have barged in, the one with which it entered.
    pub word: u64,
    /// The count word that this rank has left.
    pub left: u64,
    /// The number of checks so far ([`At::Look`]).
    pub looks: u8,
}

impl Steps {
    const fn new(at: At, ends: End) -> Self {
        Steps {
            at,
            then: Then::End,
            ends,
            writes: false,
            tries: false,
            dropped: false,
            woken: false,
            mine: false,
            quiet: false,
            clean: false,
            skipped: false,
            offers: false,
            me: None,
            link: None,
            node: None,
            next: None,
            below: None,
            reader: None,
            departing: false,
            writer: None,
            done: None,
            leaving: 0,
            word: 0,
            left: 0,
            looks: 0,
        }
    }

    /// An acquisition to read.
    pub const fn read(tries: bool) -> Self {
        Steps { tries, ..Steps::new(At::R1, End::Inside) }
    }

    /// A reader's release.
    pub const fn release_read() -> Self {
        Steps::new(At::Flush, End::Out)
    }

    /// An acquisition to write.
    pub const fn write(tries: bool) -> Self {
        Steps { tries, writes: true, ..Steps::new(At::Take, End::Inside) }
    }

    /// An acquisition to write that may barge in: the count word was last seen as `word`.
    pub const fn barge(tries: bool, word: u64) -> Self {
        Steps { tries, writes: true, word, ..Steps::new(At::B1, End::Inside) }
    }

    /// An acquisition to write that joins the queue without trying to barge in.
    pub const fn line_up() -> Self {
        Steps { skipped: true, ..Steps::write(false) }
    }

    /// The release of a writer that may have barged in, with this count word.
    pub fn release_barging(word: u64) -> Self {
        let me = is_queued(word).then(|| NodeId::of_bits((word >> HEAD) as u32));
        Steps { writes: true, me, word, ..Steps::new(At::Flush, End::Out) }
    }

    /// The release of a writer.
    pub const fn release_write(node: NodeId, woken: bool) -> Self {
        Steps { writes: true, woken, me: Some(node), ..Steps::new(At::Flush, End::Out) }
    }

    /// U1 on behalf of a reader that does not leave by itself.
    pub const fn leave_for_reader() -> Self {
        Steps::new(At::U1ForAnother, End::Out)
    }

    /// X2–X7 on behalf of a writer that does not leave by itself.
    pub const fn leave_for_writer(node: NodeId) -> Self {
        Steps { node: Some(node), quiet: true, ..Steps::new(At::Known, End::Out) }
    }

    /// Continues at `at`, with this rank's node in use.
    pub(crate) fn on(mut self, at: At, me: NodeId) -> Self {
        (self.at, self.me) = (at, Some(me));
        self
    }

    /// Continues at `at`, with this rank's node leaving.
    pub(crate) fn leaving(mut self, at: At) -> Self {
        (self.at, self.node, self.then) = (at, self.me, Then::Left);
        self
    }

    /// Returns whether the acquisition has not had any effect yet.
    pub(crate) fn is_outside(&self) -> bool {
        matches!(self.at, At::R1 | At::B1 | At::B2 | At::Look | At::W2) || self.at == At::Take && self.writes
    }

    /// Returns the state of this rank's node after the steps have ended, if one is in use.
    pub fn node_after(&self) -> Option<Node> {
        self.me.map(|_| match self.at {
            At::End(End::Inside) => Node::Kept,
            _ if self.clean => Node::Clean,
            _ => Node::Dirty,
        })
    }
}

impl Track for Steps {
    fn end(&self) -> Option<End> {
        if let At::End(end) = self.at { Some(end) } else { None }
    }

    fn is_outside(&self) -> bool {
        Steps::is_outside(self)
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

    fn word(&self) -> u64 {
        self.word
    }

    fn is_dropped(&self) -> bool {
        self.dropped
    }
}
