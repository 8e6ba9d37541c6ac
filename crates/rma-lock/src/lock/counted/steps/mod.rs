//! The steps of the locks that count readers, as a table: for readers, for writers, and for ranks
//! that act on behalf of others.
//!
//! The steps are named as in `docs/systems/locks.md`. A step that does not exist in the printed
//! lock is named after its function.

mod at;
mod barge;
mod help;
mod read;
mod state;
mod write;

pub use at::{At, Then};
pub use state::Steps;

use super::{
    Home,
    scheme::{HandOver, NEXT, READER, READERS_WAIT, Rules, WRITER_ACTIVE, WRITER_INTERESTED},
};
use crate::{
    LockError, Result,
    lock::queue::{NodeId, Transition, Wait, wake_word},
    steps::{End, Op, Pending, Reason, Table, Word},
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

/// A lock's scheme, and the other parameters of its steps.
#[derive(Clone, Copy, Debug)]
pub struct CountedTable {
    /// The scheme. One for all ranks: a simulation of many ranks finds it in the cache.
    pub rules: &'static Rules,
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
        let rules = self.rules;
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
