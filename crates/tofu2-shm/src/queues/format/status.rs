//! Errors of commands as words of completions and notices.

use rdma_fabric::control_queue::{QueueError, QueueId, Stadd};

/// A command's outcome: kind, queue, address, and one or two numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Status {
    /// Queue in bits 0 to 39, kind in 40 to 47, a small number in 48 to 55.
    pub(crate) head: u64,
    /// The address.
    pub(crate) stadd: u64,
    /// A length (24 bits) with the registered length above it, or a position.
    pub(crate) numbers: u64,
}

const KIND: u32 = 40;
const SMALL: u32 = 48;

impl Status {
    /// Returns the words of `outcome`. Errors that no command can return become
    /// [`QueueError::Stopped`].
    pub(crate) fn encode(outcome: Result<(), QueueError>) -> Self {
        let Err(error) = outcome else { return Status::default() };
        let at = |kind: u64, queue: QueueId, stadd: Stadd| Status {
            head: kind << KIND | queue.to_bits(),
            stadd: stadd.to_bits(),
            numbers: 0,
        };
        let of = |kind, queue| at(kind, queue, Stadd::from_bits(0));
        let small = |status: Status, number: u8| Status { head: status.head | u64::from(number) << SMALL, ..status };
        match error {
            QueueError::NotOpen(queue) => of(1, queue),
            QueueError::NoSuchTag { queue, stadd } => at(2, queue, stadd),
            QueueError::OutOfBounds { queue, stadd, len, registered } => {
                Status { numbers: len.min(0xff_ffff) | registered.min((1 << 40) - 1) << 24, ..at(3, queue, stadd) }
            }
            QueueError::Stale { queue, stadd } => at(4, queue, stadd),
            QueueError::Misaligned { queue, stadd, width } => small(at(5, queue, stadd), width),
            QueueError::ReadOnly { queue, stadd } => at(6, queue, stadd),
            QueueError::CreditIgnored { queue, sps } => small(of(7, queue), sps),
            QueueError::MrqOverflow { queue, depth } => Status { numbers: depth.into(), ..of(8, queue) },
            QueueError::Interrupted { queue, slot } => Status { numbers: slot, ..of(9, queue) },
            QueueError::PeerLost(queue) => of(10, queue),
            QueueError::Corrupt { queue, what } => {
                let part = PARTS.iter().position(|&part| part == what).unwrap_or(0);
                small(of(11, queue), part as u8)
            }
            QueueError::Stopped(queue) => of(12, queue),
            _ => of(12, QueueId::from_bits(0).unwrap_or(QueueId::new(rdma_fabric::Rank::new(0), 0, 0, 0))),
        }
    }

    /// Inverts [`Status::encode`]; `None` for words that it never returns.
    pub(crate) fn decode(self) -> Option<Result<(), QueueError>> {
        let Status { head, stadd, numbers } = self;
        let queue = QueueId::from_bits(head & ((1 << KIND) - 1))?;
        let (kind, small) = (head >> KIND & 0xff, (head >> SMALL) as u8);
        if head >> (SMALL + 8) != 0 {
            return None;
        }
        let stadd = Stadd::from_bits(stadd);
        Some(Err(match kind {
            0 if self == Status::default() => return Some(Ok(())),
            1 => QueueError::NotOpen(queue),
            2 => QueueError::NoSuchTag { queue, stadd },
            3 => QueueError::OutOfBounds { queue, stadd, len: numbers & 0xff_ffff, registered: numbers >> 24 },
            4 => QueueError::Stale { queue, stadd },
            5 => QueueError::Misaligned { queue, stadd, width: small },
            6 => QueueError::ReadOnly { queue, stadd },
            7 => QueueError::CreditIgnored { queue, sps: small },
            8 => QueueError::MrqOverflow { queue, depth: u32::try_from(numbers).ok()? },
            9 => QueueError::Interrupted { queue, slot: numbers },
            10 => QueueError::PeerLost(queue),
            11 => QueueError::Corrupt { queue, what: PARTS.get(usize::from(small))? },
            12 => QueueError::Stopped(queue),
            _ => return None,
        }))
    }
}

/// The names of the parts that can be damaged.
pub(crate) const PARTS: [&str; 8] = [
    "its words",
    "the directory of queues",
    "the table of tags",
    "a descriptor",
    "the transmit order queue",
    "the transmit complete queue",
    "the message receive queue",
    "the region table",
];

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rdma_fabric::Rank;

    #[test]
    fn every_error_of_commands_comes_back() {
        let queue = QueueId::new(Rank::new(77), 3, 11, 2);
        let stadd = Stadd::new(0x1234, 567);
        let errors = [
            QueueError::NotOpen(queue),
            QueueError::NoSuchTag { queue, stadd },
            QueueError::OutOfBounds { queue, stadd, len: 0xff_ffff, registered: (1 << 40) - 1 },
            QueueError::Stale { queue, stadd },
            QueueError::Misaligned { queue, stadd, width: 8 },
            QueueError::ReadOnly { queue, stadd },
            QueueError::CreditIgnored { queue, sps: 15 },
            QueueError::MrqOverflow { queue, depth: 1 << 16 },
            QueueError::Interrupted { queue, slot: u64::MAX },
            QueueError::PeerLost(queue),
            QueueError::Stopped(queue),
        ];
        for error in errors.into_iter().chain(PARTS.map(|what| QueueError::Corrupt { queue, what })) {
            assert_eq!(Status::encode(Err(error)).decode(), Some(Err(error)));
        }
        assert_eq!(Status::encode(Ok(())).decode(), Some(Ok(())));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 20 } else { 2000 }))]

        /// Garbage is either refused or decoded as an error, never as success.
        #[test]
        fn garbage_is_no_success(head in any::<u64>(), stadd in any::<u64>(), numbers in any::<u64>()) {
            let status = Status { head, stadd, numbers };
            prop_assert!(status == Status::default() || status.decode() != Some(Ok(())));
        }
    }
}
