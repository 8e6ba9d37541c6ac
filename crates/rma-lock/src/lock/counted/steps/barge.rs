//! Writers of a lock that allows barging: B1, B2, W4–W8, XB, XQ, X7.

use super::{At, CountedTable, Steps, Then, bits};
use crate::{
    LockError, Result,
    lock::{
        counted::scheme::{ASLEEP, HEAD, NEXT, WRITER_ACTIVE, WRITER_INTERESTED, is_queued},
        queue::{NodeId, Wait},
    },
    steps::{End, Reason},
};

impl CountedTable {
    /// Returns the flag that is set when a head is registered.
    pub(super) fn registered(&self) -> u64 {
        match (self.rules.barges, self.passing) {
            (false, _) => 0,
            (true, true) => ASLEEP,
            (true, false) => NEXT,
        }
    }

    /// Returns the count word after a writer has left `word`, which counts no readers, and the kind
    /// of wake-up for the head, if any.
    pub(crate) fn left(&self, word: u64) -> (u64, Option<Wait>) {
        let free = word & !WRITER_ACTIVE;
        let head = free >> HEAD << HEAD;
        match free & (WRITER_INTERESTED | NEXT | ASLEEP) {
            flags if flags & WRITER_INTERESTED == 0 => (0, None),
            flags if flags & NEXT != 0 => (head | WRITER_ACTIVE, Some(Wait::Granted)),
            flags if flags & ASLEEP != 0 => (head | WRITER_INTERESTED, Some(Wait::Offered)),
            _ => (head | WRITER_INTERESTED, None),
        }
    }

    /// Returns the amount that a writer adds if it finds readers when it leaves: it becomes a
    /// reader, removes its node from the word, and registers its successor, if known.
    pub(super) fn downgraded(&self, s: &Steps) -> u64 {
        let next = s.next.map_or(0, |next| self.rules.interest(next.bits()) | self.registered());
        self.rules.reader_for_writer().wrapping_sub(bits(s.node) << HEAD).wrapping_add(next)
    }

    pub(super) fn barges(&self, s: &mut Steps, found: u64) -> Result<()> {
        let rules = self.rules;
        let me = bits(s.me);
        match s.at {
            At::B1 | At::B2 if found == s.word => {
                s.word = found | WRITER_ACTIVE;
                self.barged_in(s);
            }
            At::B1 | At::B2 if s.tries => s.at = At::End(End::NotNow),
            At::B1 | At::B2 | At::Look if s.dropped => s.at = At::End(End::GaveUp(Reason::Dropped)),
            At::B1 | At::B2 | At::Look => self.not_yet(s, found),
            At::W8Block => s.at = At::W8,
            At::W8 if found == rules.interest(me) => {
                self.inside(s);
            }
            At::W8 => s.at = At::W8Next,
            // The rank inside hands over when it leaves.
            At::W8Next if found & (WRITER_ACTIVE | rules.counted) != 0 => s.at = At::W7,
            At::W8Next => (s.at, s.word, s.mine) = (At::Activate, rules.interest(me) | NEXT, true),
            At::XB if found == s.word => {
                let (left, wakes) = self.left(found);
                s.left = left;
                self.wakes(s, found, wakes)?;
            }
            At::XB if found & rules.counted == 0 => s.word = found,
            At::XB => s.at = At::Downgrade,
            At::XQ if found == rules.active(bits(s.node)) => {
                s.left = 0;
                self.depart(s);
            }
            At::XQ => s.at = At::Downgrade,
            At::Downgrade => s.at = At::X3,
            At::X3 => {
                // As a reader, this rank keeps writers out until it has taken the stack.
                (s.reader, s.leaving) = (self.decode("readers", found)?, s.leaving + 1);
                if s.node.is_some() && s.next.is_none() {
                    s.departing = true;
                } else {
                    (s.done, s.next) = (s.node.take(), None);
                }
                self.help(s);
            }
            _ => {
                // A head that gave up after it was offered the lock has been removed from the word.
                self.depart(s);
            }
        }
        Ok(())
    }

    /// B1 or B2 failed, or a check has found `found`. If the lock is free, the writer tries once
    /// more; if not, it checks the lock a few more times, where that is worthwhile, before it joins
    /// the queue.
    fn not_yet(&self, s: &mut Steps, found: u64) {
        let free = found & (WRITER_ACTIVE | NEXT | self.rules.counted) == 0;
        let again = s.looks < self.looks && found & NEXT == 0;
        (s.at, s.word) = match (free, s.at) {
            (true, At::B1) => (At::B2, found),
            (true, _) if again => (At::B2, found),
            _ if again => (At::Look, 0),
            _ => (At::Take, 0),
        };
        s.looks += u8::from(again);
    }

    /// The writer has entered without being in the queue.
    fn barged_in(&self, s: &mut Steps) {
        s.at = At::End(End::Inside);
        if s.dropped {
            (s.at, s.then, s.ends) = (At::XB, Then::End, End::GaveUp(Reason::Dropped));
        }
    }

    /// The active writer begins to leave, whether or not it is in the queue.
    pub(super) fn begin_to_leave(&self, s: &mut Steps) {
        if !is_queued(s.word) {
            (s.at, s.then) = (At::XB, Then::End);
            return;
        }
        (s.node, s.next, s.then, s.at) = (s.me, None, Then::Left, At::Known);
    }

    /// Continues after a writer has left the count word `word`.
    pub(super) fn wakes(&self, s: &mut Steps, word: u64, wakes: Option<Wait>) -> Result<()> {
        s.word = 0;
        if let Some(wakes) = wakes {
            s.writer = self.decode("count", word >> HEAD)?;
            if s.writer.is_none() {
                return Err(LockError::corrupt("count", word));
            }
            s.offers = wakes == Wait::Offered;
        }
        self.help(s);
        Ok(())
    }

    /// Returns the count word that is left if the writer hands over to the known successor `next`.
    pub(super) fn handed_on(&self, next: Option<NodeId>) -> u64 {
        match self.passing {
            true => self.rules.interest(bits(next)),
            false => self.rules.active(bits(next)),
        }
    }
}
