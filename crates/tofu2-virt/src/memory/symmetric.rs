//! One collective allocation: the same number of bytes on every rank.

use super::storage::Stored;

/// The size in bytes of the largest piece of storage that several ranks share.
const PIECE: usize = 64 << 10;

#[derive(Debug)]
pub(super) struct Symmetric {
    bytes: usize,
    /// The rank that allocated first and set the size.
    first: u32,
    ranks: u32,
    /// 64-bit words per rank.
    stride: usize,
    /// The binary logarithm of the number of ranks per piece.
    shift: u32,
    pieces: Box<[Piece]>,
    /// A bit per rank, set when the rank has dropped its part. Empty until the first does, and
    /// again when all have.
    left: Vec<u64>,
    /// The number of ranks that have not dropped their part.
    members: u32,
}

#[derive(Debug, Default)]
struct Piece {
    /// Empty until first written.
    words: Box<[u64]>,
    left: u32,
}

impl Symmetric {
    pub(super) fn new(first: u32, bytes: usize, ranks: u32) -> Self {
        let stride = bytes.div_ceil(8).max(1);
        let together = (PIECE / 8 / stride).max(1);
        let shift = together.ilog2().min(ranks.checked_next_power_of_two().map_or(u32::BITS - 1, u32::ilog2));
        let pieces = (0..ranks.div_ceil(1 << shift)).map(|_| Piece::default()).collect();
        Symmetric { bytes, first, ranks, stride, shift, pieces, left: Vec::new(), members: ranks }
    }

    #[inline]
    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn first(&self) -> u32 {
        self.first
    }

    #[inline]
    pub(super) fn has_left(&self, rank: u32) -> bool {
        match self.left.get(rank as usize / 64) {
            Some(bits) => bits >> (rank % 64) & 1 == 1,
            None => self.members == 0,
        }
    }

    pub(super) fn leave(&mut self, rank: u32, stored: &mut Stored) {
        if self.has_left(rank) {
            return;
        }
        if self.left.is_empty() {
            self.left = vec![0; (self.ranks as usize).div_ceil(64)];
        }
        self.left[rank as usize / 64] |= 1 << (rank % 64);
        let number = rank >> self.shift;
        let members = (self.ranks - (number << self.shift)).min(1 << self.shift);
        let piece = &mut self.pieces[number as usize];
        piece.left += 1;
        if piece.left == members {
            stored.drop(&mut piece.words);
        }
        self.members -= 1;
        if self.members == 0 {
            (self.pieces, self.left) = (Box::default(), Vec::new());
        }
    }

    #[inline]
    fn start(&self, rank: u32) -> usize {
        (rank & ((1 << self.shift) - 1)) as usize * self.stride
    }

    #[inline]
    pub(super) fn words(&self, rank: u32) -> Option<(&[u64], usize)> {
        let piece = self.pieces.get((rank >> self.shift) as usize)?;
        (!piece.words.is_empty()).then(|| (&*piece.words, self.start(rank)))
    }

    #[inline]
    pub(super) fn words_mut(&mut self, rank: u32, stored: &mut Stored) -> (&mut [u64], usize) {
        let start = self.start(rank);
        let number = rank >> self.shift;
        let piece = &mut self.pieces[number as usize];
        if piece.words.is_empty() {
            let members = (self.ranks - (number << self.shift)).min(1 << self.shift);
            piece.words = stored.zeroed(members as usize * self.stride);
        }
        (&mut piece.words, start)
    }
}
