//! Global addresses: 64-bit words that each identify one byte of registered memory of the job.

#![deny(clippy::arithmetic_side_effects)]

use crate::{AcpError, Result};
use core::{fmt, num::NonZeroU64};
use rdma_fabric::Rank;

/// Bits of the offset: a region has at most 8 GiB.
const OFFSET_BITS: u32 = 33;
const TAG_BITS: u32 = 8;
const COLOUR_BITS: u32 = 2;
const TAG_AT: u32 = OFFSET_BITS;
const COLOUR_AT: u32 = TAG_AT + TAG_BITS;
const RANK_AT: u32 = COLOUR_AT + COLOUR_BITS;

/// The maximum size of a region with a global address, in bytes.
pub const MAX_REGION_BYTES: u64 = 1 << OFFSET_BITS;
/// The maximum number of ranks of a job with global addresses: the field holds the rank plus one.
pub const MAX_RANKS: usize = (1 << (64 - RANK_AT)) - 1;
/// The maximum number of colours.
pub const MAX_COLOURS: usize = 1 << COLOUR_BITS;
/// The maximum number of regions of a rank, including the reserved ones.
pub(crate) const MAX_TAGS: usize = 1 << TAG_BITS;

/// The number of a region on its owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Tag(pub(crate) u8);

impl Tag {
    /// The starter memory.
    pub(crate) const STARTER: Tag = Tag(0);
    /// The memory of channels.
    pub(crate) const CHANNELS: Tag = Tag(1);
    /// The heap.
    pub(crate) const HEAP: Tag = Tag(2);
    /// The first one for regions that programs register.
    pub(crate) const FIRST_FREE: u8 = 3;
}

/// The address of one byte of registered memory somewhere in the job: rank, colour, region and
/// offset in 64 bits.
///
/// It is plain data and never 0, so it can be sent, stored in global memory as a word, and used as
/// the operand of an atomic operation. `Option<GlobalAddress>` has 64 bits too; `None` is the null
/// address. The *colour* is a hint for the path to take, and not part of the identity of the byte.
///
/// From the highest bit: rank plus one (21 bits), colour (2), region (8), offset in bytes (33).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(transparent)]
pub struct GlobalAddress(NonZeroU64);

impl GlobalAddress {
    /// Composes an address; the caller has checked the parts.
    pub(crate) fn new(rank: Rank, colour: u8, tag: Tag, offset: u64) -> Self {
        let rank = (u64::from(rank.number()) + 1) << RANK_AT;
        let bits = rank | u64::from(colour) << COLOUR_AT | u64::from(tag.0) << TAG_AT | offset;
        GlobalAddress(NonZeroU64::new(bits).expect("the rank's field is not 0"))
    }

    /// Returns the address in one word, never 0.
    #[inline]
    pub const fn to_bits(self) -> u64 {
        self.0.get()
    }

    /// Restores an address from [`GlobalAddress::to_bits`]; `None` for 0 and for words that are not
    /// an address of any job.
    #[inline]
    pub const fn from_bits(bits: u64) -> Option<Self> {
        match NonZeroU64::new(bits) {
            Some(word) if bits >> RANK_AT != 0 => Some(GlobalAddress(word)),
            _ => None,
        }
    }

    /// Returns the rank whose memory this is.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`from_bits` has found a rank's field above 0")]
    pub const fn rank(self) -> Rank {
        Rank::new((self.to_bits() >> RANK_AT) as u32 - 1)
    }

    /// Returns the colour: which of the parallel paths to take.
    #[inline]
    pub const fn colour(self) -> usize {
        (self.to_bits() >> COLOUR_AT) as usize & (MAX_COLOURS - 1)
    }

    #[inline]
    pub(crate) const fn tag(self) -> Tag {
        Tag((self.to_bits() >> TAG_AT) as u8)
    }

    /// Returns the number of the region among those of its rank.
    #[inline]
    pub const fn region(self) -> u8 {
        self.tag().0
    }

    /// Returns the offset in the region, in bytes.
    #[inline]
    pub const fn offset(self) -> u64 {
        self.to_bits() & (MAX_REGION_BYTES - 1)
    }

    /// Returns the region: the rank and its number for the region.
    #[inline(always)]
    pub(crate) const fn id(self) -> RegionId {
        RegionId((self.to_bits() >> TAG_AT) as u32 & !COLOUR_OF_ID)
    }

    /// Returns the address `bytes` bytes further on; `None` if it can't be in the same region.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "the sum of the offset's field stays in the field")]
    pub const fn checked_add(self, bytes: u64) -> Option<Self> {
        match self.offset().checked_add(bytes) {
            Some(offset) if offset < MAX_REGION_BYTES => Self::from_bits(self.to_bits() + bytes),
            _ => None,
        }
    }

    /// Returns the address `bytes` bytes back; `None` if it can't be in the same region.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "the difference of the offset's field stays in the field")]
    pub const fn checked_sub(self, bytes: u64) -> Option<Self> {
        match self.offset() >= bytes {
            true => Self::from_bits(self.to_bits() - bytes),
            false => None,
        }
    }

    /// Returns the address `bytes` bytes further on.
    ///
    /// # Errors
    /// [`AcpError::OutOfBounds`] if it can't be in the same region.
    #[inline]
    pub fn offset_by(self, bytes: u64) -> Result<Self> {
        self.checked_add(bytes).ok_or_else(|| AcpError::out_of_bounds(self, bytes, MAX_REGION_BYTES))
    }
}

impl fmt::Debug for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl fmt::Display for GlobalAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "byte {} of region {} of {}", self.offset(), self.region(), self.rank())
    }
}

/// The bits of a [`RegionId`] where an address has its colour.
const COLOUR_OF_ID: u32 = (MAX_COLOURS as u32 - 1) << TAG_BITS;

/// A region of a rank: an address without its colour and offset, whose bits are 0 or omitted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct RegionId(pub(crate) u32);

impl RegionId {
    /// Returns the address of the first byte.
    #[expect(clippy::arithmetic_side_effects, reason = "a region's rank field is above 0")]
    pub(crate) fn start(self) -> GlobalAddress {
        GlobalAddress::new(Rank::new((self.0 >> (RANK_AT - TAG_AT)) - 1), 0, Tag(self.0 as u8), 0)
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn parts_come_back(rank in 0u32..MAX_RANKS as u32, colour in 0u8..4, tag: u8, offset in 0..MAX_REGION_BYTES) {
            let address = GlobalAddress::new(Rank::new(rank), colour, Tag(tag), offset);
            prop_assert_eq!((address.rank().number(), address.colour(), address.region(), address.offset()),
                (rank, usize::from(colour), tag, offset));
            prop_assert_eq!(GlobalAddress::from_bits(address.to_bits()), Some(address));
            prop_assert_eq!(address.id().start(), GlobalAddress::new(Rank::new(rank), 0, Tag(tag), 0));
            prop_assert_eq!(address.id().start().id(), address.id());
        }

        #[test]
        fn arithmetic_stays_in_the_region(offset in 0..MAX_REGION_BYTES, bytes: u64) {
            let address = GlobalAddress::new(Rank::new(7), 3, Tag(200), offset);
            let on = address.checked_add(bytes);
            prop_assert_eq!(on.is_some(), offset.checked_add(bytes).is_some_and(|end| end < MAX_REGION_BYTES));
            if let Some(on) = on {
                prop_assert_eq!((on.id(), on.checked_sub(bytes)), (address.id(), Some(address)));
            }
            prop_assert_eq!(address.checked_sub(bytes).is_some(), bytes <= offset);
        }
    }

    #[test]
    fn null_and_rankless_words_are_no_addresses() {
        assert_eq!(GlobalAddress::from_bits(0), None);
        assert_eq!(GlobalAddress::from_bits(MAX_REGION_BYTES - 1), None);
        assert_eq!(size_of::<Option<GlobalAddress>>(), 8);
        const { assert!(MAX_RANKS >= 663_552) };
    }
}
