//! How many holders a lock counts in one word.
//!
//! Whoever forgets a guard stays counted for ever, so a count that nobody bounds can be brought to
//! the end of its field by safe code, and then says that nobody is there. So each acquisition that
//! is counted looks, in the word that it found, for the bits above [`MOST`]: if one is set it takes
//! itself back, exactly as a holder leaves, and is [refused](refusal).
//!
//! What stands above [`MOST`] are therefore only acquisitions between those two atomics. They need
//! room: three quarters of the field, at least. `docs/soundness.md` has the arithmetic.

use crate::LockError;

/// Holders that a word counts: as many as there can be ranks in a lock with queues, and a quarter
/// of the narrowest field.
pub(crate) const MOST: u64 = 1 << 26;

/// The bits of a field in which each holder counts as `one`, of which at least one is set while
/// [`MOST`] or more are counted.
pub(crate) const fn too_many(field: u64, one: u64) -> u64 {
    too_many_of(MOST, field, one)
}

/// The same where `most` are enough, a power of two.
pub(crate) const fn too_many_of(most: u64, field: u64, one: u64) -> u64 {
    assert!(most.is_power_of_two() && most <= MOST && field / one >= 4 * most - 1, "three quarters are to be left");
    field & !(most * one - 1)
}

/// What the one too many is told.
#[cold]
pub(crate) fn refusal() -> LockError {
    LockError::TooManyHolders { most: MOST as u32 }
}
