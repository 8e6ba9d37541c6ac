//! Operations in progress inside each region, for which deregistration waits.
//!
//! The rank that executes a long copy, or any operation on memory that existed before it was
//! registered, *announces* it in its own segment while it is in progress:
//!
//! ```text
//! operation                                owner
//! I1  announce the regions (the last: RMW) D1  advance the region's generation
//! I2  full barrier                         D2  full barrier
//! I3  check the generation                 D3  check all ranks' announcements
//! I4  copy                                     until none contains the region
//! I5  withdraw (release)
//! ```
//! This is a store-buffer race: if I3 misses D1, then D3 sees I1 and the owner waits for I5. The
//! owner does not wait for a rank that died inside, once its process has been reaped, because its
//! announcements are in its own segment.
//!
//! Short copies and atomics on allocated memory are not announced, as that would double their cost;
//! [`super::retired`] covers them.
//!
//! Inside one process, a one-word [`UseCount`] is used instead: it needs no barrier, and no other
//! process can interfere with it, so references to memory may rely on it.

use core::sync::atomic::{
    AtomicU32, AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release, SeqCst},
    fence,
};
use rdma_fabric::{Rank, RegionKey};

/// The maximum number of operations of one rank that can be announced at once; others wait their
/// turn.
pub(crate) const ANNOUNCEMENTS: usize = 16;

/// A region's id in an announcement: never 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RegionId(u64);

impl RegionId {
    /// Packs the rank (25 bits, from 1), the index in the table (13 bits) and the generation's low
    /// 26 bits: enough to distinguish a region from others that used the same entry while an
    /// operation was in progress.
    pub(crate) fn new(rank: Rank, key: RegionKey) -> Self {
        const { assert!(super::layout::SLOTS <= 1 << 13) };
        RegionId(
            (u64::from(rank.number()) + 1) << 39
                | u64::from(key.index & 0x1fff) << 26
                | u64::from(key.generation & ((1 << 26) - 1)),
        )
    }

    pub(crate) fn to_bits(self) -> u64 {
        self.0
    }
}

/// A word of announcements or of a [`UseCount`]. The tests implement it for loom's words.
pub(crate) trait AnnouncementWord {
    /// Stores `new` if the word is `old`, and returns whether it was. This is a full barrier.
    fn replace(&self, old: u64, new: u64) -> bool;
    /// Loads, with acquire.
    fn look(&self) -> u64;
    /// Stores, with release.
    fn set(&self, new: u64);
    /// Adds, with acquire and release, and returns the value before.
    fn add(&self, more: u64) -> u64;
    /// Subtracts, with release.
    fn subtract(&self, less: u64);
}

impl AnnouncementWord for AtomicU64 {
    #[inline]
    fn replace(&self, old: u64, new: u64) -> bool {
        let replaced = self.compare_exchange(old, new, SeqCst, Relaxed).is_ok();
        // I2. Free on x86-64 after the exchange.
        #[cfg(not(all(target_arch = "x86_64", not(miri))))]
        fence(SeqCst);
        #[cfg(all(target_arch = "x86_64", not(miri)))]
        core::sync::atomic::compiler_fence(SeqCst);
        replaced
    }
    fn look(&self) -> u64 {
        self.load(Acquire)
    }
    fn set(&self, new: u64) {
        self.store(new, Release);
    }
    fn add(&self, more: u64) -> u64 {
        self.fetch_add(more, AcqRel)
    }
    fn subtract(&self, less: u64) {
        self.fetch_sub(less, Release);
    }
}

/// An operation in progress inside `N` regions; withdrawn when dropped.
#[derive(Debug)]
#[must_use]
pub(crate) struct Inside<'a, W: AnnouncementWord, const N: usize = 1> {
    words: [&'a W; N],
    taken: &'a AtomicU32,
    /// The bits of `words` in `taken`.
    bits: u32,
}

impl<W: AnnouncementWord, const N: usize> Drop for Inside<'_, W, N> {
    /// Withdraws: I5.
    fn drop(&mut self) {
        for word in self.words {
            // Release: pairs with the acquire in `names`.
            word.set(0);
        }
        // Release: pairs with the acquire in `announce`.
        self.taken.fetch_and(!self.bits, Release);
    }
}

/// Announces (I1 and I2) in some of the rank's own `words`, of which there are at most 32; one
/// barrier suffices for all `ids`. `rest` is called while too few words are free: no caller waits
/// while it holds words. The words in use are marked in the rank's private `taken`, one bit each,
/// and not in the words, which peers can write too.
#[inline]
pub(crate) fn announce<'a, W: AnnouncementWord, const N: usize>(
    words: &'a [W],
    taken: &'a AtomicU32,
    ids: [RegionId; N],
    mut rest: impl FnMut(),
) -> Inside<'a, W, N> {
    loop {
        let now = taken.load(Relaxed);
        let mut free = !now;
        let chosen = ids.map(|_| {
            let place = free.trailing_zeros();
            free &= free.wrapping_sub(1);
            words.get(place as usize).map(|word| (word, 1 << place))
        });
        if chosen.iter().any(Option::is_none) {
            rest();
            continue;
        }
        let bits = chosen.iter().flatten().fold(0, |bits, (_, bit)| bits | bit);
        // Acquire: pairs with the release in `Inside::drop`.
        if taken.compare_exchange_weak(now, now | bits, Acquire, Relaxed).is_err() {
            continue;
        }
        // No word is missing, by the check.
        let words = chosen.map(|chosen| chosen.map_or(&words[0], |(word, _)| word));
        for (at, (word, id)) in words.into_iter().zip(ids).enumerate() {
            if at + 1 < N {
                word.set(id.to_bits());
            } else {
                // The barrier, which also covers the words before it.
                while !word.replace(word.look(), id.to_bits()) {}
            }
        }
        return Inside { words, taken, bits };
    }
}

/// Makes the barrier D2, between moving the generation and [`names`].
pub(crate) fn barrier() {
    fence(SeqCst);
}

/// Returns whether one of a rank's `words` contains the region: D3.
pub(crate) fn names<W: AnnouncementWord>(words: &[W], id: RegionId) -> bool {
    // Acquire, pairs with the release in `Inside::drop`: earlier copies are visible and complete.
    words.iter().any(|word| word.look() == id.to_bits())
}

/// Set in a count's word once it is closed; the other bits count the operations inside.
const CLOSED: u64 = 1 << 63;
/// Set once the count has been observed to be closed and empty: an operation that arrives too late
/// is briefly counted, but is not inside.
const QUIESCENT: u64 = 1 << 62;

/// Counts operations of this process inside some memory until it is closed.
#[derive(Debug, Default)]
pub(crate) struct UseCount<W: AnnouncementWord = AtomicU64>(W);

impl<W: AnnouncementWord> UseCount<W> {
    #[cfg(test)]
    pub(crate) fn over(word: W) -> Self {
        UseCount(word)
    }

    /// Enters, until the returned value is dropped; `None` if the count is closed.
    #[inline]
    pub(crate) fn enter(&self) -> Option<Use<'_, W>> {
        let entered = Use(&self.0);
        // Dropping `entered` decrements the count again.
        (self.0.add(1) & CLOSED == 0).then_some(entered)
    }

    /// Closes the count, so that no operation enters any more. To be called once.
    pub(crate) fn close(&self) {
        self.0.add(CLOSED);
    }

    /// Returns whether the count is closed and every operation has left permanently.
    pub(crate) fn is_quiescent(&self) -> bool {
        // Acquire: pairs with the release of the last operation to leave, through all
        // read-modify-writes in between.
        let now = self.0.look();
        now & QUIESCENT != 0 || (now == CLOSED && self.0.replace(CLOSED, CLOSED | QUIESCENT))
    }
}

/// An operation inside, counted by a [`UseCount`].
#[derive(Debug)]
pub(crate) struct Use<'a, W: AnnouncementWord>(&'a W);

impl<W: AnnouncementWord> Drop for Use<'_, W> {
    fn drop(&mut self) {
        self.0.subtract(1);
    }
}

#[cfg(test)]
mod tests;
