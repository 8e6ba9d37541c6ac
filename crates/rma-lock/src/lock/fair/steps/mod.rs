//! The steps of the fair lock, as a table.
//!
//! A node's next word contains the next node and its class, or shows that the node's reader is
//! inside and has no successor ([`INSIDE`]), or that its owner has left ([`NodeId::PASSED`]).

mod leave;
mod state;

pub(crate) use state::Next;
pub use state::{At, Steps};

use super::Class;
use crate::{
    LockError, Result,
    lock::queue::{NodeId, Transition, Wait, wake_word},
    steps::{End, Op, Pending, Reason, Table, Word},
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

    pub(super) fn decode_link(&self, link: u64) -> Result<Option<Next>> {
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

    pub(super) fn inside(&self, s: &mut Steps) {
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
}
