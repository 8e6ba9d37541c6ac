//! Where a lock that survives deaths has its words, the same at each rank.

use super::options::Recovery;
use crate::queue::SURVIVING_BYTES;

/// At the home: the [agreement](super::agreement).
pub(super) const AGREEMENT: u64 = 0;
/// At the home: 1 + the rank that may have torn what the lock protects; 0 if nobody.
pub(super) const TORN_BY: u64 = 8;
/// At each rank: the epoch that was opened last, as far as its owner was told. Only to wake it.
pub(super) const DOORBELL: u64 = 16;
/// At the home: the dead, one word each.
const DEAD: u64 = 64;

/// In each epoch's words at each rank: whether this rank's part in a closed epoch is over, and who stands for it in the next one
/// ([`super::claim`]).
pub(super) use crate::queue::CLAIM;

pub(super) fn dead(number: usize) -> u64 {
    DEAD + 8 * number as u64
}

pub(super) fn epoch(options: &Recovery, epoch: usize) -> usize {
    (DEAD as usize + 8 * options.deaths).next_multiple_of(64) + epoch * SURVIVING_BYTES
}

pub(super) fn bytes(options: &Recovery) -> usize {
    epoch(options, options.epochs)
}
