//! What an access does to one word.

use crate::crowd::too_many;
use rdma_fabric::Amo;

/// A writer inside, in the word of a rank.
const WRITER: u64 = 1;
/// A reader inside.
const READER: u64 = 2;
/// Somebody exclusively inside at some rank, in a window's second word.
const SOMEWHERE: u64 = 1;
/// Somebody inside everywhere.
const EVERYWHERE: u64 = 1 << 32;

/// Part of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// How it is made.
    pub(super) enter: Amo<u64>,
    /// What must not have been there.
    in_the_way: u64,
    /// What must not have been there either: that so many hold it already.
    too_many: u64,
    /// What must be there while it is held.
    held: u64,
    /// How it is given back.
    pub(super) leave: Amo<u64>,
}

impl Claim {
    pub(super) const READ: Claim = Claim::counted(READER, !WRITER, WRITER);
    pub(super) const WRITE: Claim = Claim {
        enter: Amo::CompareSwap { expected: 0, new: WRITER },
        in_the_way: u64::MAX,
        too_many: 0,
        held: WRITER,
        leave: Amo::Add(WRITER.wrapping_neg()),
    };
    pub(super) const SOMEWHERE: Claim = Claim::counted(SOMEWHERE, EVERYWHERE - 1, !(EVERYWHERE - 1));
    pub(super) const EVERYWHERE: Claim = Claim::counted(EVERYWHERE, !(EVERYWHERE - 1), EVERYWHERE - 1);

    /// Each holder counts as `one` in `field`.
    const fn counted(one: u64, field: u64, in_the_way: u64) -> Claim {
        let too_many = too_many(field, one);
        Claim { enter: Amo::Add(one), in_the_way, too_many, held: field, leave: Amo::Add(one.wrapping_neg()) }
    }

    /// Whether it was made, if the word was `old` before.
    #[inline(always)]
    pub(super) fn admits(&self, old: u64) -> bool {
        old & (self.in_the_way | self.too_many) == 0
    }

    /// Whether it was not made because so many others are, whoever else was in the way.
    pub(super) fn is_crowded(&self, old: u64) -> bool {
        old & self.too_many != 0
    }

    /// Whether it can have been held, if the word was `old` before it was given back.
    #[inline(always)]
    pub(super) fn was_held(&self, old: u64) -> bool {
        old & self.held != 0
    }

    /// How it is taken back where it was not admitted. A comparison that failed has changed nothing.
    pub(super) fn undo(&self) -> Option<Amo<u64>> {
        matches!(self.enter, Amo::Add(_)).then_some(self.leave)
    }
}
