//! What the home words of a lock mean, and the rules that follow from it.

use super::later::Later;
use crate::{Fairness, holder_limit::limit_bits};
use core::fmt;
use rdma_fabric::Fabric;

/// A writer is registered as the queue's first and waits for the readers to leave.
pub(super) const WRITER_INTERESTED: u64 = 1;
/// A writer is inside.
pub(super) const WRITER_ACTIVE: u64 = 2;
/// One reader.
pub(super) const READER: u64 = 4;
/// Uncounted readers wait.
pub(super) const READERS_WAIT: u64 = 1 << 31;

/// The count that the last reader finds at U1 if a writer waits for it to leave.
pub(super) const LAST: u64 = READER + WRITER_INTERESTED;
/// The bit at which the head starts in a count word that has one.
pub(super) const HEAD: u32 = 32;

/// How a writer hands the lock to a known successor without releasing it in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// It never does.
    Never,
    /// By a compare-and-swap, which fails if readers are counted.
    IfNoReaders,
    /// Always; the lock stays active.
    Always,
}

/// How a [`crate::locks::CountedLock`] registers its writers, and whom it prefers: [`Flat`],
/// [`Packed`] or [`WritersFirst`].
pub trait Scheme: Later {}

impl<R: Later> Scheme for R {}

/// The part that differs between schemes. Nodes are given as [`crate::queue::NodeId::bits`], words
/// are values of the count word. The default methods keep the queue's first in the count word.
pub trait Rules: Copy + fmt::Debug + Send + Sync + 'static {
    /// What the lock of an epoch knows about the recoverable lock that it belongs to; nothing in
    /// other schemes.
    type EpochLink: Default + Send + Sync;
    /// [`crate::Lock::NAME`].
    const NAME: &'static str;
    /// [`crate::Lock::FAIRNESS`].
    const FAIRNESS: Fairness;
    /// [`crate::Lock::HOME_WORDS`].
    const HOME_WORDS: usize;
    /// Flags that keep an arriving reader out.
    const KEEPS_OUT: u64;
    /// The bits in which readers are counted.
    const COUNTED: u64;
    /// The bits of the count that keep an arriving reader out because of the holder limit.
    const OVER_LIMIT: u64 = limit_bits(Self::COUNTED, READER);
    /// The flags that keep readers out and will clear in time, so that readers wait for that.
    const HOLDS_UP: u64 = Self::KEEPS_OUT;
    /// Whether a waiting reader is counted. If so, the wake lets it in; otherwise it tries again.
    const WAITS_COUNTED: bool;
    /// Whether a separate word names the queue's first; otherwise the count word does.
    const HEAD_APART: bool;
    /// How a writer hands the lock over.
    const HAND_OVER: HandOver;
    /// Whether the lock handles the loss of a member. If so, a failed operation on the lost rank's
    /// node is no error, and a woken waiter checks the count word again.
    const RECOVERABLE: bool = false;

    /// Returns what must be added to the count word to show `node`'s interest.
    #[inline(always)]
    fn interest(node: u64) -> u64 {
        node << HEAD | WRITER_INTERESTED
    }

    /// Returns the count word while `node` is active, without the readers.
    #[inline(always)]
    fn active(node: u64) -> u64 {
        node << HEAD | WRITER_ACTIVE
    }

    /// Returns the count word in which interest has become activity.
    #[inline(always)]
    fn granted(word: u64) -> u64 {
        word - WRITER_INTERESTED + WRITER_ACTIVE
    }

    /// Returns whether the reader that found `word` at U1 was the last one before a writer.
    fn is_last(word: u64) -> bool;

    /// Returns whether nobody is inside or registered.
    fn is_free(word: u64) -> bool;

    /// Returns whether the writer that found `word` at X2 must look for waiting readers.
    fn must_sweep(word: u64) -> bool;

    /// Returns whether nobody may be inside, even if admitted.
    #[inline]
    fn is_shut(_word: u64) -> bool {
        false
    }

    /// Returns whether the epoch is over, and what is left in its queue concerns nobody.
    #[inline]
    fn is_closed(_word: u64) -> bool {
        false
    }

    /// Reacts to a published change; called after each. `is_out` returns whether this rank is
    /// neither inside now nor on its way in.
    #[inline(always)]
    fn went_on(_link: &Self::EpochLink, _fabric: &Fabric, _is_out: impl FnOnce() -> bool) {}

    /// Returns the head in a count word.
    #[inline]
    fn head(word: u64) -> u64 {
        word >> HEAD
    }
}

/// Reader preference with a word for the queue's first, as printed in 1991:
/// [`crate::locks::RpLock`].
#[derive(Clone, Copy, Debug)]
pub struct Flat;

impl Rules for Flat {
    type EpochLink = ();

    const NAME: &'static str = "reader preference";
    const FAIRNESS: Fairness = Fairness::ReadersFirst;
    const HOME_WORDS: usize = 4;
    const KEEPS_OUT: u64 = WRITER_ACTIVE;
    const COUNTED: u64 = !(READER - 1);
    const WAITS_COUNTED: bool = true;
    const HEAD_APART: bool = true;
    const HAND_OVER: HandOver = HandOver::Never;

    #[inline(always)]
    fn interest(_: u64) -> u64 {
        WRITER_INTERESTED
    }

    #[inline(always)]
    fn active(_: u64) -> u64 {
        WRITER_ACTIVE
    }

    #[inline(always)]
    fn granted(_: u64) -> u64 {
        WRITER_ACTIVE
    }

    #[inline(always)]
    fn is_last(word: u64) -> bool {
        word == LAST
    }

    #[inline(always)]
    fn is_free(word: u64) -> bool {
        word == 0
    }

    #[inline(always)]
    fn must_sweep(word: u64) -> bool {
        word >= READER
    }
}

/// Reader preference with the queue's first in the count word: [`crate::locks::PackedLock`].
#[derive(Clone, Copy, Debug)]
pub struct Packed;

impl Rules for Packed {
    type EpochLink = ();

    const NAME: &'static str = "packed reader preference";
    const FAIRNESS: Fairness = Fairness::ReadersFirst;
    const HOME_WORDS: usize = 3;
    const KEEPS_OUT: u64 = WRITER_ACTIVE;
    const COUNTED: u64 = (1 << HEAD) - READER;
    const WAITS_COUNTED: bool = true;
    const HEAD_APART: bool = false;
    const HAND_OVER: HandOver = HandOver::IfNoReaders;

    #[inline(always)]
    fn is_last(word: u64) -> bool {
        u64::from(word as u32) == LAST
    }

    #[inline(always)]
    fn is_free(word: u64) -> bool {
        word == 0
    }

    #[inline(always)]
    fn must_sweep(word: u64) -> bool {
        word as u32 >= READER as u32
    }
}

/// Writer preference: [`crate::locks::WritersFirstLock`].
#[derive(Clone, Copy, Debug)]
pub struct WritersFirst;

impl Rules for WritersFirst {
    type EpochLink = ();

    const NAME: &'static str = "writer preference";
    const FAIRNESS: Fairness = Fairness::WritersFirst;
    const HOME_WORDS: usize = 3;
    const KEEPS_OUT: u64 = WRITER_ACTIVE | WRITER_INTERESTED;
    const COUNTED: u64 = READERS_WAIT - READER;
    const WAITS_COUNTED: bool = false;
    const HEAD_APART: bool = false;
    const HAND_OVER: HandOver = HandOver::Always;

    #[inline(always)]
    fn active(_: u64) -> u64 {
        WRITER_ACTIVE
    }

    #[inline(always)]
    fn granted(word: u64) -> u64 {
        word & READERS_WAIT | WRITER_ACTIVE
    }

    #[inline(always)]
    fn is_last(word: u64) -> bool {
        u64::from(word as u32) & !READERS_WAIT == LAST
    }

    #[inline(always)]
    fn is_free(word: u64) -> bool {
        word & !READERS_WAIT == 0
    }

    #[inline(always)]
    fn must_sweep(word: u64) -> bool {
        word & READERS_WAIT != 0
    }
}
