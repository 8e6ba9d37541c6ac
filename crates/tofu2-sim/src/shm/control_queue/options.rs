//! What the control queues of a job are like: chosen by who starts it, the same for all ranks.

use crate::control_queue::QueueMachine;
use rdma_fabric::FabricError;

/// A job's choices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in super::super) struct QueueOptions {
    pub(in super::super) machine: QueueMachine,
    /// Whether a STADD of one queue means the same on the rank's other queues.
    pub(in super::super) shared_address_space: bool,
    /// Whether each rank has a thread that executes what was handed over to it.
    pub(in super::super) progress_thread: bool,
}

impl Default for QueueOptions {
    fn default() -> Self {
        QueueOptions { machine: QueueMachine::TOFU2, shared_address_space: false, progress_thread: false }
    }
}

impl QueueOptions {
    /// # Errors
    /// [`FabricError::Setting`] for a machine that is none of those in the tables.
    pub(in super::super) fn to_bits(self) -> Result<u64, FabricError> {
        let code = QueueMachine::ALL.iter().position(|&machine| machine == self.machine);
        let problem = || format!("no table has this machine, which calls itself {}", self.machine.name);
        let code = code.ok_or_else(|| FabricError::setting("queue_machine", problem()))?;
        Ok((code as u64) << 8 | u64::from(self.progress_thread) << 1 | u64::from(self.shared_address_space))
    }

    /// The inverse; what can't be is taken for the default.
    pub(in super::super) fn from_bits(bits: u64) -> Self {
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
}
