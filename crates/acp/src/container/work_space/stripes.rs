//! The distribution of the bytes of a work space over the ranks.

#![deny(clippy::arithmetic_side_effects)]

use core::{cmp::Ordering, num::NonZeroU64};

/// The locations of the bytes of a work space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Stripes {
    pub(super) bytes: u64,
    pub(super) first: u64,
    pub(super) unit: NonZeroU64,
    pub(super) ranks: NonZeroU64,
}

/// Consecutive bytes of a work space in one rank's part.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) rank: u64,
    /// The offset in the rank's part.
    pub(super) at: u64,
    pub(super) bytes: u64,
}

impl Stripes {
    /// Returns the number of bytes at a rank.
    #[expect(clippy::arithmetic_side_effects, reason = "numbers of ranks have 32 bits; all others are at most `bytes`")]
    pub(super) fn share(&self, rank: u64) -> u64 {
        let turn = (rank + self.ranks.get() - self.first) % self.ranks;
        let (rounds, left) = (self.bytes / self.unit / self.ranks, self.bytes / self.unit % self.ranks);
        let last = match turn.cmp(&left) {
            Ordering::Less => self.unit.get(),
            Ordering::Equal => self.bytes % self.unit,
            Ordering::Greater => 0,
        };
        rounds * self.unit.get() + last
    }

    /// Returns the location of an existing byte, and the number of consecutive bytes there.
    #[expect(clippy::arithmetic_side_effects, reason = "numbers of ranks have 32 bits; all others are at most `bytes`")]
    pub(super) fn run(&self, position: u64) -> Run {
        let (block, within) = (position / self.unit, position % self.unit);
        Run {
            rank: (self.first + block % self.ranks) % self.ranks,
            at: block / self.ranks * self.unit.get() + within,
            bytes: (self.unit.get() - within).min(self.bytes - position),
        }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        /// Every byte has its own location, and the parts of the ranks have the required sizes.
        #[test]
        fn stripes_cover_all_bytes(bytes in 0u64..300, first in 0u64..5, unit in 1u64..40, more in 0u64..3) {
            let [unit, ranks] = [unit, first + 1 + more].map(|number| NonZeroU64::new(number).expect("not 0"));
            let stripes = Stripes { bytes, first, unit, ranks };
            let mut places: Vec<Vec<bool>> =
                (0..ranks.get()).map(|rank| vec![false; stripes.share(rank) as usize]).collect();
            let mut position = 0;
            while position < bytes {
                let run = stripes.run(position);
                for at in run.at..run.at + run.bytes {
                    let place = &mut places[run.rank as usize][at as usize];
                    prop_assert!(!*place);
                    *place = true;
                }
                prop_assert_eq!(Run { at: run.at + run.bytes - 1, bytes: 1, ..run }, stripes.run(position + run.bytes - 1));
                position += run.bytes;
            }
            prop_assert!(places.iter().flatten().all(|place| *place));
        }
    }
}
