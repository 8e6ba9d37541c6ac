//! The flag after a piece of a multicast broadcast.

use super::staging::BUFFERS;

/// The bits of a flag: the number of the piece in its buffer, whether a tree follows instead of the
/// bytes, and the length of the whole.
const NUMBER: u32 = 48;
const TREE: u64 = 1 << (NUMBER - 1);

/// A flag, which describes the contents of its buffer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Flag {
    pub(super) piece: u64,
    pub(super) by_tree: bool,
    pub(super) bytes: usize,
}

impl Flag {
    fn number(piece: u64) -> u64 {
        (piece / BUFFERS as u64 + 1) & 0xffff
    }

    pub(super) fn to_word(self) -> u64 {
        (Self::number(self.piece) << NUMBER) | (u64::from(self.by_tree) * TREE) | (self.bytes as u64 & (TREE - 1))
    }

    pub(super) fn of_word(word: u64, piece: u64) -> Option<Self> {
        let bytes = (word & (TREE - 1)) as usize;
        (word >> NUMBER == Self::number(piece)).then_some(Flag { piece, by_tree: word & TREE != 0, bytes })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flag_tells_its_piece_from_older_ones() {
        for piece in [0, 1, 2, 3, (1 << 17) - 2, 1 << 17, (1 << 40) + 1] {
            for (by_tree, bytes) in [(false, 0), (true, 5), (false, 1 << 46)] {
                let flag = Flag { piece, by_tree, bytes };
                assert_eq!(Flag::of_word(flag.to_word(), piece), Some(flag));
                assert_eq!(Flag::of_word(flag.to_word(), piece + BUFFERS as u64), None);
            }
        }
        assert_eq!([Flag::of_word(0, 0), Flag::of_word(0, 1)], [None; 2]);
    }
}
