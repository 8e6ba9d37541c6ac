//! The words of a sequence, and the locations of its bytes.

use crate::{AcpError, GlobalAddress, Result, address::MAX_REGION_BYTES};

/// The address and the number of consecutive bytes.
pub(super) type Piece = (GlobalAddress, usize);

/// The words of a vector or deque, all in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Words {
    /// `None` as long as the capacity is 0.
    pub(super) body: Option<GlobalAddress>,
    /// The offset of the first byte in the body; always 0 in a vector.
    pub(super) offset: u64,
    pub(super) size: u64,
    pub(super) capacity: u64,
}

/// Whether the bytes of a sequence may wrap around to the start of the body.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Form {
    /// Body, size, capacity.
    Vector,
    /// Body, offset, size, capacity.
    Deque,
}

impl Form {
    /// Returns the number of words.
    pub(super) fn words(self) -> usize {
        match self {
            Form::Vector => 3,
            Form::Deque => 4,
        }
    }
}

impl Words {
    pub(super) fn empty(body: Option<GlobalAddress>, capacity: u64) -> Self {
        Words { body, offset: 0, size: 0, capacity }
    }

    pub(super) fn to_words(self, form: Form) -> Vec<u64> {
        let body = self.body.map_or(0, GlobalAddress::to_bits);
        match form {
            Form::Vector => vec![body, self.size, self.capacity],
            Form::Deque => vec![body, self.offset, self.size, self.capacity],
        }
    }

    /// Reads the words of the object at `object`.
    pub(super) fn from_words(words: &[u64], object: GlobalAddress) -> Result<Self> {
        let (body, offset, size, capacity) = match *words {
            [body, size, capacity] => (body, 0, size, capacity),
            [body, offset, size, capacity] => (body, offset, size, capacity),
            _ => (0, 1, 0, 0),
        };
        let read = Words { body: GlobalAddress::from_bits(body), offset, size, capacity };
        let inside = size <= capacity && (offset < capacity || offset == 0);
        // A body is inside a heap. So sums of these numbers don't overflow.
        let good = inside && capacity <= MAX_REGION_BYTES && (read.body.is_some() || capacity == 0);
        if good { Ok(read) } else { Err(AcpError::Damaged { address: object }) }
    }

    /// Returns the locations of `bytes` bytes of the capacity, starting at position `at`.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "`from_words` bounds all numbers; a capacity that has bytes is not 0"
    )]
    pub(super) fn pieces(&self, at: u64, bytes: u64) -> Result<Vec<Piece>> {
        let Some(body) = self.body.filter(|_| bytes > 0) else { return Ok(Vec::new()) };
        let start = (self.offset + at) % self.capacity;
        let first = bytes.min(self.capacity - start);
        let mut pieces = vec![(body.offset_by(start)?, first as usize)];
        if first < bytes {
            pieces.push((body, (bytes - first) as usize));
        }
        Ok(pieces)
    }

    /// Returns whether some of `bytes` bytes at `address` may be in the body.
    #[expect(clippy::arithmetic_side_effects, reason = "`from_words` bounds all numbers")]
    pub(super) fn may_hold(&self, address: GlobalAddress, bytes: u64) -> bool {
        let Some(body) = self.body.filter(|body| body.id() == address.id()) else { return false };
        let (at, start) = (address.offset(), body.offset());
        at < start + self.capacity && start < at.saturating_add(bytes)
    }
}
