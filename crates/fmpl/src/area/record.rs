//! The records that two members exchange about one message.

use super::inline::inline_length;
use rdma_fabric::{LocalSpan, Rank, RegionKey, RemoteAddr};

/// The kind of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// A receive is posted: `bytes` bytes may be put at the address.
    Posted = 1,
    /// The message, or a part of it, has arrived; `bytes` is the length from there to the message's
    /// end.
    Arrived = 2,
    /// The message waits at the address, in the sender's memory, to be fetched.
    Offered = 3,
    /// The message is longer than its receive, and was not put.
    TooLong = 4,
    /// The region of the receive buffer was dropped.
    NotThere = 5,
    /// Two members of a collective passed different lengths, which are in the other words.
    Differs = 6,
    /// A receive is posted as by `Posted`, for the next `bytes` bytes of a message that may be longer.
    Window = 7,
    /// The message is in this record ([`Record::inline`]).
    Inline = 8,
}

impl Kind {
    /// Returns whether the record offers a message, which its receiver reports as taken.
    #[inline(always)]
    pub(crate) fn is_offer(self) -> bool {
        matches!(self, Kind::Offered | Kind::Inline)
    }
}

/// The address of registered bytes, and their state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Record {
    pub(crate) kind: Kind,
    pub(crate) bytes: usize,
    pub(crate) region: RegionKey,
    pub(crate) offset: u64,
    /// Of an offer, the number of headers of the slot that its sender had used before; of a header in
    /// the slot, the number of offers that its receiver had seen ([`crate::any`]). Both are known
    /// modulo 2^32. Of no meaning in other records.
    pub(crate) before: u32,
    /// The last bytes of a message that is in its record; otherwise 0.
    pub(crate) tail: u16,
}

const TAG: u32 = 48;
const LOW: u64 = (1 << TAG) - 1;
const KIND: u32 = 44;
/// In the first word of an inline message, the position of its tail; below it is its length.
pub(super) const TAIL: u32 = 8;

/// Returns the upper bits of all words about message `n`, which counts from 0. They differ from
/// those of the previous 65,535 messages, and from those of memory that has never been written.
pub(super) fn tag(n: u64) -> u64 {
    (n + 1) << TAG
}

/// Returns the lower bits of the number of a word.
pub(super) fn tag_of(word: u64) -> u16 {
    ((word >> TAG) as u16).wrapping_sub(1)
}

/// Returns whether a word is about message `n`.
#[inline(always)]
pub(crate) fn is_about(word: u64, n: u64) -> bool {
    (word ^ tag(n)) & !LOW == 0
}

impl Record {
    /// The first word of a record, which contains the kind and the length.
    #[inline(always)]
    pub(crate) fn first_word(kind: Kind, bytes: usize, n: u64) -> u64 {
        tag(n) | (kind as u64) << KIND | bytes as u64 & ((1 << KIND) - 1)
    }

    #[inline(always)]
    pub(crate) fn to_words(self, n: u64) -> [u64; 4] {
        let tag = tag(n);
        let RegionKey { index, generation } = self.region;
        let first = Record::first_word(self.kind, self.bytes | usize::from(self.tail) << TAIL, n);
        let [low, high] = [self.before & 0xffff, self.before >> 16].map(|half| u64::from(half) << 32);
        [first, tag | self.offset & LOW, tag | low | u64::from(index), tag | high | u64::from(generation)]
    }

    /// Reads a record about message `n`; `None` unless all of its words have arrived. Invalid words
    /// yield an address that the fabric checks like any other.
    #[inline(always)]
    pub(crate) fn of_words(words: [u64; 4], n: u64) -> Option<Record> {
        if !is_about(words[0], n) {
            return None;
        }
        if let Some(record) = Record::of_first_word(words[0]) {
            return Some(record);
        }
        let region = RegionKey { index: words[2] as u32, generation: words[3] as u32 };
        let [low, high] = [words[2], words[3]].map(|word| (word >> 32) as u32 & 0xffff);
        let (offset, before) = (words[1] & LOW, high << 16 | low);
        let kind = Record::kind_of(words[0]);
        let length = if kind == Kind::Inline { inline_length(words[0]) } else { Record::of_length(kind, words[0]) };
        let record = Record { region, offset, before, ..length };
        words[1..].iter().all(|word| is_about(*word, n)).then_some(record)
    }

    /// Reads a record that consists of its first word only; `None` if it has other words.
    #[inline(always)]
    pub(crate) fn of_first_word(word: u64) -> Option<Record> {
        let kind = Record::kind_of(word);
        let has_more = matches!(kind, Kind::Posted | Kind::Offered | Kind::Differs | Kind::Window | Kind::Inline);
        (!has_more).then(|| Record::of_length(kind, word))
    }

    /// Returns the length of message `n`, if the word indicates that it has arrived.
    #[inline(always)]
    pub(crate) fn arrived(word: u64, n: u64) -> Option<usize> {
        (is_about(word, n) && word >> KIND & 15 == Kind::Arrived as u64).then_some((word & ((1 << KIND) - 1)) as usize)
    }

    #[inline(always)]
    pub(super) fn kind_of(word: u64) -> Kind {
        match word >> KIND & 15 {
            1 => Kind::Posted,
            2 => Kind::Arrived,
            3 => Kind::Offered,
            5 => Kind::NotThere,
            6 => Kind::Differs,
            7 => Kind::Window,
            8 => Kind::Inline,
            // Any other value that a peer may write.
            _ => Kind::TooLong,
        }
    }

    #[inline(always)]
    fn of_length(kind: Kind, word: u64) -> Record {
        Record::without_address(kind, (word & ((1 << KIND) - 1)) as usize)
    }

    /// Creates a record that has no address.
    #[inline(always)]
    pub(crate) fn without_address(kind: Kind, bytes: usize) -> Record {
        Record { kind, bytes, region: RegionKey { index: 0, generation: 0 }, offset: 0, before: 0, tail: 0 }
    }

    /// Creates a record about this member's own memory.
    #[inline(always)]
    pub(crate) fn of_span(kind: Kind, span: &LocalSpan<u8>) -> Record {
        let at = span.addr();
        Record { kind, bytes: span.len(), region: at.region, offset: at.offset, before: 0, tail: 0 }
    }

    /// Returns the address, in `rank`'s memory.
    #[inline(always)]
    pub(crate) fn at(self, rank: Rank) -> RemoteAddr {
        RemoteAddr { rank, region: self.region, offset: self.offset }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_is_read_only_when_it_is_whole() {
        let region = RegionKey { index: u32::MAX, generation: 7 };
        let record =
            Record { kind: Kind::Offered, bytes: 1 << 40, region, offset: 5 << 40, before: 0xfedc_ba98, tail: 0 };
        let words = record.to_words(65_535);
        assert_eq!(Record::of_words(words, 65_535), Some(record));
        for missing in 0..4 {
            let mut torn = words;
            torn[missing] = record.to_words(65_534)[missing];
            assert_eq!(Record::of_words(torn, 65_535), None);
        }
        assert_eq!(Record::of_words(words, 65_534), None);
    }

    #[test]
    fn zeroed_memory_and_garbage_are_no_record() {
        assert_eq!(Record::of_words([0; 4], 0), None);
        let first = Record::first_word(Kind::Arrived, 12, 3);
        assert_eq!(Record::of_words([first, 1, 2, 3], 3).map(|record| record.bytes), Some(12));
        assert_eq!(Record::of_words([first | 15 << KIND, 1, 2, 3], 3).map(|record| record.kind), Some(Kind::TooLong));
    }
}
