//! A node of a queue: the address of one message in its sender's memory, and that of the next node.
//!
//! The next node is allocated together with this one, before the message is announced. So a
//! receiver that has read a node no longer needs it, even if the next message has not been sent
//! yet.

use super::{Kind, Record};
use rdma_fabric::{Rank, RegionKey, RemoteAddr};

/// The words of a node.
const WORDS: usize = 6;
/// The bytes of a node in the sender's memory.
pub(crate) const NODE: usize = 8 * WORDS;

/// The location of message `n`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Node {
    pub(crate) n: u64,
    /// The message, in the memory of the node's owner.
    pub(crate) record: Record,
    /// The next node.
    pub(crate) next: RemoteAddr,
}

impl Node {
    pub(crate) fn to_words(self) -> [u64; WORDS] {
        let Node { n, record: Record { bytes, region, offset, .. }, next } = self;
        [n, bytes as u64, region.to_bits(), offset, next.region.to_bits(), next.offset]
    }

    /// Reads a node of `owner`. Invalid words yield addresses that the fabric checks like any
    /// others.
    pub(crate) fn of_words(words: [u64; WORDS], owner: Rank) -> Self {
        let [n, bytes, region, offset, next_region, next_offset] = words;
        let region = RegionKey::from_bits(region);
        let record = Record { kind: Kind::Offered, bytes: bytes as usize, region, offset, before: 0, tail: 0 };
        Node {
            n,
            record,
            next: RemoteAddr { rank: owner, region: RegionKey::from_bits(next_region), offset: next_offset },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_is_read_as_it_was_written() {
        let (rank, region) = (Rank::new(3), RegionKey { index: 7, generation: u32::MAX });
        let record = Record { kind: Kind::Offered, bytes: 1 << 40, region, offset: 5, before: 0, tail: 0 };
        let node = Node { n: 1 << 50, record, next: RemoteAddr { rank, region, offset: 1 << 44 } };
        assert_eq!(Node::of_words(node.to_words(), rank), node);
    }
}
