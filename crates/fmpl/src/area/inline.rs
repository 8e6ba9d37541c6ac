//! Messages that travel in the record that offers them.
//!
//! The bytes of the message take the place of its address: each word of the record still carries the
//! number of the message, so that the words may arrive in any order, and no word is read twice.

use super::{Kind, Record, record::TAIL};
use rdma_fabric::RegionKey;

/// The bytes of the longest such message: those of an address, and [`Record::tail`].
pub(crate) const INLINE: usize = 16;

/// Decodes the first word of an inline message; a length that no sender writes counts as the
/// longest.
#[inline(always)]
pub(super) fn inline_length(word: u64) -> Record {
    let bytes = ((word & ((1 << TAIL) - 1)) as usize).min(INLINE);
    Record { tail: (word >> TAIL) as u16, ..Record::without_address(Kind::Inline, bytes) }
}

impl Record {
    /// Creates the record of a message of up to [`INLINE`] bytes; longer ones have none.
    #[inline(always)]
    pub(crate) fn inline(body: &[u8], before: u32) -> Option<Record> {
        let mut bytes = [0; INLINE];
        bytes.get_mut(..body.len())?.copy_from_slice(body);
        let body_bits = u128::from_le_bytes(bytes);
        let region = RegionKey { index: body_bits as u32, generation: (body_bits >> 32) as u32 };
        // An offset has 48 bits in a record.
        let (offset, tail) = ((body_bits >> 64) as u64 & ((1 << 48) - 1), (body_bits >> 112) as u16);
        Some(Record { kind: Kind::Inline, bytes: body.len(), region, offset, before, tail })
    }

    /// Returns the memory of an inline message, whose first `bytes` bytes are the message.
    #[inline(always)]
    pub(crate) fn body(&self) -> Option<[u8; INLINE]> {
        let RegionKey { index, generation } = self.region;
        let high = self.offset & ((1 << 48) - 1) | u64::from(self.tail) << 48;
        let body_bits = u128::from(high) << 64 | u128::from(generation) << 32 | u128::from(index);
        (self.kind == Kind::Inline).then(|| body_bits.to_le_bytes())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_message_is_read_as_it_was_written() {
        let bytes: Vec<u8> = (0..INLINE as u8).map(|byte| 0xf0 | byte).collect();
        for len in 0..=INLINE {
            let record = Record::inline(&bytes[..len], 0xfedc_ba98).expect("a short message");
            let words = record.to_words(65_535);
            let read = Record::of_words(words, 65_535).expect("a whole record");
            assert_eq!((read, read.bytes), (record, len));
            assert_eq!(&read.body().expect("a body")[..len], &bytes[..len]);
            assert_eq!(read.before, 0xfedc_ba98);
            for missing in 0..4 {
                let mut torn = words;
                torn[missing] = record.to_words(65_534)[missing];
                assert_eq!(Record::of_words(torn, 65_535), None);
            }
        }
        assert_eq!(Record::inline(&[0; INLINE + 1], 0), None);
    }

    #[test]
    fn a_length_that_is_too_long_is_cut() {
        let first = Record::first_word(Kind::Inline, 0xffff, 3);
        let rest = (3 + 1) << 48;
        let read = Record::of_words([first, rest, rest, rest], 3).expect("a whole record");
        assert_eq!((read.kind, read.bytes), (Kind::Inline, INLINE));
    }
}
