//! Requests and replies as words.

use super::REPLIES;
use crate::{AcpError, GlobalAddress};
use rdma_fabric::{Amo, FabricError, Rank};

/// What a server is asked to do. All words are checked when they are read: whoever wrote them may be
/// broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Copy so many bytes to an address of the server's.
    Copy { to: GlobalAddress, from: GlobalAddress, bytes: u64 },
    /// Change a word of the server's, of 4 or 8 bytes, and put what it was before.
    Atomic { to: GlobalAddress, word: GlobalAddress, width: u8, amo: Amo<u64> },
}

/// To whom a reply goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    /// The fabric's rank.
    pub(crate) rank: Rank,
    /// Which of its words.
    pub(crate) word: u8,
    /// The number of the request, never 0.
    pub(crate) number: u16,
}

/// Words of a slot behind its owner.
pub(crate) const WORDS: usize = 7;

impl Request {
    /// Returns the destination, and the source or the word.
    pub(crate) fn addresses(&self) -> [GlobalAddress; 2] {
        match *self {
            Request::Copy { to, from, .. } => [to, from],
            Request::Atomic { to, word, .. } => [to, word],
        }
    }

    pub(crate) fn to_words(self, reply: ReplyTo) -> [u64; WORDS] {
        let ReplyTo { rank, word, number } = reply;
        let reply = u64::from(rank.number()) << 32 | u64::from(word) << 16 | u64::from(number);
        match self {
            Request::Copy { to, from, bytes } => [0, to.to_bits(), from.to_bits(), bytes, 0, reply, 0],
            Request::Atomic { to, word, width, amo } => {
                let (kind, a, b) = match amo {
                    Amo::Add(v) => (1, v, 0),
                    Amo::Swap(v) => (2, v, 0),
                    Amo::CompareSwap { expected, new } => (3, expected, new),
                    Amo::Or(v) => (4, v, 0),
                    Amo::And(v) => (5, v, 0),
                    Amo::Xor(v) => (6, v, 0),
                };
                [kind | u64::from(width) << 8, to.to_bits(), word.to_bits(), a, b, reply, 0]
            }
        }
    }

    /// Reads a request; `None` for what is none.
    pub(crate) fn from_words([what, to, from, a, b, reply, _]: [u64; WORDS]) -> Option<(Self, ReplyTo)> {
        let (rank, word, number) = (Rank::new((reply >> 32) as u32), (reply >> 16) as u16, reply as u16);
        let word = u8::try_from(word).ok().filter(|word| u64::from(*word) < REPLIES)?;
        let reply = ReplyTo { rank, word, number };
        let (to, from) = (GlobalAddress::from_bits(to)?, GlobalAddress::from_bits(from)?);
        let amo = match what & 0xff {
            0 => return Some((Request::Copy { to, from, bytes: a }, reply)),
            1 => Amo::Add(a),
            2 => Amo::Swap(a),
            3 => Amo::CompareSwap { expected: a, new: b },
            4 => Amo::Or(a),
            5 => Amo::And(a),
            6 => Amo::Xor(a),
            _ => return None,
        };
        let width = u8::try_from(what >> 8).ok().filter(|width| matches!(width, 4 | 8))?;
        Some((Request::Atomic { to, word: from, width, amo }, reply))
    }
}

/// How a request ended, as the initiator learns it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// One of the regions has gone.
    NoSuchRegion,
    /// The bytes are not all inside a region.
    OutOfBounds,
    /// This rank was lost.
    Lost(Rank),
    /// Whatever else a server may meet.
    Refused,
}

impl Outcome {
    pub(crate) fn of(result: Result<(), AcpError>) -> Self {
        match result {
            Ok(()) => Outcome::Done,
            Err(AcpError::NoSuchRegion { .. } | AcpError::Fabric(FabricError::StaleRegion { .. })) => {
                Outcome::NoSuchRegion
            }
            Err(AcpError::OutOfBounds(_)) => Outcome::OutOfBounds,
            Err(AcpError::Fabric(FabricError::PeerLost { rank })) => Outcome::Lost(rank),
            Err(_) => Outcome::Refused,
        }
    }

    /// Returns the word that replies to the request with this number.
    pub(crate) fn to_word(self, number: u16) -> u64 {
        let (code, detail) = match self {
            Outcome::Done => (0, 0),
            Outcome::NoSuchRegion => (1, 0),
            Outcome::OutOfBounds => (2, 0),
            Outcome::Lost(rank) => (3, rank.number()),
            Outcome::Refused => (4, 0),
        };
        u64::from(number) << 48 | code << 32 | u64::from(detail)
    }

    /// Reads a reply: the number of the request, and how it ended.
    pub(crate) fn from_word(word: u64) -> (u16, Self) {
        let outcome = match (word >> 32) as u16 {
            0 => Outcome::Done,
            1 => Outcome::NoSuchRegion,
            2 => Outcome::OutOfBounds,
            3 => Outcome::Lost(Rank::new(word as u32)),
            _ => Outcome::Refused,
        };
        ((word >> 48) as u16, outcome)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::address::Tag;

    #[test]
    fn requests_and_replies_come_back() {
        let reply = ReplyTo { rank: Rank::new(663_551), word: 15, number: u16::MAX };
        let at = |rank| GlobalAddress::new(Rank::new(rank), 2, Tag(9), 1 << 20);
        let amos =
            [Amo::Add(1), Amo::Swap(2), Amo::CompareSwap { expected: 3, new: 4 }, Amo::Or(5), Amo::And(6), Amo::Xor(7)];
        let atomics = amos.map(|amo| Request::Atomic { to: at(1), word: at(2), width: 8, amo });
        for request in [Request::Copy { to: at(1), from: at(2), bytes: u64::MAX }].into_iter().chain(atomics) {
            assert_eq!(Request::from_words(request.to_words(reply)), Some((request, reply)));
        }
        for outcome in
            [Outcome::Done, Outcome::NoSuchRegion, Outcome::OutOfBounds, Outcome::Lost(Rank::new(7)), Outcome::Refused]
        {
            assert_eq!(Outcome::from_word(outcome.to_word(0xabcd)), (0xabcd, outcome));
        }
    }

    #[test]
    fn garbage_is_no_request() {
        let good = Request::Copy {
            to: GlobalAddress::new(Rank::new(0), 0, Tag(0), 0),
            from: GlobalAddress::new(Rank::new(1), 0, Tag(0), 0),
            bytes: 8,
        };
        let words = good.to_words(ReplyTo { rank: Rank::new(0), word: 0, number: 1 });
        for (at, bad) in [(0, 7), (0, 1), (1, 0), (2, 0), (5, 16 << 16)] {
            let mut words = words;
            words[at] = bad;
            assert_eq!(Request::from_words(words), None, "word {at} is {bad}");
        }
    }
}
