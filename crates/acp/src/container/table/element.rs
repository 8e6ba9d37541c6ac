//! Elements of hash tables: their layout in memory, and reading them.
//!
//! An element consists of next, previous and the words of its [`Kind`], then the key, then the
//! value. `next` and `previous` are null at the ends of a slot's list.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    Acp, AcpError, GlobalAddress, Result,
    address::{MAX_REGION_BYTES, Tag},
};
use rdma_fabric::provider::SHORT;

/// The kind of a table's elements: their words after the links, with key and value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Key size, key.
    Set,
    /// Count, key size, key.
    Multiset,
    /// Size of the rest, key size, key, value.
    Map,
    /// As in a map; several elements may have one key.
    Multimap,
}

/// The offsets of an element's links.
pub(super) const NEXT: u64 = 0;
pub(super) const PREVIOUS: u64 = 8;
/// The offset of the count of a multiset's element.
pub(super) const COUNT: u64 = 16;

impl Kind {
    /// Returns the number of bytes before the key.
    pub(super) const fn head_bytes(self) -> usize {
        match self {
            Kind::Set => 24,
            Kind::Multiset | Kind::Map | Kind::Multimap => 32,
        }
    }

    /// Returns the size of an element in bytes.
    #[expect(clippy::arithmetic_side_effects, reason = "key and value are in memory")]
    pub(super) const fn element_bytes(self, key: &[u8], value: &[u8]) -> usize {
        self.head_bytes() + key.len() + value.len()
    }

    /// Returns the words between links and key; a set uses only the first.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "key and value are in memory")]
    pub(super) fn words(self, count: u64, key: &[u8], value: &[u8]) -> [u64; 2] {
        let bytes = key.len() as u64;
        match self {
            Kind::Set => [bytes, 0],
            Kind::Multiset => [count, bytes],
            Kind::Map | Kind::Multimap => [8 + bytes + value.len() as u64, bytes],
        }
    }

    /// Writes an element without links to `into`, which has the required length.
    pub(super) fn encode(self, count: u64, key: &[u8], value: &[u8], into: &mut [u8]) {
        let (head, body) = into.split_at_mut(self.head_bytes());
        let [first, second] = self.words(count, key, value);
        let words = [0, 0, first, second];
        let words = bytemuck::cast_slice(&words);
        head.copy_from_slice(&words[..head.len()]);
        body[..key.len()].copy_from_slice(key);
        body[key.len()..].copy_from_slice(value);
    }

    /// Reads the words of an element; `None` if they are invalid.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "four words")]
    pub(super) fn decode(self, head: &[u8]) -> Option<Head> {
        let words: [u64; 4] = core::array::from_fn(|n| match head.get(8 * n..8 * n + 8) {
            Some(word) => u64::from_ne_bytes(word.try_into().expect("8 bytes")),
            None => 0,
        });
        let [next, previous] = [from_word(words[0])?, from_word(words[1])?];
        let (count, key, value) = match self {
            Kind::Set => (1, words[2], 0),
            Kind::Multiset => (words[2], words[3], 0),
            Kind::Map | Kind::Multimap => (1, words[3], words[2].checked_sub(8)?.checked_sub(words[3])?),
        };
        (key < MAX_REGION_BYTES && value < MAX_REGION_BYTES).then_some(Head {
            next,
            previous,
            count,
            key: key as usize,
            value: value as usize,
        })
    }
}

/// Returns the word for an address; null if there is none.
pub(super) fn to_word(address: Option<GlobalAddress>) -> u64 {
    address.map_or(0, GlobalAddress::to_bits)
}

/// Returns the address in a word; `None` if it is neither an address nor null.
pub(super) fn from_word(word: u64) -> Option<Option<GlobalAddress>> {
    let address = GlobalAddress::from_bits(word);
    (address.is_some() || word == 0).then_some(address)
}

/// The words of an element.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) next: Option<GlobalAddress>,
    pub(super) previous: Option<GlobalAddress>,
    /// The count of the key in a multiset; 1 otherwise.
    pub(super) count: u64,
    /// Bytes of the key.
    pub(super) key: usize,
    /// Bytes of the value.
    pub(super) value: usize,
}

/// An element as read by the first, short read.
pub(super) struct Probe {
    pub(super) address: GlobalAddress,
    pub(super) head: Head,
    kind: Kind,
    first: [u8; SHORT],
    read: usize,
}

/// An element that was read completely.
#[derive(Clone, Debug)]
pub(crate) struct Element {
    pub(super) address: GlobalAddress,
    /// The count of the key in a multiset; 1 otherwise.
    pub(crate) count: u64,
    /// Key and value, one after the other.
    pub(super) body: Vec<u8>,
    pub(super) key_bytes: usize,
}

impl Element {
    pub(crate) fn address(&self) -> GlobalAddress {
        self.address
    }

    pub(crate) fn key(&self) -> &[u8] {
        &self.body[..self.key_bytes]
    }

    pub(crate) fn value(&self) -> &[u8] {
        &self.body[self.key_bytes..]
    }
}

impl Probe {
    /// Returns a probe of an element to be read.
    #[inline]
    pub(super) fn new(acp: &Acp, kind: Kind, address: GlobalAddress) -> Self {
        let read = acp.within_heap(address, SHORT).max(kind.head_bytes());
        let head = Head { next: None, previous: None, count: 0, key: 0, value: 0 };
        Probe { address, head, kind, first: [0; SHORT], read }
    }

    /// Returns the buffer for the element's first bytes.
    #[inline]
    pub(super) fn room(&mut self) -> &mut [u8] {
        &mut self.first[..self.read]
    }

    /// Decodes the bytes read.
    #[inline]
    pub(super) fn look(&mut self) -> Result<()> {
        match self.kind.decode(&self.first) {
            Some(head) => self.head = head,
            None => return Err(AcpError::Damaged { address: self.address }),
        }
        Ok(())
    }

    /// Returns whether the element has this key; also true if not enough of it has been read to
    /// decide.
    #[inline]
    pub(super) fn may_have(&self, key: &[u8]) -> bool {
        let begun = self.begun();
        let known = key.len().min(begun.len());
        self.head.key == key.len() && begun[..known] == key[..known]
    }

    /// Returns the address of the key.
    pub(super) fn key_at(&self) -> Result<GlobalAddress> {
        self.address.offset_by(self.kind.head_bytes() as u64)
    }

    /// Returns the address of the value.
    pub(super) fn value_at(&self) -> Result<GlobalAddress> {
        self.key_at()?.offset_by(self.head.key as u64)
    }

    /// Returns the bytes of key and value read so far.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`decode` bounds both")]
    pub(super) fn begun(&self) -> &[u8] {
        let begun = &self.first[self.kind.head_bytes()..self.read];
        &begun[..begun.len().min(self.head.key + self.head.value)]
    }
}

impl Acp {
    /// Returns the number of bytes, at most `bytes`, from an address to the end of its heap; 0 for
    /// other regions.
    pub(in crate::container) fn within_heap(&self, address: GlobalAddress, bytes: usize) -> usize {
        let after = (self.options().heap_bytes as u64).saturating_sub(address.offset());
        if address.tag() == Tag::HEAP { bytes.min(after as usize) } else { 0 }
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn words_come_back(
            kind in prop::sample::select(&[Kind::Set, Kind::Multiset, Kind::Map, Kind::Multimap][..]),
            key in prop::collection::vec(any::<u8>(), 0..40),
            value in prop::collection::vec(any::<u8>(), 0..40),
            count in 1u64..,
        ) {
            let keyed = matches!(kind, Kind::Map | Kind::Multimap);
            let (value, count) = (if keyed { &value[..] } else { &[] }, if kind == Kind::Multiset { count } else { 1 });
            let mut bytes = vec![0xaa; kind.head_bytes() + key.len() + value.len()];
            kind.encode(count, &key, value, &mut bytes);
            let head = Head { next: None, previous: None, count, key: key.len(), value: value.len() };
            prop_assert_eq!(kind.decode(&bytes), Some(head));
            prop_assert_eq!(&bytes[kind.head_bytes()..], [&key, value].concat());
        }
    }

    #[test]
    fn the_words_are_where_the_c_library_has_them() {
        let words = |kind: Kind| {
            let mut bytes = vec![0; kind.head_bytes() + 3 + if kind == Kind::Map { 2 } else { 0 }];
            kind.encode(9, b"key", &b"va"[..bytes.len() - kind.head_bytes() - 3], &mut bytes);
            bytes[..kind.head_bytes()]
                .chunks(8)
                .map(|word| u64::from_ne_bytes(word.try_into().unwrap()))
                .collect::<Vec<_>>()
        };
        assert_eq!(words(Kind::Set), [0, 0, 3]);
        assert_eq!(words(Kind::Multiset), [0, 0, 9, 3]);
        assert_eq!(words(Kind::Map), [0, 0, 13, 3]);
    }

    #[test]
    fn garbage_is_no_element() {
        let decode = |words: [u64; 4]| Kind::Map.decode(bytemuck::bytes_of(&words));
        assert!(decode([0, 0, 8, 0]).is_some());
        // An invalid address, a size below that of the key, a key beyond any region.
        assert_eq!([decode([7, 0, 8, 0]), decode([0, 0, 10, 3]), decode([0, 0, u64::MAX, u64::MAX - 8])], [None; 3]);
    }
}
