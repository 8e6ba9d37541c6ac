//! Messages between ranks of different nodes, for operations beyond libfabric's puts and gets.

use rdma_fabric::{Amo, RegionKey};

/// The kind of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// Looks up a region: `region`.
    Locate = 1,
    /// Accesses one word: `region`, `offset`, `detail` is the operation, `a` and `b` are the
    /// operands.
    Word = 2,
    /// Delivers a notice: `region`, `offset` of the first byte, `a` the data, `b` the length of the
    /// put. The bytes of the put follow if `detail` is [`INLINE`].
    Notice = 3,
    /// Returns credit for `a` notices.
    Credit = 4,
    /// Ends the use of a region: `region`.
    Revoke = 5,
    /// The sender's contribution to a symmetric allocation: its control record follows.
    ControlRecord = 6,
    /// Answers the request `id`: `detail` is an [`Answer`], `a` and `b` are results.
    Done = 7,
    /// A command of a control queue: the command follows, then its bytes. If `detail` is [`LONG`],
    /// the bytes stay in the sender's heap from `offset` on instead, and the keys of their pieces
    /// follow.
    Command = 8,
    /// Updates of a gate for a gate of the receiver; they follow the head.
    Gate = 9,
    /// Wakes the receiver, whose memory a put has written: if the provider delivers no data with a
    /// put.
    Written = 10,
}

/// `detail` of a notice: the bytes of the put are in the message.
pub(super) const INLINE: u8 = 1;

/// `detail` of a command: its bytes stay with its sender.
pub(super) const LONG: u8 = 1;

/// The result of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Answer {
    Good = 0,
    /// Good, and the notice waits for room.
    Held = 1,
    Stale = 2,
    NoSuchRegion = 3,
    /// The region cannot be used from other nodes, or not in this way.
    Unsupported = 4,
}

impl Answer {
    fn of(number: u8) -> Option<Self> {
        [Answer::Good, Answer::Held, Answer::Stale, Answer::NoSuchRegion, Answer::Unsupported]
            .into_iter()
            .find(|answer| *answer as u8 == number)
    }
}

/// The head of every message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Head {
    /// The receiver's number, known only to ranks of the job. Messages with another number are
    /// dropped.
    pub(super) door: u64,
    pub(super) kind: Kind,
    pub(super) detail: u8,
    /// Width of a word in bytes.
    pub(super) width: u8,
    pub(super) from: u32,
    /// Number of the sender's request, or of the request that is answered.
    pub(super) id: u64,
    pub(super) region: RegionKey,
    pub(super) offset: u64,
    pub(super) a: u64,
    pub(super) b: u64,
}

impl Head {
    pub(super) const BYTES: usize = 56;

    /// Returns a request of `from`.
    pub(super) fn request(kind: Kind, from: u32, region: RegionKey) -> Self {
        Head { door: 0, kind, detail: 0, width: 0, from, id: 0, region, offset: 0, a: 0, b: 0 }
    }

    /// Returns the answer of `me` to this request.
    pub(super) fn answer(&self, me: u32, answer: Answer, a: u64, b: u64) -> Self {
        Head { kind: Kind::Done, detail: answer as u8, from: me, a, b, ..*self }
    }

    /// Returns the result of the request that this message answers.
    pub(super) fn answered(&self) -> Option<Answer> {
        Answer::of(self.detail)
    }

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let small = u64::from(self.kind as u8)
            | u64::from(self.detail) << 8
            | u64::from(self.width) << 16
            | u64::from(self.from) << 32;
        let words = [self.door, small, self.id, self.region.to_bits(), self.offset, self.a, self.b];
        let mut bytes = [0; Self::BYTES];
        for (to, word) in bytes.chunks_exact_mut(8).zip(words) {
            to.copy_from_slice(&word.to_le_bytes());
        }
        bytes
    }

    /// Returns the head of a message, and the bytes after it; `None` if it is not a message.
    pub(super) fn read(message: &[u8]) -> Option<(Self, &[u8])> {
        let (head, rest) = message.split_first_chunk::<{ Self::BYTES }>()?;
        let (words, _) = head.as_chunks::<8>();
        let [door, small, id, region, offset, a, b] = <[[u8; 8]; 7]>::try_from(words).ok()?.map(u64::from_le_bytes);
        use Kind::{Command, ControlRecord, Credit, Done, Gate, Locate, Notice, Revoke, Word, Written};
        let kinds = [Locate, Word, Notice, Credit, Revoke, ControlRecord, Done, Command, Gate, Written];
        let kind = kinds.into_iter().find(|kind| *kind as u8 == small as u8)?;
        let (detail, width, from) = ((small >> 8) as u8, (small >> 16) as u8, (small >> 32) as u32);
        let region = RegionKey::from_bits(region);
        Some((Head { door, kind, detail, width, from, id, region, offset, a, b }, rest))
    }
}

/// An operation on a word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordWork {
    Load,
    Store(u64),
    Change(Amo<u64>),
}

impl WordWork {
    /// Encodes the operation in a head.
    pub(super) fn write(self, head: &mut Head) {
        (head.detail, head.a, head.b) = match self {
            WordWork::Load => (0, 0, 0),
            WordWork::Store(value) => (1, value, 0),
            WordWork::Change(Amo::Add(value)) => (2, value, 0),
            WordWork::Change(Amo::Swap(value)) => (3, value, 0),
            WordWork::Change(Amo::CompareSwap { expected, new }) => (4, expected, new),
            WordWork::Change(Amo::Or(value)) => (5, value, 0),
            WordWork::Change(Amo::And(value)) => (6, value, 0),
            WordWork::Change(Amo::Xor(value)) => (7, value, 0),
        };
    }

    /// Decodes the operation in a head.
    pub(super) fn read(head: &Head) -> Option<Self> {
        let (a, b) = (head.a, head.b);
        Some(match head.detail {
            0 => WordWork::Load,
            1 => WordWork::Store(a),
            2 => WordWork::Change(Amo::Add(a)),
            3 => WordWork::Change(Amo::Swap(a)),
            4 => WordWork::Change(Amo::CompareSwap { expected: a, new: b }),
            5 => WordWork::Change(Amo::Or(a)),
            6 => WordWork::Change(Amo::And(a)),
            7 => WordWork::Change(Amo::Xor(a)),
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn bytes_lead_back(door: u64, kind in 0_usize..8, detail: u8, width: u8, from: u32, id: u64, a: u64, b: u64,
            offset: u64, region: u64, rest: Vec<u8>) {
            use Kind::{ControlRecord, Credit, Done, Gate, Locate, Notice, Revoke, Word};
            let kinds = [Locate, Word, Notice, Credit, Revoke, ControlRecord, Done, Gate];
            let (kind, region) = (kinds[kind], RegionKey::from_bits(region));
            let head = Head { door, kind, detail, width, from, id, region, offset, a, b };
            let message = [&head.to_bytes()[..], &rest].concat();
            prop_assert_eq!(Head::read(&message), Some((head, &rest[..])));
        }

        #[test]
        fn garbage_is_no_head(bytes in prop::collection::vec(any::<u8>(), 0..80)) {
            let whole = bytes.len() >= Head::BYTES && (1..11).contains(&bytes[8]);
            prop_assert_eq!(Head::read(&bytes).is_some(), whole);
        }

        #[test]
        fn work_leads_back(a: u64, b: u64, detail in 0_u8..8) {
            let mut head = Head::request(Kind::Word, 1, RegionKey::from_bits(2));
            (head.detail, head.a, head.b) = (detail, a, b);
            let work = WordWork::read(&head).unwrap();
            work.write(&mut head);
            prop_assert_eq!(WordWork::read(&head), Some(work));
        }
    }

    #[test]
    fn unknown_work_is_refused() {
        let head = Head { detail: 8, ..Head::request(Kind::Word, 1, RegionKey::from_bits(2)) };
        assert_eq!(WordWork::read(&head), None);
    }
}
