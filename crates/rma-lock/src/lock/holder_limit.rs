//! The number of holders that a lock counts in one word.
//!
//! A forgotten guard stays counted forever, so safe code could make an unlimited count overflow its
//! field, and the word would then show that no rank is inside. So each counted acquisition checks
//! the bits from [`MAX_HOLDERS`] up in the word that it found: if one is set, the acquisition
//! undoes itself, exactly as a holder leaves, and is [refused](refusal).
//!
//! So only acquisitions between those two atomics are counted above [`MAX_HOLDERS`]. There is room
//! for them: at least three quarters of the field. `docs/contract/soundness.md` contains the
//! calculation.

use crate::LockError;

/// The largest number of holders that a word counts: the largest number of ranks in a queue-based
/// lock, and a quarter of the narrowest field.
pub(crate) const MAX_HOLDERS: u64 = 1 << 26;

/// Returns the bits of a field in which each holder counts as `one`; at least one of them is set
/// while [`MAX_HOLDERS`] or more are counted.
pub(crate) const fn limit_bits(field: u64, one: u64) -> u64 {
    limit_bits_of(MAX_HOLDERS, field, one)
}

/// Returns the [`limit_bits`] of a field that should count at most `most` holders, a power of two.
pub(crate) const fn limit_bits_of(most: u64, field: u64, one: u64) -> u64 {
    assert!(
        most.is_power_of_two() && most <= MAX_HOLDERS && field / one >= 4 * most - 1,
        "three quarters of the field are left for acquisitions that take themselves back"
    );
    field & !(most * one - 1)
}

/// Returns the error of an acquisition beyond the limit.
#[cold]
pub(crate) fn refusal() -> LockError {
    LockError::TooManyHolders { most: MAX_HOLDERS as u32 }
}
