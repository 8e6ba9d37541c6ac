//! The word at both ends of a block of a heap.

/// Offsets, sizes and addresses are multiples of this number of bytes.
pub(super) const GRAIN: u64 = 8;

/// A block of a heap: its start, its size including both marks, and whether it is used.
///
/// The low half of a mark is the size in grains times two, plus one if the block is used. The high
/// half is a hash of the start, which distinguishes a mark of this block from other words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Block {
    pub(super) start: u64,
    pub(super) size: u64,
    pub(super) used: bool,
}

impl Block {
    pub(super) fn free(start: u64, size: u64) -> Self {
        Block { start, size, used: false }
    }

    pub(super) fn used(start: u64, size: u64) -> Self {
        Block { start, size, used: true }
    }

    #[expect(clippy::arithmetic_side_effects, reason = "offsets of at most 33 bits, and sizes of 34, at least a grain")]
    pub(super) fn end(&self) -> u64 {
        self.start + self.size
    }

    /// Returns the offset of the second mark.
    #[expect(clippy::arithmetic_side_effects, reason = "offsets of at most 33 bits, and sizes of 34, at least a grain")]
    pub(super) fn foot(&self) -> u64 {
        self.end() - GRAIN
    }

    pub(super) fn mark(&self) -> u64 {
        hash(self.start) << 32 | (self.size / GRAIN) << 1 | u64::from(self.used)
    }

    /// Returns the block that starts at `start`, if `mark` is its mark.
    pub(super) fn starting_at(start: u64, mark: u64) -> Option<Self> {
        let block = Block { start, size: size_in(mark), used: mark & 1 == 1 };
        (block.size > 0 && mark >> 32 == hash(start)).then_some(block)
    }

    /// Returns the block that ends at `end`, if `mark` is its mark.
    pub(super) fn ending_at(end: u64, mark: u64) -> Option<Self> {
        Block::starting_at(end.checked_sub(size_in(mark))?, mark)
    }
}

#[expect(clippy::arithmetic_side_effects, reason = "31 bits times 8")]
fn size_in(mark: u64) -> u64 {
    (mark as u32 as u64 >> 1) * GRAIN
}

/// Fibonacci hashing, of the offset's grains.
#[expect(clippy::arithmetic_side_effects, reason = "the offset of a block has at most 33 bits")]
fn hash(start: u64) -> u64 {
    u64::from(((start / GRAIN) as u32 + 1).wrapping_mul(0x9E37_79B1))
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn marks_tell_their_block(start in 0u64..1 << 29, size in 1u64..1 << 29, used: bool) {
            let block = Block { start: start * GRAIN, size: size * GRAIN, used };
            prop_assert_eq!(Block::starting_at(block.start, block.mark()), Some(block));
            prop_assert_eq!(Block::ending_at(block.end(), block.mark()), Some(block));
            prop_assert_eq!(Block::starting_at(block.start + GRAIN, block.mark()), None);
            prop_assert_eq!(Block::starting_at(block.foot() + 8 * GRAIN, block.mark()), None);
            prop_assert_eq!(Block::starting_at(block.start, 0), None);
        }
    }
}
