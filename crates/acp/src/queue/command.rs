//! Commands as words.

use super::ring::WORDS;
use crate::{GlobalAddress, Order};
use rdma_fabric::{Amo, AtomicWord};

/// What the program asks its helper to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Command {
    Copy {
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: Order,
    },
    Atomic {
        to: GlobalAddress,
        word: GlobalAddress,
        width: u8,
        amo: Amo<u64>,
        order: Order,
    },
    /// The program has posted the operation itself: see that it is complete.
    Posted,
}

const COPY: u64 = 1;
const POSTED: u64 = 2;
/// Atomics follow.
const ADD: u64 = 3;

impl Command {
    pub(crate) fn atomic<W: AtomicWord>(to: GlobalAddress, word: GlobalAddress, amo: Amo<W>, order: Order) -> Self {
        Command::Atomic { to, word, width: W::BYTES as u8, amo: amo.to_bits(), order }
    }

    pub(crate) fn to_words(self) -> [u64; WORDS] {
        match self {
            Command::Posted => [POSTED, 0, 0, 0, 0, 0],
            Command::Copy { to, from, bytes, order } => {
                [COPY, order.to_raw() as u64, to.to_bits(), from.to_bits(), bytes as u64, 0]
            }
            Command::Atomic { to, word, width, amo, order } => {
                let (kind, a, b) = match amo {
                    Amo::Add(v) => (ADD, v, 0),
                    Amo::Swap(v) => (ADD + 1, v, 0),
                    Amo::CompareSwap { expected, new } => (ADD + 2, expected, new),
                    Amo::Or(v) => (ADD + 3, v, 0),
                    Amo::And(v) => (ADD + 4, v, 0),
                    Amo::Xor(v) => (ADD + 5, v, 0),
                };
                [kind | u64::from(width) << 8, order.to_raw() as u64, to.to_bits(), word.to_bits(), a, b]
            }
        }
    }

    /// Reads a command; `None` for what is none.
    pub(crate) fn from_words([what, order, to, from, a, b]: [u64; WORDS]) -> Option<Self> {
        if what == POSTED {
            return Some(Command::Posted);
        }
        let order = Order::from_raw(order as i64);
        let (to, from) = (GlobalAddress::from_bits(to)?, GlobalAddress::from_bits(from)?);
        let amo = match (what & 0xff).checked_sub(ADD) {
            None if what == COPY => return Some(Command::Copy { to, from, bytes: a as usize, order }),
            Some(0) => Amo::Add(a),
            Some(1) => Amo::Swap(a),
            Some(2) => Amo::CompareSwap { expected: a, new: b },
            Some(3) => Amo::Or(a),
            Some(4) => Amo::And(a),
            Some(5) => Amo::Xor(a),
            _ => return None,
        };
        Some(Command::Atomic { to, word: from, width: (what >> 8) as u8, amo, order })
    }

    /// Returns the handle whose completion the command waits for, if it names one.
    pub(crate) fn order(&self) -> Order {
        match *self {
            Command::Copy { order, .. } | Command::Atomic { order, .. } => order,
            Command::Posted => Order::None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Handle, address::Tag};
    use rdma_fabric::Rank;

    #[test]
    fn commands_come_back() {
        let [to, from] = [1, 2].map(|rank| GlobalAddress::new(Rank::new(rank), 1, Tag(7), 99));
        let amos =
            [Amo::Add(1), Amo::Swap(2), Amo::CompareSwap { expected: 3, new: 4 }, Amo::Or(5), Amo::And(6), Amo::Xor(7)];
        for order in [Order::None, Order::All, Order::Continue, Order::After(Handle::from_number(i64::MAX))] {
            let copy = Command::Copy { to, from, bytes: usize::MAX, order };
            let atomics = amos.map(|amo| Command::Atomic { to, word: from, width: 4, amo, order });
            for command in [copy, Command::Posted].into_iter().chain(atomics) {
                assert_eq!(Command::from_words(command.to_words()), Some(command));
            }
        }
        assert_eq!(Command::from_words([ADD + 6, 0, 1 << 60, 1 << 60, 0, 0]), None);
    }
}
