//! The meaning of a lock's home words, and the rules that follow from it.

use super::recoverable::{CLOSED, TORN};
use crate::{Fairness, lock::holder_limit::limit_bits};
use core::fmt;

/// A writer is registered as the head of the queue and waits for the readers to leave.
pub(super) const WRITER_INTERESTED: u64 = 1;
/// A writer is inside.
pub(super) const WRITER_ACTIVE: u64 = 2;
/// One reader.
pub(super) const READER: u64 = 4;
/// Uncounted readers wait.
pub(super) const READERS_WAIT: u64 = 1 << 31;

/// The head of the queue sleeps: the rank that leaves wakes it to check the lock again.
pub(super) const ASLEEP: u64 = 1 << 30;
/// The head of the queue was passed: no other rank enters before it.
pub(super) const NEXT: u64 = 1 << 31;

/// The count that the last reader finds at U1 if a writer waits for it to leave.
const LAST: u64 = READER + WRITER_INTERESTED;
/// The bit at which the head starts in a count word that has one.
pub(super) const HEAD: u32 = 32;
/// The bits below the head.
const BELOW_HEAD: u64 = (1 << HEAD) - 1;

/// Returns whether the writer that entered with this count word is in the queue.
#[inline(always)]
pub(super) const fn is_queued(word: u64) -> bool {
    word & WRITER_INTERESTED == 0 && word >> HEAD != 0
}

/// The way in which a writer hands the lock to a known successor without releasing it in between.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HandOver {
    /// Never.
    Never,
    /// By a compare-and-swap, which fails if readers are counted.
    IfNoReaders,
    /// Always; the lock stays active.
    Always,
}

/// The way in which a [`crate::locks::CountedLock`] registers its writers, and its preference:
/// [`Flat`], [`Packed`], [`WritersFirst`] or [`Barging`].
pub trait Scheme: sealed::Sealed + Copy + fmt::Debug + Send + Sync + 'static {
    #[doc(hidden)]
    const RULES: Rules;
}

mod sealed {
    pub trait Sealed {}
    impl Sealed for super::Flat {}
    impl Sealed for super::Packed {}
    impl Sealed for super::WritersFirst {}
    impl Sealed for super::Barging {}
    impl Sealed for crate::lock::counted::Recoverable {}
}

/// The differences between schemes. Nodes are represented as [`crate::lock::queue::NodeId::bits`], words
/// are values of the count word.
#[derive(Clone, Copy, Debug)]
pub struct Rules {
    /// [`crate::Lock::NAME`].
    pub name: &'static str,
    /// [`crate::Lock::FAIRNESS`].
    pub fairness: Fairness,
    /// [`crate::Lock::HOME_WORDS`].
    pub home_words: usize,
    /// Flags that keep an arriving reader out.
    pub keeps_out: u64,
    /// The flags of these that will eventually be cleared, so that readers wait for that.
    pub holds_up: u64,
    /// The flags of these that keep out all ranks, and under which no rank may be inside.
    pub shut: u64,
    /// The flag of an epoch that has ended: the rest of its queue has no effect.
    pub closed: u64,
    /// Flags that may be set although no rank is inside or registered.
    pub ignored: u64,
    /// The bits in which readers are counted.
    pub counted: u64,
    /// The bits that make a writer at X2 check for waiting readers if at least one of them is set.
    pub sweep: u64,
    /// Whether a waiting reader is counted. If so, the wake admits it; otherwise it tries again.
    pub waits_counted: bool,
    /// Whether a separate word contains the head of the queue; otherwise the count word does.
    pub head_apart: bool,
    /// Whether the count word identifies an active writer.
    pub active_named: bool,
    /// The way in which a writer hands the lock over.
    pub hand_over: HandOver,
    /// Whether a running writer takes a free lock although others wait in the queue.
    pub barges: bool,
    /// Whether the lock handles the loss of a member. If so, a failed operation on the lost rank's
    /// node is not an error, and a woken waiter checks the count word again.
    pub recoverable: bool,
}

impl Rules {
    /// Returns whether a reader that found this count is inside.
    #[inline(always)]
    pub const fn admits_reader(&self, count: u64) -> bool {
        count & (self.keeps_out | self.over_limit()) == 0
    }

    /// Returns the bits of the count that keep an arriving reader out because of the holder limit.
    #[inline(always)]
    pub const fn over_limit(&self) -> u64 {
        limit_bits(self.counted, READER)
    }

    /// Returns the amount to add to the count word to show `node`'s interest.
    #[inline(always)]
    pub const fn interest(&self, node: u64) -> u64 {
        (if self.head_apart { 0 } else { node << HEAD }) | WRITER_INTERESTED
    }

    /// Returns the count word while `node` is active, without the readers.
    #[inline(always)]
    pub const fn active(&self, node: u64) -> u64 {
        (if self.active_named { node << HEAD } else { 0 }) | WRITER_ACTIVE
    }

    /// Returns the count word after interest has become activity.
    #[inline(always)]
    pub const fn granted(&self, word: u64) -> u64 {
        let word = if self.active_named || self.head_apart { word } else { word & BELOW_HEAD };
        word - WRITER_INTERESTED + WRITER_ACTIVE
    }

    /// Returns the amount that a writer adds to become a reader.
    #[inline(always)]
    pub const fn reader_for_writer(&self) -> u64 {
        READER - WRITER_ACTIVE
    }

    /// Returns whether the reader that found `word` at U1 was the last one before a writer.
    #[inline(always)]
    pub const fn is_last(&self, word: u64) -> bool {
        word & (self.counted | BELOW_HEAD) & !self.ignored == LAST
    }

    /// Returns whether no rank is inside or registered.
    #[inline(always)]
    pub const fn is_free(&self, word: u64) -> bool {
        word & !self.ignored == 0
    }

    /// Returns whether the writer that found `word` at X2 must check for waiting readers.
    #[inline(always)]
    pub const fn must_sweep(&self, word: u64) -> bool {
        word & self.sweep != 0
    }
}

/// Reader preference with a separate word for the head of the queue, as printed in 1991:
/// [`crate::locks::RpLock`].
#[derive(Clone, Copy, Debug)]
pub struct Flat;

impl Scheme for Flat {
    const RULES: Rules = Rules {
        name: "reader preference",
        fairness: Fairness::ReadersFirst,
        home_words: 4,
        keeps_out: WRITER_ACTIVE,
        holds_up: WRITER_ACTIVE,
        shut: 0,
        closed: 0,
        ignored: 0,
        counted: !(READER - 1),
        sweep: !(READER - 1),
        waits_counted: true,
        head_apart: true,
        active_named: false,
        hand_over: HandOver::Never,
        barges: false,
        recoverable: false,
    };
}

/// Reader preference with the head of the queue in the count word: [`crate::locks::PackedLock`].
#[derive(Clone, Copy, Debug)]
pub struct Packed;

impl Scheme for Packed {
    const RULES: Rules = Rules {
        name: "packed reader preference",
        home_words: 3,
        counted: (1 << HEAD) - READER,
        sweep: (1 << HEAD) - READER,
        head_apart: false,
        active_named: true,
        hand_over: HandOver::IfNoReaders,
        ..Flat::RULES
    };
}

/// Writer preference: [`crate::locks::WritersFirstLock`].
#[derive(Clone, Copy, Debug)]
pub struct WritersFirst;

impl Scheme for WritersFirst {
    const RULES: Rules = Rules {
        name: "writer preference",
        fairness: Fairness::WritersFirst,
        home_words: 3,
        keeps_out: WRITER_ACTIVE | WRITER_INTERESTED,
        holds_up: WRITER_ACTIVE | WRITER_INTERESTED,
        ignored: READERS_WAIT,
        counted: READERS_WAIT - READER,
        sweep: READERS_WAIT,
        waits_counted: false,
        head_apart: false,
        hand_over: HandOver::Always,
        ..Flat::RULES
    };
}

/// Reader preference, packed, with barging writers: [`crate::locks::BargingLock`].
#[derive(Clone, Copy, Debug)]
pub struct Barging;

impl Scheme for Barging {
    const RULES: Rules = Rules {
        name: "barging reader preference",
        ignored: ASLEEP | NEXT,
        counted: ASLEEP - READER,
        sweep: ASLEEP - READER,
        barges: true,
        ..Packed::RULES
    };
}

impl Scheme for super::Recoverable {
    const RULES: Rules = Rules {
        name: "recoverable",
        keeps_out: WRITER_ACTIVE | CLOSED | TORN,
        shut: CLOSED | TORN,
        closed: CLOSED,
        ignored: TORN,
        counted: TORN - READER,
        sweep: TORN - READER,
        recoverable: true,
        ..Packed::RULES
    };
}
