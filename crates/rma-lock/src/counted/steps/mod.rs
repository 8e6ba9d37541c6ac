//! The steps of the locks that count readers, as a table: for readers, for writers, and for ranks
//! that act on behalf of others.
//!
//! The steps are named as in `docs/systems/locks.md`. A step that does not exist in the printed
//! lock is named after its function.

mod barge;
mod help;
mod read;
mod write;

use super::{
    Home,
    scheme::{HandOver, NEXT, READER, READERS_WAIT, Rules, WRITER_ACTIVE, WRITER_INTERESTED},
};
use crate::{
    LockError, Result,
    queue::{NodeId, Transition, Wait, wake_word},
    steps::{End, Node, Op, Pending, Reason, Table, Word},
};
use rdma_fabric::Amo;

/// The home's words.
pub(crate) const COUNT: Word = Home::Count.word();
pub(crate) const READERS: Word = Home::Readers.word();
pub(crate) const TAIL: Word = Home::Tail.word();
pub(crate) const HEAD_WORD: Word = Home::Head.word();

/// R1, U1.
pub(crate) const COUNT_ME: Amo<u64> = Amo::Add(READER);
pub(crate) const UNCOUNT_ME: Amo<u64> = Amo::Add(READER.wrapping_neg());

/// The next step.
#[allow(missing_docs, reason = "named as on the locks' page")]
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum At {
    /// The acquisition or release has ended.
    End(End),
    /// Making the holder's puts visible before it leaves.
    Flush,
    /// R2, W1.
    Take,
    R1,
    /// R1 of a woken reader that was not counted.
    R1Again,
    /// U1 of a reader that waits uncounted.
    Uncount,
    /// U1 of a reader that does not enter.
    Withdraw,
    R3,
    R3Store,
    R4,
    R5Forget,
    R5,
    R6,
    R6Retire,
    /// Checking whether the epoch still admits ranks.
    Recheck,
    /// Checking whether the epoch has ended, so that a member may have left it.
    Closed,
    U1,
    /// U1 for a reader that gave up while it was counted.
    U1ForAnother,
    /// U2, W5, X7.
    Activate,
    /// U3, also as part of X7.
    Head,
    /// Barging in: compares with the count word as last seen.
    B1,
    /// Barging in: compares with the count word that B1 found.
    B2,
    /// Barging in: checking whether the lock has become free.
    Look,
    W2,
    /// The compare-and-swap in place of W3–W5.
    Free,
    W3,
    W3Flush,
    W4,
    W6,
    W7,
    /// Preparing to be woken once more, before the check.
    W8Block,
    /// Woken to check the lock: entering.
    W8,
    /// Passed by another writer: forbids further passing.
    W8Next,
    /// Withdrawing the interest of a try.
    Retract,
    /// R6, W7: the wait has ended without a wake.
    GiveUp,
    /// Checking whether there is a known successor to hand the lock to.
    Known,
    HandOver,
    X2,
    /// A writer that barged in leaves.
    XB,
    /// A writer of the queue leaves without a known successor.
    XQ,
    /// A writer that leaves readers behind becomes one of them.
    Downgrade,
    /// Removing a head that gave up from the count word.
    Unregister,
    X3Forget,
    X3,
    X4Load,
    X4,
    X4Mark,
    X4Retire,
    X5,
    X5Flush,
    X6,
    /// R5, R7, X3: waking a reader.
    WakeReader,
    /// Finding the reader below one that gave up.
    Below,
    BelowRetire,
    /// U4, X7: waking a writer.
    Wake,
    /// Retiring the node of a writer that has handed over.
    Retire,
}

/// The continuation when no work for others remains.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Then {
    /// The acquisition or release has ended.
    End,
    /// R6.
    Wait,
    /// R2 of a reader that is not counted.
    Take,
    /// The reader is inside.
    Entered,
    /// R1 of a reader that was not counted.
    Again,
    /// A writer that was about to enter is out again.
    Back,
    /// A writer that was inside is out.
    Left,
}

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
        let me = super::scheme::is_queued(word).then(|| NodeId::of_bits((word >> super::scheme::HEAD) as u32));
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

/// A lock's scheme, and the other parameters of its steps.
#[derive(Clone, Copy, Debug)]
pub struct CountedTable {
    /// The scheme.
    pub rules: Rules,
    /// The number of ranks to which nodes may belong.
    pub ranks: usize,
    /// Whether puts are ordered before atomics to the same target.
    pub ordered_here: bool,
    /// Whether operations complete when they are posted. If so, a lock that allows barging is
    /// passed on by waking its head, which then checks the lock; otherwise the head is handed the
    /// lock as soon as it is registered.
    pub passing: bool,
    /// The number of times that a writer that may barge in checks whether the lock has become free,
    /// before it joins the queue.
    pub looks: u8,
}

fn bits(node: Option<NodeId>) -> u64 {
    node.map_or(0, NodeId::bits)
}

impl CountedTable {
    fn decode(&self, word: &'static str, bits: u64) -> Result<Option<NodeId>> {
        NodeId::decode(word, bits, self.ranks)
    }

    /// Returns the step after puts to the head.
    fn flushed(&self, flush: At, after: At) -> At {
        if self.ordered_here { after } else { flush }
    }
}

/// Returns the operation that wakes `node`.
fn wake(node: Option<NodeId>, how: Wait) -> Option<Op> {
    let node = node?;
    Some(Op::Atomic(Word::Wake(node), node.wake(how)))
}

impl Table for CountedTable {
    type Steps = Steps;

    fn pending(&self, s: &Steps) -> Option<Pending> {
        let rules = &self.rules;
        let (me, node) = (bits(s.me), bits(s.node));
        let count = |amo| Op::Atomic(COUNT, amo);
        let op = match s.at {
            At::End(_) => return None,
            At::Flush => Op::FlushData,
            At::Take => Op::Take,
            At::R1 | At::R1Again => count(COUNT_ME),
            At::Uncount | At::Withdraw | At::U1 | At::U1ForAnother => count(UNCOUNT_ME),
            At::R3 => Op::Atomic(READERS, Amo::Swap(me)),
            At::R3Store => Op::Store(Word::Next(s.me?), bits(s.link)),
            At::R4 if !rules.waits_counted => count(Amo::Or(READERS_WAIT)),
            At::R4 | At::Recheck | At::Closed => Op::Get(COUNT),
            At::Look => Op::Look(COUNT),
            At::R5Forget | At::X3Forget => count(Amo::And(!READERS_WAIT)),
            At::R5 | At::X3 => Op::Atomic(READERS, Amo::Swap(0)),
            At::R6 | At::W7 => Op::Wait(s.me?),
            At::GiveUp => Op::Atomic(Word::Wake(s.me?), s.me?.abandon()),
            At::R6Retire => Op::GiveBack(s.me?),
            At::Activate => {
                let new = match (rules.barges, s.mine) {
                    (false, _) => rules.granted(s.word),
                    (true, true) => rules.active(me),
                    (true, false) => self.left(s.word).0,
                };
                count(Amo::CompareSwap { expected: s.word, new })
            }
            At::B1 | At::B2 => count(Amo::CompareSwap { expected: s.word, new: s.word | WRITER_ACTIVE }),
            At::W8Block => Op::Store(Word::Wake(s.me?), wake_word(Wait::Blocked, s.me?)),
            At::W8 => count(Amo::CompareSwap { expected: rules.interest(me), new: rules.active(me) }),
            At::W8Next => count(Amo::Add(NEXT)),
            At::XB => count(Amo::CompareSwap { expected: s.word, new: self.left(s.word).0 }),
            At::XQ => count(Amo::CompareSwap { expected: rules.active(node), new: 0 }),
            At::Downgrade => count(Amo::Add(self.downgraded(s))),
            At::Unregister => count(Amo::Add(rules.interest(node).wrapping_neg())),
            At::Head => Op::Get(HEAD_WORD),
            At::W2 if s.tries => Op::Atomic(TAIL, Amo::CompareSwap { expected: 0, new: me }),
            At::W2 => Op::Atomic(TAIL, Amo::Swap(me)),
            At::Free => count(Amo::CompareSwap { expected: 0, new: rules.active(me) }),
            At::W3 => Op::Put(HEAD_WORD, me),
            At::W3Flush | At::X5Flush => Op::FlushHome,
            At::W4 => count(Amo::Add(rules.interest(me) | self.registered())),
            At::W6 => Op::Atomic(Word::Next(s.link?), Amo::Swap(me)),
            At::Retract => count(Amo::And(!WRITER_INTERESTED)),
            At::Known | At::X4Load => Op::Get(Word::Next(s.node?)),
            At::HandOver => {
                let new = if rules.barges { self.handed_on(s.next) } else { rules.active(bits(s.next)) };
                count(Amo::CompareSwap { expected: rules.active(node), new })
            }
            At::X2 => count(Amo::Add(rules.active(node).wrapping_neg())),
            At::X4 => Op::Atomic(TAIL, Amo::CompareSwap { expected: node, new: 0 }),
            At::X4Mark => Op::Atomic(Word::Next(s.node?), Amo::CompareSwap { expected: 0, new: NodeId::PASSED }),
            At::X4Retire => Op::Retire(s.node?),
            At::X5 => Op::Put(HEAD_WORD, bits(s.next)),
            At::X6 => count(Amo::Add(rules.interest(bits(s.next)) | self.registered())),
            At::WakeReader => wake(s.reader, Wait::Granted)?,
            At::Below => Op::Get(Word::Next(s.reader?)),
            At::BelowRetire => Op::Retire(s.reader?),
            At::Wake => wake(s.writer, if s.offers { Wait::Offered } else { Wait::Granted })?,
            At::Retire => Op::Retire(s.done?),
        };
        let announced = match s.at {
            // No rank checks whether another is inside.
            _ if !rules.recoverable => None,
            At::R1 => Some(Transition::READER_ARRIVES),
            At::U1 => Some(Transition::READER_LEAVES),
            At::W2 => s.me.map(Transition::writer_continues),
            At::HandOver | At::X2 if !s.quiet => s.node.map(Transition::writer_continues),
            _ => None,
        };
        Some(Pending { op, announced })
    }

    fn resume(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let said = self.go(s, found)?;
        Ok(said.filter(|_| self.rules.recoverable))
    }
}

impl CountedTable {
    fn go(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        match s.at {
            At::End(_) => Ok(None),
            At::Flush => {
                if s.writes {
                    self.begin_leave(s);
                } else {
                    s.at = At::U1;
                }
                Ok(None)
            }
            At::Take => self.took(s, found),
            At::GiveUp => self.gave_up(s, found),
            At::Closed if found & self.rules.closed != 0 => Ok(self.lost(s)),
            At::Closed => {
                s.at = At::End(End::Broken);
                Ok(None)
            }
            At::X3 if self.rules.barges => self.barges(s, found).map(|()| None),
            At::B1
            | At::B2
            | At::Look
            | At::W8Block
            | At::W8
            | At::W8Next
            | At::XB
            | At::XQ
            | At::Downgrade
            | At::Unregister => self.barges(s, found).map(|()| None),
            At::R1
            | At::R1Again
            | At::Uncount
            | At::Withdraw
            | At::R3
            | At::R3Store
            | At::R4
            | At::R5Forget
            | At::R5
            | At::R6
            | At::R6Retire
            | At::Recheck
            | At::U1 => self.reads(s, found),
            At::W2
            | At::Free
            | At::W3
            | At::W3Flush
            | At::W4
            | At::W6
            | At::W7
            | At::Retract
            | At::Known
            | At::HandOver
            | At::X2
            | At::X3Forget
            | At::X3 => self.writes(s, found),
            _ => self.helps(s, found),
        }
    }

    /// R2, W1.
    fn took(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        if found != 0 {
            s.me = Some(NodeId::of_bits(found as u32));
            s.at = if s.writes { At::W2 } else { At::R3 };
            return Ok(None);
        }
        s.ends = End::GaveUp(Reason::Told);
        if !s.writes && self.rules.waits_counted {
            (s.at, s.then) = (At::Withdraw, Then::End);
            return Ok(None);
        }
        s.at = At::End(s.ends);
        Ok((!s.writes).then_some(Transition::READER_GIVES_UP))
    }

    /// R6, W7. The node stays in its queue, or on the stack; its waker makes it ready again.
    fn gave_up(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let Some(me) = s.me else { return Ok(None) };
        if found == wake_word(Wait::Granted, me) {
            s.at = if s.writes { At::W7 } else { At::R6 };
            return self.go(s, Wait::Granted as u64);
        }
        if self.rules.barges && s.writes && found == wake_word(Wait::Offered, me) {
            s.at = At::W8Block;
            return Ok(None);
        }
        if found != wake_word(Wait::Blocked, me) {
            return Err(LockError::corrupt("wake", found));
        }
        s.at = At::End(End::GaveUp(if s.dropped { Reason::Dropped } else { Reason::Told }));
        Ok(Some(if s.writes { Transition::writer_returns(me, 1) } else { Transition::READER_GIVES_UP }))
    }

    /// Continues after an operation on another rank's node has failed because that rank has left:
    /// every rank that waits for an unfinished step of that rank also waits for the rank itself.
    pub(crate) fn lost(&self, s: &mut Steps) -> Option<Transition> {
        if s.at == At::W6 {
            // The node stays in a queue from which no rank will take it.
            s.at = At::End(End::GaveUp(Reason::Told));
            return s.me.take().map(|me| Transition::writer_returns(me, 1));
        }
        (s.reader, s.departing, s.writer, s.leaving) = (None, false, None, 0);
        s.done = s.done.filter(|done| Some(*done) == s.me);
        self.help(s)
    }
}
