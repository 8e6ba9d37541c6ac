//! The configuration of a job's control queues: a queue's size and the offsets of its rings, the
//! reason it has stopped, and the options of all queues. Each is packed into a word that other
//! ranks may have overwritten.

#![deny(clippy::arithmetic_side_effects)]

use super::{mrq, view};
use crate::{
    QueueMachine,
    queues::format::{descriptor::SLOT, stadd},
};
use rdma_fabric::{FabricError, control_queue::QueueMode};

/// Bytes of a table of tags.
pub(crate) const TAG_BYTES: usize = stadd::PLACES * 16;

/// The sizes that determine the positions of a queue's words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Geometry {
    pub(crate) mode: QueueMode,
    /// Slots, a power of two from 2 to [`MOST_DEPTH`].
    pub(crate) depth: u32,
    /// Records, a power of two from 1 to [`MOST_DEPTH`].
    pub(crate) mrq_depth: u32,
    pub(crate) checked: bool,
}

/// The largest number of slots or records.
pub(crate) const MOST_DEPTH: u32 = 1 << 16;

/// Marks a config word, so that other words are not mistaken for one.
const QUEUE: u64 = 0x51 << 56;

#[expect(clippy::arithmetic_side_effects, reason = "depths are at most `MOST_DEPTH`, so the words of a queue are few")]
impl Geometry {
    pub(crate) fn to_bits(self) -> u64 {
        let mode = match self.mode {
            QueueMode::Normal => 0,
            QueueMode::Exclusive => 1,
            QueueMode::Session => 2,
        };
        let logs = u64::from(self.depth.ilog2()) << 8 | u64::from(self.mrq_depth.ilog2()) << 16;
        QUEUE | logs | u64::from(self.checked) << 4 | mode
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
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

    /// Returns the index of the first word of the TOQ.
    pub(crate) fn toq(&self) -> usize {
        view::MRQ + self.mrq_depth as usize * (mrq::RECORD + 1)
    }

    /// Returns the index of the first word of the TCQ.
    pub(crate) fn tcq(&self) -> usize {
        self.toq() + self.shared_slots() * SLOT
    }

    /// Returns the number of slots of the rings that only session queues have.
    fn shared_slots(&self) -> usize {
        if self.mode == QueueMode::Session { self.depth as usize } else { 0 }
    }

    /// Returns the size of the extent in bytes.
    pub(crate) fn bytes(&self) -> usize {
        (self.tcq() + self.shared_slots() * SLOT) * 8
    }
}

/// Why a queue has stopped.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    CreditOverrun,
    MrqOverflow,
    Corrupt(&'static str),
    /// Its owner is closing it.
    Closed,
}

impl Stop {
    pub(crate) fn to_bits(self) -> u64 {
        match self {
            Stop::CreditOverrun => 1,
            Stop::MrqOverflow => 2,
            Stop::Closed => 3,
            Stop::Corrupt(what) => {
                let parts = crate::queues::format::status::PARTS;
                (parts.iter().position(|&part| part == what).unwrap_or(0) as u64).saturating_add(4)
            }
        }
    }

    pub(crate) fn from_bits(bits: u64) -> Option<Self> {
        match bits {
            0 => None,
            1 => Some(Stop::CreditOverrun),
            2 => Some(Stop::MrqOverflow),
            3 => Some(Stop::Closed),
            // Damaged words stop the queue too.
            _ => {
                let parts = crate::queues::format::status::PARTS;
                let part = usize::try_from(bits.saturating_sub(4)).ok().and_then(|part| parts.get(part));
                Some(Stop::Corrupt(part.copied().unwrap_or(parts[0])))
            }
        }
    }
}

// ----- options: chosen when the job is started, the same for all ranks -----

/// A job's options for control queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueueOptions {
    pub(crate) machine: QueueMachine,
    /// Whether a STADD of one queue denotes the same memory on the rank's other queues.
    pub(crate) shared_address_space: bool,
    /// Whether each rank has a thread that executes the commands handed over to it.
    pub(crate) progress_thread: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { machine: QueueMachine::TOFU2, shared_address_space: false, progress_thread: false }
    }
}

impl QueueOptions {
    /// Packs the options into a word.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for a machine that is not in the tables.
    pub(crate) fn to_bits(self) -> Result<u64, FabricError> {
        let code = QueueMachine::ALL.iter().position(|&machine| machine == self.machine);
        let problem = || format!("no table has this machine, which calls itself {}", self.machine.name);
        let code = code.ok_or_else(|| FabricError::setting("queue_machine", problem()))?;
        Ok((code as u64) << 8 | u64::from(self.progress_thread) << 1 | u64::from(self.shared_address_space))
    }

    /// Inverts [`QueueOptions::to_bits`]; invalid values become the default.
    pub(crate) fn from_bits(bits: u64) -> Self {
        let machine = usize::try_from(bits >> 8).ok().and_then(|code| QueueMachine::ALL.get(code));
        match machine {
            Some(&machine) if bits & 0xfc == 0 => {
                QueueOptions { machine, shared_address_space: bits & 1 != 0, progress_thread: bits & 2 != 0 }
            }
            _ => QueueOptions::default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_come_back_and_garbage_is_the_default() {
        for machine in QueueMachine::ALL {
            for (shared_address_space, progress_thread) in [(false, false), (true, false), (false, true)] {
                let options = QueueOptions { machine, shared_address_space, progress_thread };
                assert_eq!(QueueOptions::from_bits(options.to_bits().unwrap()), options);
            }
        }
        for bits in [u64::MAX, 4, 0x700] {
            assert_eq!(QueueOptions::from_bits(bits), QueueOptions::default());
        }
        let mut own = QueueMachine::TOFU2;
        own.engines = 7;
        let options = QueueOptions { machine: own, ..QueueOptions::default() };
        assert!(matches!(options.to_bits(), Err(FabricError::Setting(setting)) if setting.name == "queue_machine"));
    }

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
