//! The outcome of a collective that a member will never enter.
//!
//! Each wait of a collective is for a word that one member writes. If that member has finished, or
//! has given up its part of the group, the wait ends with an error. Members that in turn wait for
//! the waiting member cannot detect this, because it is alive. So before it returns the error, it
//! writes a *mark* into each of its words on which others wait; a member that finds a mark does the
//! same. As every member depends on every other in O(log n) steps, all members that enter the
//! collective receive the error, each as soon as all members on which it depends have entered.
//! Losses need no marks: every wait depends on every member being alive.
//!
//! A mark contains the number from which on its writer no longer takes part, so a member that is
//! behind still finds the earlier numbers. A group with a missing member completes no further
//! collective, and its members write no other number after a mark.

use super::{Group, compiled_here, control::Field};
use crate::{Deps, FabricError, LocalWord, Rank, Result, provider::Boxed};
use core::future::Future;

/// Set in a mark, and in no number of a collective.
const MARK: u64 = 1 << 63;
/// Set in the mark of a member that has dropped its part of the group and may still be alive.
const DROPPED: u64 = 1 << 62;
/// Bits of a mark's number, above the rank's. Members are at most one collective ahead of each
/// other.
const NUMBER: u64 = (1 << 30) - 1;

/// Numbers of collectives that the member 2^k before writes.
const FROM_BEFORE: [Field; 3] = [Field::Barrier, Field::Offer, Field::Parent];
/// Numbers of agreements, also written by the member 2^k before.
const AGREED: [Field; 2] = [Field::AgreedOdd, Field::AgreedEven];
/// Numbers of collectives that the member 2^k further on writes.
const FROM_BEHIND: [Field; 2] = [Field::Delivered, Field::Child];

/// The count that gives a collective its number.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Phase {
    /// The count of collectives.
    Numbered,
    /// The count of agreements.
    Agreeing,
}

/// A member that was missing from a collective.
#[derive(Clone, Copy)]
pub(super) struct Missing {
    rank: Rank,
    /// Whether it has dropped its part of the group and may still be alive.
    dropped: bool,
}

impl Missing {
    /// Returns the mark saying that the member no longer takes part from `number` on.
    fn mark(self, number: u64) -> u64 {
        let dropped = if self.dropped { DROPPED } else { 0 };
        MARK | dropped | (number & NUMBER) << 32 | u64::from(self.rank.number())
    }

    /// Returns the meaning of a word for a member that waits for collective `number`; `None` if the
    /// wait continues.
    fn look(word: u64, number: u64) -> Option<Result<(), Missing>> {
        if word & MARK == 0 {
            return (word >= number).then_some(Ok(()));
        }
        let ahead = (word >> 32).wrapping_sub(number) & NUMBER;
        let missing = Missing { rank: Rank::new(word as u32), dropped: word & DROPPED != 0 };
        // Before the number of the mark.
        let is_reached = ahead != 0 && ahead <= NUMBER / 2;
        Some(if is_reached { Ok(()) } else { Err(missing) })
    }
}

impl Group {
    /// Waits until `writer` has written `number` to a word of the control block, running the
    /// [hooks](crate::Fabric::wait_hook) of this rank that have work.
    pub(super) async fn wait_for(&self, word: &LocalWord<u64>, writer: usize, number: u64) -> Result<()> {
        let writer = self.rank(writer)?;
        let deps = Deps::Step { writer, group: self.members().listed() };
        let wait = self.fabric.wait_until(word, deps, move |value| Missing::look(value, number).is_some());
        let waited = if self.fabric.has_idle_hooks() { wait.await } else { self.beside(compiled_here(wait)).await };
        match waited.map(|value| Missing::look(value, number)) {
            Ok(Some(Err(missing))) => Err(self.error(missing)),
            Ok(_) => Ok(()),
            Err(FabricError::PeersLeft) => Err(FabricError::MemberLeft { rank: writer }),
            Err(error) => Err(error),
        }
    }

    /// Waits while hooks have work. Such a wait is rare, and its future is large.
    fn beside<'a>(&'a self, wait: Boxed<'a, Result<u64>>) -> impl Future<Output = Result<u64>> {
        compiled_here(self.fabric.run_hooks_during(wait))
    }

    /// Checks that no member is missing.
    ///
    /// # Errors
    /// The error of an earlier collective that ended because a member was missing.
    pub(super) fn is_whole(&self) -> Result<()> {
        self.missing.map_or(Ok(()), |missing| Err(self.error(missing)))
    }

    /// Returns the outcome of a collective. If a member is missing, first announces that to the
    /// members that wait for this one.
    pub(super) async fn announced<T>(&mut self, phase: Phase, outcome: Result<T>) -> Result<T> {
        if let Err(error) = &outcome
            && let Some(missing) = self.missing_by(error)
        {
            self.missing = Some(missing);
            self.announce(phase, missing).await;
        }
        outcome
    }

    /// Returns the member that this error reports as missing, if that is to be announced.
    fn missing_by(&self, error: &FabricError) -> Option<Missing> {
        match *error {
            FabricError::MemberLeft { rank } => Some(Missing { rank, dropped: false }),
            FabricError::StaleRegion { rank, region } => {
                // It must be the member's part of the group, not a buffer of one collective.
                let member = self.number(rank).ok()?;
                (region == self.key(member)).then_some(Missing { rank, dropped: true })
            }
            _ => None,
        }
    }

    fn error(&self, Missing { rank, dropped }: Missing) -> FabricError {
        match self.number(rank) {
            Ok(member) if dropped => FabricError::StaleRegion { rank, region: self.key(member) },
            _ => FabricError::MemberLeft { rank },
        }
    }

    /// Marks each word that this member writes. A member that has left needs no mark.
    fn announce(&self, phase: Phase, missing: Missing) -> impl Future<Output = ()> {
        compiled_here(self.mark(phase, missing))
    }

    async fn mark(&self, phase: Phase, missing: Missing) {
        let numbered = self.epoch + u64::from(phase == Phase::Agreeing);
        let agreed = self.agreements + u64::from(phase == Phase::Numbered);
        // A collective's number that is still in flight must not overwrite the mark.
        let _ = self.fabric.flush_all().await;
        for round in 0..self.rounds() {
            let (next, before) = (self.further(1 << round), self.before(1 << round));
            let marks = FROM_BEFORE.map(|field| (next, field, numbered)).into_iter();
            let marks = marks.chain(AGREED.map(|field| (next, field, agreed)));
            for (member, field, number) in marks.chain(FROM_BEHIND.map(|field| (before, field, numbered))) {
                if let Ok(word) = self.word_of(member, round, field) {
                    let _ = self.fabric.put_word(&word, missing.mark(number)).await;
                }
            }
        }
        // If this rank is lost next, puts that are still in flight do not take effect.
        let _ = self.fabric.flush_all().await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_behind_a_mark_go_on() {
        let missing = Missing { rank: Rank::new(u32::MAX - 1), dropped: true };
        for number in [1, 2, NUMBER - 1, NUMBER, NUMBER + 1, NUMBER + 2, 5 * NUMBER + 4] {
            let word = missing.mark(number);
            for behind in 1..=number.min(2) {
                assert!(matches!(Missing::look(word, number - behind), Some(Ok(()))), "{number}, {behind} behind");
            }
            for ahead in 0..3 {
                let told = Missing::look(word, number + ahead);
                assert!(
                    matches!(told, Some(Err(Missing { rank, dropped: true })) if rank == missing.rank),
                    "{number}, {ahead} ahead"
                );
            }
            assert!(Missing::look(number - 1, number).is_none());
            assert!(matches!(Missing::look(number, number), Some(Ok(()))));
        }
        let left = Missing { dropped: false, ..missing }.mark(3);
        assert!(matches!(Missing::look(left, 3), Some(Err(Missing { dropped: false, .. }))));
    }
}
