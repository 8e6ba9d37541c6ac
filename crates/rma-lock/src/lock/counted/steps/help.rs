//! Steps of a rank on behalf of others, including ranks that gave up: waking, and X4–X7.
//!
//! A waiter that reaches its deadline, or whose future is dropped, marks its own node as abandoned
//! and leaves. As for every node, exactly one rank will try to wake it. That rank finds the mark
//! and does on behalf of the waiter what its grant requires: for a reader, it wakes the next reader
//! and leaves (if the reader is counted); for a writer, it leaves. That may lead to further nodes,
//! abandoned or not, so the duties form a loop.

use super::{At, CountedTable, Steps, Then, bits};
use crate::{
    LockError, Result,
    lock::{
        counted::scheme::{HEAD, READERS_WAIT},
        queue::{NodeId, Transition, Wait, wake_word},
    },
    steps::{End, Reason},
};

/// Returns whether a wake that found `old` shows that its node was given up. A wake for an earlier
/// turn changes nothing and counts as done.
fn was_abandoned(node: Option<NodeId>, old: u64) -> bool {
    node.is_some_and(|node| old == wake_word(Wait::Abandoned, node))
}

impl CountedTable {
    /// Continues with the remaining work for others.
    ///
    /// Readers come first, because they wait only for this rank. The queue of a departing writer is
    /// next, then the writer to admit, and finally the departures of readers that gave up, which
    /// may admit another writer. Readers that have not left yet are counted, so no writer enters
    /// too early.
    pub(super) fn help(&self, s: &mut Steps) -> Option<Transition> {
        s.at = if s.reader.is_some() {
            At::WakeReader
        } else if s.departing {
            s.departing = false;
            if s.next.is_some() { At::X4Retire } else { At::X4Load }
        } else if s.writer.is_some() {
            At::Wake
        } else if s.done.is_some() {
            At::Retire
        } else if s.leaving > 0 {
            s.leaving -= 1;
            At::U1ForAnother
        } else {
            return self.resume(s);
        };
        None
    }

    /// Continues when no work for others remains.
    fn resume(&self, s: &mut Steps) -> Option<Transition> {
        let me = s.me;
        s.at = match s.then {
            Then::End => At::End(s.ends),
            Then::Wait => At::R6,
            Then::Take => At::Take,
            Then::Entered if self.rules.recoverable => At::Recheck,
            Then::Entered => {
                self.entered(s, false);
                return None;
            }
            Then::Again if s.dropped => {
                s.at = At::End(End::GaveUp(Reason::Dropped));
                return Some(Transition::READER_GIVES_UP);
            }
            Then::Again => At::R1Again,
            Then::Back => {
                s.at = At::End(s.ends);
                return me.map(|me| Transition::writer_returns(me, 1));
            }
            Then::Left => {
                s.at = At::End(s.ends);
                return me.map(|me| Transition::writer_returns(me, 3));
            }
        };
        None
    }

    pub(super) fn helps(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let rules = self.rules;
        match s.at {
            At::U1ForAnother => return self.uncounted(s, found),
            At::WakeReader if was_abandoned(s.reader, found) => s.at = At::Below,
            At::WakeReader => {
                s.reader = None;
                return Ok(self.help(s));
            }
            At::Below => (s.at, s.below) = (At::BelowRetire, self.decode("next", found)?),
            At::BelowRetire => {
                s.reader = s.below.take();
                s.leaving += u32::from(rules.waits_counted);
                return Ok(self.help(s));
            }
            At::X4Load => {
                s.next = self.decode("next", found)?;
                s.at = if s.next.is_some() { At::X4Retire } else { At::X4 };
            }
            At::X4 => s.at = if found == bits(s.node) { At::X4Retire } else { At::X4Mark },
            At::X4Mark => (s.at, s.next) = (At::X4Retire, self.decode("next", found)?),
            At::X4Retire => {
                // The node is out of the queue; a successor that has not linked itself yet finds
                // the mark.
                s.node = None;
                if s.next.is_none() {
                    return Ok(self.help(s));
                }
                s.at = if rules.head_apart { At::X5 } else { At::X6 };
            }
            At::X5 => s.at = self.flushed(At::X5Flush, At::X6),
            At::X5Flush => s.at = At::X6,
            At::X6 => {
                let next = bits(s.next.take());
                if !rules.is_free(found) {
                    return Ok(self.help(s));
                }
                (s.at, s.word, s.mine) = (At::Activate, found + (rules.interest(next) | self.registered()), false);
            }
            At::Activate => return self.activated(s, found),
            At::Head => return self.admit(s, "head", found),
            At::Wake => {
                if !was_abandoned(s.writer, found) {
                    s.writer = None;
                } else if s.done.is_none() {
                    self.leave_for(s);
                    return Ok(None);
                }
                if s.done.is_none() {
                    return Ok(self.help(s));
                }
                s.at = At::Retire;
            }
            _ => {
                s.done = None;
                if s.writer.is_none() {
                    return Ok(self.help(s));
                }
                self.leave_for(s);
            }
        }
        Ok(None)
    }

    /// Starts to act on behalf of the writer, which gave up.
    fn leave_for(&self, s: &mut Steps) {
        (s.node, s.next, s.quiet) = (s.writer.take(), None, true);
        s.at = if s.offers { At::Unregister } else { self.first_of_release() };
    }

    /// Continues after the attempt to turn interest into activity. If it failed, a reader has
    /// entered, which will do this.
    ///
    /// A separate head is read *after* the swap: the interest does not identify its owner, and the
    /// swap may have succeeded for a later writer than the one seen before.
    fn activated(&self, s: &mut Steps, found: u64) -> Result<Option<Transition>> {
        let word = s.word;
        if found != word {
            if !self.rules.waits_counted && found ^ word == READERS_WAIT {
                s.word = found;
                return Ok(None);
            }
            s.word = 0;
            if !s.mine {
                return Ok(self.help(s));
            }
            self.not_free(s);
            return Ok(None);
        }
        s.word = 0;
        if s.mine {
            return Ok(self.inside(s));
        }
        if self.rules.barges {
            return self.wakes(s, word, self.left(word).1).map(|()| None);
        }
        if self.rules.head_apart {
            s.at = At::Head;
            return Ok(None);
        }
        self.admit(s, "count", word >> HEAD)
    }

    /// The lock was set active for the head.
    fn admit(&self, s: &mut Steps, word: &'static str, head: u64) -> Result<Option<Transition>> {
        s.writer = self.decode(word, head)?;
        match s.writer {
            Some(_) => Ok(self.help(s)),
            None => Err(LockError::corrupt(word, head)),
        }
    }
}
