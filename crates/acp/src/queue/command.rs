//! Commands as words.

use super::ring::WORDS;
use crate::{GlobalAddress, Order, amo};
use rdma_fabric::{Amo, AtomicWord};

/// A command of the program to its helper.
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
    /// The program has posted the operation itself; the helper only completes it.
    Posted,
}

const COPY: u64 = 1;
const POSTED: u64 = 2;
const ATOMIC: u64 = 3;

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
                let [kind, a, b] = amo::to_words(amo);
                [ATOMIC | kind << 8 | u64::from(width) << 16, order.to_raw() as u64, to.to_bits(), word.to_bits(), a, b]
            }
        }
    }

    /// Reads a command; `None` if the words do not encode one.
    pub(crate) fn from_words([what, order, to, from, a, b]: [u64; WORDS]) -> Option<Self> {
        if what == POSTED {
            return Some(Command::Posted);
        }
        let order = Order::from_raw(order as i64);
        let (to, from) = (GlobalAddress::from_bits(to)?, GlobalAddress::from_bits(from)?);
        match what & 0xff {
            COPY => Some(Command::Copy { to, from, bytes: a as usize, order }),
            ATOMIC => {
                let amo = amo::from_words([what >> 8 & 0xff, a, b])?;
                Some(Command::Atomic { to, word: from, width: (what >> 16) as u8, amo, order })
            }
            _ => None,
        }
    }

    /// Returns the order of the command.
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
        for order in [Order::None, Order::All, Order::Continue, Order::After(Handle::from_number(i64::MAX))] {
            let copy = Command::Copy { to, from, bytes: usize::MAX, order };
            let atomics = amo::EXAMPLES.map(|amo| Command::Atomic { to, word: from, width: 4, amo, order });
            for command in [copy, Command::Posted].into_iter().chain(atomics) {
                assert_eq!(Command::from_words(command.to_words()), Some(command));
            }
        }
        assert_eq!(Command::from_words([ATOMIC | 7 << 8, 0, 1 << 60, 1 << 60, 0, 0]), None);
    }
}
