//! How large a queue is and where its rings stand, and why it has stopped: each a word that others may have written.

use super::{mrq, words};
use crate::control_queue::{descriptor::SLOT, stadd};
use rdma_fabric::control_queue::QueueMode;

/// Bytes of a table of tags.
pub(super) const TAG_BYTES: usize = stadd::PLACES * 16;

/// What decides where a queue's words stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Geometry {
    pub(super) mode: QueueMode,
    /// Slots, a power of two from 2 to [`MOST_DEPTH`].
    pub(super) depth: u32,
    /// Records, a power of two from 1 to [`MOST_DEPTH`].
    pub(super) mrq_depth: u32,
    pub(super) checked: bool,
}

/// The most slots and records.
pub(super) const MOST_DEPTH: u32 = 1 << 16;

/// In a config word, so that other words are none.
const QUEUE: u64 = 0x51 << 56;

impl Geometry {
    pub(super) fn to_bits(self) -> u64 {
        let mode = match self.mode {
            QueueMode::Normal => 0,
            QueueMode::Exclusive => 1,
            QueueMode::Session => 2,
        };
        let logs = u64::from(self.depth.ilog2()) << 8 | u64::from(self.mrq_depth.ilog2()) << 16;
        QUEUE | logs | u64::from(self.checked) << 4 | mode
    }

    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        let mode = match bits & 0xf {
            0 => QueueMode::Normal,
            1 => QueueMode::Exclusive,
            2 => QueueMode::Session,
            _ => return None,
        };
        let most = MOST_DEPTH.ilog2();
        let log = |at: u32| Some((bits >> at) as u32 & 0xff).filter(|&log| log <= most);
        let geometry = Geometry { mode, depth: 1 << log(8)?, mrq_depth: 1 << log(16)?, checked: bits >> 4 & 1 != 0 };
        (geometry.depth >= 2 && geometry.to_bits() == bits).then_some(geometry)
    }

    /// First word of the TOQ.
    pub(super) fn toq(&self) -> usize {
        words::MRQ + self.mrq_depth as usize * (mrq::RECORD + 1)
    }

    /// First word of the TCQ.
    pub(super) fn tcq(&self) -> usize {
        self.toq() + self.shared_slots() * SLOT
    }

    /// Slots of the rings that only session queues have.
    fn shared_slots(&self) -> usize {
        if self.mode == QueueMode::Session { self.depth as usize } else { 0 }
    }

    /// Bytes of the extent.
    pub(super) fn bytes(&self) -> usize {
        (self.tcq() + self.shared_slots() * SLOT) * 8
    }
}

/// Why a queue has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stop {
    CreditOverrun,
    MrqOverflow,
    Corrupt(&'static str),
    /// Its owner closes it.
    Closed,
}

impl Stop {
    pub(super) fn to_bits(self) -> u64 {
        match self {
            Stop::CreditOverrun => 1,
            Stop::MrqOverflow => 2,
            Stop::Closed => 3,
            Stop::Corrupt(what) => {
                let parts = crate::control_queue::status::PARTS;
                4 + parts.iter().position(|&part| part == what).unwrap_or(0) as u64
            }
        }
    }

    pub(super) fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => None,
            1 => Some(Stop::CreditOverrun),
            2 => Some(Stop::MrqOverflow),
            3 => Some(Stop::Closed),
            // Damaged words stop it too.
            _ => {
                let parts = crate::control_queue::status::PARTS;
                let part = usize::try_from(bits - 4).ok().and_then(|part| parts.get(part));
                Some(Stop::Corrupt(part.copied().unwrap_or(parts[0])))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_config_word_is_a_geometry_or_refused() {
        for mode in [QueueMode::Normal, QueueMode::Exclusive, QueueMode::Session] {
            for (depth, mrq_depth, checked) in [(2, 1, false), (2048, 4096, true), (MOST_DEPTH, MOST_DEPTH, false)] {
                let geometry = Geometry { mode, depth, mrq_depth, checked };
                assert_eq!(Geometry::from_bits(geometry.to_bits()), Some(geometry));
                for bit in 0..64 {
                    let read = Geometry::from_bits(geometry.to_bits() ^ 1 << bit);
                    assert!(read.is_none_or(|read| read != geometry && read.bytes() < 1 << 24));
                }
            }
        }
        assert_eq!(Geometry::from_bits(0), None);
    }
}
