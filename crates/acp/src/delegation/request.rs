//! Requests and replies as words.

use super::REPLIES;
use crate::{AcpError, GlobalAddress, amo};
use rdma_fabric::{Amo, FabricError, Rank};

/// A request to a server. All words are checked when they are read, since the sender may be faulty.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Request {
    /// Copy `bytes` bytes to an address of the server.
    Copy { to: GlobalAddress, from: GlobalAddress, bytes: u64 },
    /// Change a word of the server, of 4 or 8 bytes, and return its previous value.
    Atomic { word: GlobalAddress, width: u8, amo: Amo<u64> },
}

/// The destination of a reply.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReplyTo {
    /// The fabric's rank.
    pub(crate) rank: Rank,
    /// The number of the reply place there.
    pub(crate) place: u8,
    /// The number of the request, never 0.
    pub(crate) number: u16,
}

/// Words of a slot, after its owner.
pub(crate) const WORDS: usize = 6;

impl Request {
    /// Returns the destination and the source, or the word twice.
    pub(crate) fn addresses(&self) -> [GlobalAddress; 2] {
        match *self {
            Request::Copy { to, from, .. } => [to, from],
            Request::Atomic { word, .. } => [word, word],
        }
    }

    /// Returns the rank that executes the request.
    pub(crate) fn server(&self) -> Rank {
        self.addresses()[0].rank()
    }

    pub(crate) fn to_words(self, reply: ReplyTo) -> [u64; WORDS] {
        let ReplyTo { rank, place, number } = reply;
        let reply = u64::from(rank.number()) << 32 | u64::from(place) << 16 | u64::from(number);
        match self {
            Request::Copy { to, from, bytes } => [0, to.to_bits(), from.to_bits(), bytes, 0, reply],
            Request::Atomic { word, width, amo } => {
                let [kind, a, b] = amo::to_words(amo);
                [kind | u64::from(width) << 8, word.to_bits(), 0, a, b, reply]
            }
        }
    }

    /// Reads a request; `None` if the words do not encode one.
    pub(crate) fn from_words([what, to, from, a, b, reply]: [u64; WORDS]) -> Option<(Self, ReplyTo)> {
        let (rank, place, number) = (Rank::new((reply >> 32) as u32), (reply >> 16) as u16, reply as u16);
        let place = u8::try_from(place).ok().filter(|place| u64::from(*place) < 2 * REPLIES)?;
        let reply = ReplyTo { rank, place, number };
        let to = GlobalAddress::from_bits(to)?;
        if what == 0 {
            return Some((Request::Copy { to, from: GlobalAddress::from_bits(from)?, bytes: a }, reply));
        }
        let amo = amo::from_words([what & 0xff, a, b])?;
        let width = u8::try_from(what >> 8).ok().filter(|width| matches!(width, 4 | 8))?;
        Some((Request::Atomic { word: to, width, amo }, reply))
    }
}

/// The outcome of a request, as reported to the initiator.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    Done,
    /// One of the regions no longer exists.
    NoSuchRegion,
    /// The bytes are not all inside a region.
    OutOfBounds,
    /// This rank was lost.
    Lost(Rank),
    /// Any other error of the server.
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

    /// Reads a reply: the number and the outcome of the request.
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
        let reply = ReplyTo { rank: Rank::new(663_551), place: 31, number: u16::MAX };
        let at = |rank| GlobalAddress::new(Rank::new(rank), 2, Tag(9), 1 << 20);
        let atomics = amo::EXAMPLES.map(|amo| Request::Atomic { word: at(2), width: 8, amo });
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
        let words = good.to_words(ReplyTo { rank: Rank::new(0), place: 0, number: 1 });
        for (at, bad) in [(0, 7), (0, 1), (1, 0), (2, 0), (5, (2 * REPLIES) << 16)] {
            let mut words = words;
            words[at] = bad;
            assert_eq!(Request::from_words(words), None, "word {at} is {bad}");
        }
    }
}
