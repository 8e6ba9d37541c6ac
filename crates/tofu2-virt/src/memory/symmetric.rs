//! One collective allocation: the same number of bytes on every rank.

use super::{
    pages::{Pages, Store},
    part::Part,
    storage::Stored,
};

/// The size in bytes of the largest piece of storage that several ranks share.
const PIECE: usize = 64 << 10;
/// The size in bytes of the largest part that shares a piece with others.
const SMALL: usize = 4 << 10;

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
    /// The sizes of a piece that is stored by pages: that of a single rank.
    pages: Option<Pages>,
    pieces: Box<[Piece]>,
    store: Store,
    /// A bit per rank, set when the rank has dropped its part. Empty until the first does, and
    /// again when all have.
    left: Vec<u64>,
    /// The number of ranks that have not dropped their part.
    members: u32,
}

#[derive(Debug, Default)]
struct Piece {
    words: Part,
    left: u32,
}

impl Symmetric {
    pub(super) fn new(first: u32, bytes: usize, ranks: u32) -> Self {
        let stride = bytes.div_ceil(8).max(1);
        let together = if 8 * stride > SMALL { 1 } else { (PIECE / 8 / stride).max(1) };
        let shift = together.ilog2().min(ranks.checked_next_power_of_two().map_or(u32::BITS - 1, u32::ilog2));
        let pages = (shift == 0).then(|| Pages::of(stride));
        let pieces = (0..ranks.div_ceil(1 << shift)).map(|_| Piece::default()).collect();
        let (store, left) = (Store::default(), Vec::new());
        Symmetric { bytes, first, ranks, stride, shift, pages, pieces, store, left, members: ranks }
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
        let sizes = self.sizes(number);
        let piece = &mut self.pieces[number as usize];
        piece.left += 1;
        if piece.left == members {
            piece.words.clear(sizes, &mut self.store, stored);
        }
        self.members -= 1;
        if self.members == 0 {
            (self.pieces, self.store, self.left) = (Box::default(), Store::default(), Vec::new());
        }
    }

    #[inline]
    fn start(&self, rank: u32) -> usize {
        (rank & ((1 << self.shift) - 1)) as usize * self.stride
    }

    /// Returns the sizes of a piece. One of several ranks is small, and stored as a whole.
    #[inline]
    fn sizes(&self, number: u32) -> Pages {
        match self.pages {
            Some(pages) => pages,
            None => {
                let members = (self.ranks - (number << self.shift)).min(1 << self.shift);
                Pages::whole(members as usize * self.stride)
            }
        }
    }

    /// Returns whether nothing of a rank's part is stored.
    pub(super) fn is_blank(&self, rank: u32) -> bool {
        self.pieces.get((rank >> self.shift) as usize).is_none_or(|piece| piece.words.is_blank())
    }

    /// Returns a word of a rank's part, if it is stored.
    #[inline]
    pub(super) fn word(&self, rank: u32, at: usize) -> Option<&u64> {
        let number = rank >> self.shift;
        self.pieces.get(number as usize)?.words.word(self.sizes(number), &self.store, self.start(rank) + at)
    }

    /// Returns the bytes of a rank's part from `offset` on, at most `len`, that are stored together,
    /// or that are not stored, and their number.
    #[inline]
    pub(super) fn run(&self, rank: u32, offset: usize, len: usize) -> (Option<&[u8]>, usize) {
        let number = rank >> self.shift;
        let Some(piece) = self.pieces.get(number as usize) else { return (None, len) };
        piece.words.run(self.sizes(number), &self.store, 8 * self.start(rank) + offset, len)
    }

    /// Returns the bytes of a rank's part from `offset` on, at most `len` and at least one, to be
    /// written.
    #[inline]
    pub(super) fn run_mut(&mut self, rank: u32, offset: usize, len: usize, stored: &mut Stored) -> &mut [u8] {
        let (start, number) = (self.start(rank), rank >> self.shift);
        let sizes = self.sizes(number);
        self.pieces[number as usize].words.run_mut(sizes, &mut self.store, 8 * start + offset, len, stored)
    }
}
