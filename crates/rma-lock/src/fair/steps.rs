//! The steps of the fair lock, as a table.
//!
//! A node's next word contains the next node and its class, or shows that the node's reader is
//! inside and has no successor ([`INSIDE`]), or that its owner has left ([`NodeId::PASSED`]).

use super::Class;
use crate::{
    LockError, Result,
    queue::{NodeId, Transition, Wait, wake_word},
    steps::{End, Node, Op, Pending, Reason, Table, Word},
};
use rdma_fabric::Amo;

/// The home's words.
pub(super) const STATE: Word = Word::Home(0);
const TAIL: Word = Word::Home(1);

/// One reader, in the state.
pub(super) const READER: u64 = 1;
/// The bit at which the writer starts in the state.
pub(super) const WRITER: u32 = 32;
/// Set in a link if the successor is a writer.
const WRITES: u64 = 1 << 32;
/// The node's reader is inside, and no successor has linked itself behind it. Not a valid node.
pub(super) const INSIDE: u64 = 1 << 33;

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

    /// Continues at `at`, with this rank's node in use.
    pub(super) fn on(mut self, at: At, me: NodeId) -> Self {
        (self.at, self.me) = (at, Some(me));
        self
    }

    /// Continues at `at`, with this rank's node leaving.
    pub(super) fn leaving(mut self, at: At) -> Self {
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
    fn said(&self) -> u64 {
        let own = self.leaves && self.node == self.me.map(|me| (me, Class::Reader));
        if own { INSIDE } else { 0 }
    }
}

/// The parameters of a fair lock's steps.
#[derive(Clone, Copy, Debug)]
pub struct FairTable {
    /// The number of ranks to which nodes may belong.
    pub ranks: usize,
}

/// A try that cannot take the lock, before it is in the queue.
fn not_now(s: &mut Steps) {
    (s.at, s.clean) = (At::End(End::NotNow), true);
}

/// Returns whether a reader that left this state was the last one before a writer.
#[inline(always)]
pub(super) fn was_waited_for(left: u64) -> bool {
    left as u32 == 0 && left >> WRITER != 0
}

/// Returns the amount that G3 adds, before `next`.
fn uncount(next: Option<Next>) -> u64 {
    let writer = next.filter(|(_, class)| *class == Class::Writer).map_or(0, |(writer, _)| writer.bits());
    (writer << WRITER).wrapping_sub(READER)
}

fn bits(next: Option<Next>) -> u64 {
    next.map_or(0, |(node, _)| node.bits())
}

impl Table for FairTable {
    type Steps = Steps;

    fn pending(&self, s: &Steps) -> Option<Pending> {
        let me = s.me.map_or(0, NodeId::bits);
        let state = |amo| Op::Atomic(STATE, amo);
        let next_of = |next: Option<Next>| next.map(|(node, _)| Word::Next(node));
        let op = match s.at {
            At::End(_) => return None,
            At::Flush => Op::FlushData,
            At::Take => Op::Take,
            At::F1 if s.tries => Op::Atomic(TAIL, Amo::CompareSwap { expected: 0, new: me }),
            At::F1 => Op::Atomic(TAIL, Amo::Swap(me)),
            At::Behind => Op::Atomic(TAIL, Amo::CompareSwap { expected: bits(s.node), new: me }),
            At::F2 => {
                let class = if s.class == Class::Writer { WRITES } else { 0 };
                Op::Atomic(next_of(s.node)?, Amo::Swap(me | class))
            }
            At::F3 | At::F7Count | At::G2 => state(Amo::Add(READER)),
            At::F4 => Op::Get(STATE),
            At::F5 => state(Amo::Add(bits(s.node) << WRITER)),
            At::F5Back => state(Amo::Add((bits(s.node) << WRITER).wrapping_neg())),
            At::F6 => Op::Wait(s.me?),
            At::GiveUp => Op::Atomic(Word::Wake(s.me?), s.me?.abandon()),
            At::F7 => Op::Atomic(Word::Next(s.me?), Amo::CompareSwap { expected: 0, new: INSIDE }),
            At::Ahead | At::G1Load => Op::Get(next_of(s.node)?),
            At::G1 => Op::Atomic(TAIL, Amo::CompareSwap { expected: bits(s.node), new: 0 }),
            At::G1Mark => {
                let (expected, new) = (s.said(), NodeId::PASSED);
                Op::Atomic(next_of(s.node)?, Amo::CompareSwap { expected, new })
            }
            At::G1Unsay => Op::Store(Word::Next(s.me?), 0),
            At::G3 => state(Amo::Add(uncount(s.next))),
            At::G4 => state(Amo::Add((bits(s.next) << WRITER).wrapping_neg())),
            At::G5 => {
                let (next, _) = s.next?;
                Op::Atomic(Word::Wake(next), next.wake(Wait::Granted))
            }
            At::Retire => Op::Retire(s.done?),
        };
        Some(op.into())
    }

    fn resume(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        self.go(s, found)?;
        // No rank checks whether another is inside.
        Ok(None)
    }
}

impl FairTable {
    fn go(&self, s: &mut Steps, found: u64) -> Result<()> {
        let reads = s.class == Class::Reader;
        match s.at {
            At::End(_) => {}
            At::Flush => *s = s.leaving(At::G1Load),
            At::Take if found == 0 => s.at = At::End(End::GaveUp(Reason::Told)),
            At::Take => (s.at, s.me) = (At::F1, Some(NodeId::of_bits(found as u32))),
            At::F1 => {
                // The class of the node ahead is not known.
                s.node = self.decode("tail", found)?.map(|node| (node, Class::Reader));
                match s.node {
                    None => self.ahead(s),
                    Some(_) if !s.tries => s.at = At::F2,
                    Some(_) if reads => s.at = At::Ahead,
                    Some(_) => not_now(s),
                }
            }
            At::Ahead if found == INSIDE => s.at = At::Behind,
            At::Ahead => not_now(s),
            At::Behind if found == bits(s.node) => s.at = At::F2,
            At::Behind => not_now(s),
            At::F2 => match found {
                NodeId::PASSED => self.ahead(s),
                INSIDE if reads => self.ahead(s),
                // The node ahead is in a later turn than when it was checked.
                0 | INSIDE if s.tries => s.at = At::GiveUp,
                0 | INSIDE => s.at = At::F6,
                other => return Err(LockError::corrupt("next", other)),
            },
            At::F3 => s.at = At::F7,
            // Readers that are still inside arrived before this writer, and no more can enter.
            At::F4 if found == 0 => self.inside(s),
            At::F4 => {
                s.node = s.me.map(|me| (me, Class::Writer));
                if s.tries {
                    (s.at, s.ends) = (At::G1Load, End::NotNow);
                } else {
                    s.at = At::F5;
                }
            }
            At::F5 if found == 0 => s.at = At::F5Back,
            // The last reader finds the waiting writer in the state.
            At::F5 if bits(s.node) == s.me.map_or(0, NodeId::bits) => s.at = At::F6,
            At::F5 => {
                s.next = None;
                self.retire(s);
            }
            At::F5Back if bits(s.node) == s.me.map_or(0, NodeId::bits) => self.inside(s),
            At::F5Back => s.at = At::G5,
            At::F6 if found == 0 => s.at = At::GiveUp,
            At::F6 if found != Wait::Granted as u64 => return Err(LockError::corrupt("wake", found)),
            At::F6 => self.woken(s),
            At::GiveUp => return self.gave_up(s, found),
            At::F7 => {
                s.next = self.decode_link(found)?.filter(|(_, class)| *class == Class::Reader);
                match s.next {
                    Some(_) => s.at = At::F7Count,
                    None => self.inside(s),
                }
            }
            At::F7Count => s.at = At::G5,
            At::G1Load if found == s.said() => s.at = At::G1,
            At::G1Load => return self.out_before(s, found),
            At::G1 if found != bits(s.node) => s.at = At::G1Mark,
            // No other rank has known the node.
            At::G1 if s.me == s.node.map(|(node, _)| node) && !s.woken => {
                s.clean = true;
                match s.said() {
                    0 => self.out(s),
                    _ => s.at = At::G1Unsay,
                }
            }
            At::G1 => self.gone(s),
            At::G1Unsay => self.out(s),
            At::G1Mark if found == s.said() => self.gone(s),
            At::G1Mark => return self.out_before(s, found),
            At::G2 => s.at = At::G5,
            At::G3 => {
                let left = found.wrapping_add(uncount(s.next));
                s.next = None;
                if was_waited_for(left) {
                    // No other rank has seen the writer with no reader left, and none can enter
                    // before it.
                    s.next = self.decode("state", left >> WRITER)?.map(|writer| (writer, Class::Writer));
                    s.at = At::G4;
                } else {
                    self.retire(s);
                }
            }
            At::G4 => s.at = At::G5,
            At::G5 => {
                s.absent = s.next.is_some_and(|(next, _)| found == wake_word(Wait::Abandoned, next));
                self.retire(s);
            }
            At::Retire => {
                s.done = None;
                self.retire(s);
            }
        }
        Ok(())
    }

    fn decode(&self, word: &'static str, bits: u64) -> Result<Option<NodeId>> {
        NodeId::decode(word, bits, self.ranks)
    }

    fn decode_link(&self, link: u64) -> Result<Option<Next>> {
        let class = if link & WRITES == 0 { Class::Reader } else { Class::Writer };
        Ok(self.decode("next", link & !WRITES)?.map(|node| (node, class)))
    }

    /// This rank is the first in the queue, or behind a reader inside.
    fn ahead(&self, s: &mut Steps) {
        s.at = if s.class == Class::Reader { At::F3 } else { At::F4 };
    }

    fn woken(&self, s: &mut Steps) {
        s.woken = true;
        match s.class {
            Class::Reader => s.at = At::F7,
            Class::Writer => self.inside(s),
        }
    }

    fn inside(&self, s: &mut Steps) {
        s.at = At::End(End::Inside);
        if s.dropped {
            (s.ends, s.leaves) = (End::GaveUp(Reason::Dropped), true);
            *s = s.leaving(At::G1Load);
        }
    }

    /// F6. The node stays in the queue; its waker makes it ready again.
    fn gave_up(&self, s: &mut Steps, found: u64) -> Result<()> {
        let Some(me) = s.me else { return Ok(()) };
        if found == wake_word(Wait::Granted, me) {
            self.woken(s);
            return Ok(());
        }
        if found != wake_word(Wait::Blocked, me) {
            return Err(LockError::corrupt("wake", found));
        }
        s.at = At::End(match (s.dropped, s.tries) {
            (true, _) => End::GaveUp(Reason::Dropped),
            (_, true) => End::NotNow,
            _ => End::GaveUp(Reason::Told),
        });
        Ok(())
    }

    /// G1: a successor is linked behind the node.
    fn out_before(&self, s: &mut Steps, link: u64) -> Result<()> {
        s.next = self.decode_link(link)?;
        if s.next.is_none() {
            return Err(LockError::corrupt("next", link));
        }
        self.gone(s);
        Ok(())
    }

    /// The node is out of the queue, and other ranks have known it.
    fn gone(&self, s: &mut Steps) {
        s.done = s.node.map(|(node, _)| node);
        self.out(s);
    }

    /// The node is out of the queue: selects the step that its owner still has to execute for its
    /// successor.
    fn out(&self, s: &mut Steps) {
        let own = s.node.map(|(node, _)| node) == s.me;
        let withdrawn = own && !s.leaves;
        let class = s.node.map(|(_, class)| class);
        s.at = match (class, s.next) {
            // A try to write was never inside, because the readers ahead of it are.
            (_, Some((_, Class::Writer))) if withdrawn => {
                s.node = s.next;
                At::F5
            }
            (_, None) if withdrawn => return self.retire(s),
            // A reader that gave up leaves its count to the reader behind it.
            (Some(Class::Reader), Some((_, Class::Reader))) if !own => At::G5,
            (Some(Class::Reader), _) => At::G3,
            (_, Some((_, Class::Reader))) => At::G2,
            (_, Some(_)) => At::G5,
            (_, None) => return self.retire(s),
        };
    }

    /// Continues after the successor was woken: retires the node that has left. If `next` was given
    /// up, acts on its behalf: it leaves.
    fn retire(&self, s: &mut Steps) {
        if s.done.is_some() {
            s.at = At::Retire;
        } else if s.absent {
            (s.absent, s.node, s.next, s.at) = (false, s.next, None, At::G1Load);
        } else {
            (s.node, s.next, s.at) = (None, None, At::End(s.ends));
            if s.ends == End::Inside {
                self.inside(s);
            }
        }
    }
}

impl crate::queue::Track for Steps {
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
