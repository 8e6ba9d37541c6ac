//! The words of a recoverable lock: their layout, the same at each rank, and their meaning.

use super::Recovery;
use crate::{LockError, lock::queue::RECOVERABLE_BYTES};
use core::fmt;
use rdma_fabric::Rank;

/// At the home: the [`Agreement`].
pub(super) const AGREEMENT: u64 = 0;
/// At the home: 1 + the rank that may have torn the protected data; 0 if none.
pub(super) const TORN_BY: u64 = 8;
/// At each rank: the last opened epoch that the rank was notified of. Serves only to wake the rank.
pub(super) const DOORBELL: u64 = 16;
/// At the home: the dead ranks, one word each.
const DEAD: u64 = 64;

/// In each epoch's words at each rank: whether the rank has completed its part in a closed epoch,
/// and its stand-in in the next one ([`Claim`]).
pub(super) use crate::lock::queue::CLAIM;

pub(super) fn dead(number: usize) -> u64 {
    DEAD + 8 * number as u64
}

pub(super) fn epoch(options: &Recovery, epoch: usize) -> usize {
    (DEAD as usize + 8 * options.deaths).next_multiple_of(64) + epoch * RECOVERABLE_BYTES
}

pub(super) fn bytes(options: &Recovery) -> usize {
    epoch(options, options.epochs)
}

/// Epochs are counted in 8 bits.
pub(super) const MOST_EPOCHS: usize = 1 << EPOCH_BITS;
/// Deaths are counted in 12 bits.
pub(super) const MOST_DEATHS: usize = (1 << DEATH_BITS) - 1;

const EPOCH_BITS: u32 = 8;
const DEATH_BITS: u32 = 12;
const KIND: u32 = 32;
const OPEN: u32 = KIND + 2;
const NEXT: u32 = OPEN + EPOCH_BITS;
const DEATHS: u32 = NEXT + EPOCH_BITS;

/// The word at the home on which survivors agree: the open epoch, or the rank that opens the next
/// one. The value zero means that the first epoch is open and no rank is dead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct Agreement {
    pub(super) state: State,
    /// The last epoch that was open.
    pub(super) epoch: usize,
    /// The number of deaths that have been recorded for it.
    pub(super) deaths: usize,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    /// The epoch is open.
    Open,
    /// `by` closes it, and opens `next`.
    Opening { next: usize, by: Rank },
    /// The epoch is closed, and no epoch is left to open.
    Exhausted,
}

impl Agreement {
    pub(super) fn bits(self) -> u64 {
        let (kind, next, by) = match self.state {
            State::Open => (0, 0, 0),
            State::Opening { next, by } => (1, next as u64, u64::from(by.number())),
            State::Exhausted => (2, 0, 0),
        };
        by | kind << KIND | (self.epoch as u64) << OPEN | next << NEXT | (self.deaths as u64) << DEATHS
    }

    /// # Errors
    /// [`LockError::Corrupt`].
    pub(super) fn of_bits(bits: u64) -> Result<Self, LockError> {
        let field = |at: u32, width: u32| (bits >> at & ((1 << width) - 1)) as usize;
        let state = match field(KIND, 2) {
            0 => State::Open,
            1 => State::Opening { next: field(NEXT, EPOCH_BITS), by: Rank::new(bits as u32) },
            2 => State::Exhausted,
            _ => return Err(LockError::corrupt("agreement", bits)),
        };
        let agreement = Agreement { state, epoch: field(OPEN, EPOCH_BITS), deaths: field(DEATHS, DEATH_BITS) };
        if agreement.bits() == bits { Ok(agreement) } else { Err(LockError::corrupt("agreement", bits)) }
    }

    /// Returns the proposal of `me` to replace this agreement: to open the next epoch of `epochs`.
    /// The words of an epoch whose opening was started but not completed are not used again.
    pub(super) fn opened_by(self, me: Rank, epochs: usize) -> Self {
        let next = match self.state {
            State::Opening { next, .. } => next + 1,
            State::Open | State::Exhausted => self.epoch + 1,
        };
        let state = if next < epochs { State::Opening { next, by: me } } else { State::Exhausted };
        Agreement { state, ..self }
    }
}

impl fmt::Debug for Agreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "epoch {}, {:?}, {} dead", self.epoch, self.state, self.deaths)
    }
}

/// The remaining work of a rank in a closed epoch, and its stand-in in the next one.
///
/// The rank that opens the next epoch puts a *stand-in* into it for each survivor that may be
/// inside the old one: a reader in its count, or the active writer. The survivor removes its
/// stand-in when it has completed its work in the old epoch. A word of the survivor in each epoch,
/// which both ranks change only by atomics, determines which of the two came first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Claim(u64);

impl Claim {
    /// The rank is no longer active in this epoch.
    pub(super) const OVER: u64 = 1;
    /// A stand-in of the rank from an older epoch is in this one.
    pub(super) const HOSTS: u64 = 2;
    /// The rank has a stand-in in a later epoch …
    const STAND_IN: u64 = 4;
    /// … and that stand-in is the active writer there.
    const WRITES: u64 = 8;
    const EPOCH: u32 = 8;

    pub(super) fn of_bits(bits: u64) -> Self {
        Claim(bits)
    }

    pub(super) fn bits(self) -> u64 {
        self.0
    }

    pub(super) fn has_ended(self) -> bool {
        self.0 & Claim::OVER != 0
    }

    pub(super) fn hosts(self) -> bool {
        self.0 & Claim::HOSTS != 0
    }

    /// Returns the epoch in which the rank has a stand-in, and whether the stand-in is a writer.
    pub(super) fn stand_in(self) -> Option<(usize, bool)> {
        (self.0 & Claim::STAND_IN != 0).then_some(((self.0 >> Claim::EPOCH) as usize, self.0 & Claim::WRITES != 0))
    }

    /// Returns this claim with a stand-in in `epoch`.
    pub(super) fn with_stand_in(self, epoch: usize, writes: bool) -> Self {
        let writes = if writes { Claim::WRITES } else { 0 };
        Claim(self.0 & (Claim::OVER | Claim::HOSTS) | Claim::STAND_IN | writes | (epoch as u64) << Claim::EPOCH)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_say_what_was_agreed() {
        let first = Agreement { state: State::Open, epoch: 0, deaths: 0 };
        assert_eq!(first.bits(), 0);
        let by = Rank::new(u32::MAX - 1);
        for state in [State::Open, State::Opening { next: 255, by }, State::Exhausted] {
            let there = Agreement { state, epoch: 254, deaths: MOST_DEATHS };
            assert_eq!(Agreement::of_bits(there.bits()), Ok(there));
        }
        for bits in [3 << KIND, 1, 1 << NEXT, 1 << 63] {
            assert!(Agreement::of_bits(bits).is_err(), "{bits:#x}");
        }
    }

    #[test]
    fn no_epoch_is_begun_twice() {
        let (one, two) = (Rank::new(1), Rank::new(2));
        let first = Agreement { state: State::Open, epoch: 0, deaths: 0 };
        let begun = first.opened_by(one, 4);
        assert_eq!(begun.state, State::Opening { next: 1, by: one });
        let again = begun.opened_by(two, 4);
        assert_eq!((again.epoch, again.state), (0, State::Opening { next: 2, by: two }));
        assert_eq!(again.opened_by(one, 3).state, State::Exhausted);
    }

    #[test]
    fn words_say_who_stands_where() {
        let hosting = Claim::of_bits(Claim::HOSTS);
        assert_eq!((hosting.stand_in(), hosting.hosts(), hosting.has_ended()), (None, true, false));
        let marked = hosting.with_stand_in(255, true).with_stand_in(3, false);
        assert_eq!((marked.stand_in(), marked.hosts()), (Some((3, false)), true));
        assert!(Claim::of_bits(marked.bits() | Claim::OVER).has_ended());
    }
}
