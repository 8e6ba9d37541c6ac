//! The number of control queues of a node, and the modes in which each may be opened: one table per
//! machine.

use rdma_fabric::control_queue::{QueueLimits, QueueMode};

/// A machine's control queues.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct QueueMachine {
    /// Its name.
    pub name: &'static str,
    /// RDMA engines (TNIs) of a node; 8 at most.
    pub engines: u8,
    /// Control queues of each engine that programs may use; 16 at most.
    pub queues_per_engine: u8,
    /// Normal queues that may share a control queue; 8 at most.
    pub contexts: u8,
    /// Bit `n` is set if control queue `n` of each engine may be normal.
    pub normal: u16,
    /// Bit `n` is set if control queue `n` of each engine may be exclusive.
    pub exclusive: u16,
    /// Bit `n` is set if control queue `n` of each engine may be for sessions.
    pub session: u16,
    /// The longest put or get that fits one command, in bytes; below 2²⁴.
    pub longest: u32,
}

impl QueueMachine {
    /// Tofu2 (FX100): 4 engines with 12 control queues each [Hatanaka et al., §4.1], any of which
    /// may be opened in any mode. The number of contexts that share a control queue is known only
    /// for TofuD, whose value is used.
    pub const TOFU2: QueueMachine = QueueMachine {
        name: "Tofu2",
        engines: 4,
        queues_per_engine: 12,
        contexts: 8,
        normal: 0xfff,
        exclusive: 0xfff,
        session: 0xfff,
        longest: (1 << 24) - 1,
    };

    /// TofuD (Fugaku, FX1000) as Fujitsu's uTofu simulator sets it up: 6 engines with 11 usable
    /// control queues each. Queues 1 to 3 are for sessions, 4 to 10 may be exclusive, and normal
    /// queues share all that are not for sessions.
    pub const TOFUD: QueueMachine = QueueMachine {
        name: "TofuD",
        engines: 6,
        queues_per_engine: 11,
        contexts: 8,
        normal: 0b111_1111_0001,
        exclusive: 0b111_1111_0000,
        session: 0b000_0000_1110,
        longest: (1 << 24) - 1,
    };

    /// All machines, in the order of their codes.
    pub(crate) const ALL: [QueueMachine; 2] = [Self::TOFU2, Self::TOFUD];

    /// Returns the control queues of an engine that may be opened in `mode`, one bit each.
    pub const fn numbers(&self, mode: QueueMode) -> u16 {
        match mode {
            QueueMode::Normal => self.normal,
            QueueMode::Exclusive => self.exclusive,
            QueueMode::Session => self.session,
        }
    }

    /// Returns the limits that a program sees with `free` control queues left.
    pub(crate) fn limits(&self, free: u32, shared_address_space: bool) -> QueueLimits {
        let mut limits = QueueLimits::new(self.engines, self.queues_per_engine);
        limits.contexts = self.contexts;
        limits.longest = self.longest;
        limits.free = free;
        limits.shared_address_space = shared_address_space;
        limits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_machines_are_as_published() {
        let count = |machine: QueueMachine, mode| machine.numbers(mode).count_ones();
        let tofu2 = QueueMachine::TOFU2;
        assert_eq!(u32::from(tofu2.engines) * count(tofu2, QueueMode::Session), 48);
        let tofud = QueueMachine::TOFUD;
        assert_eq!([QueueMode::Session, QueueMode::Exclusive].map(|mode| count(tofud, mode)), [3, 7]);
        // 64 normal queues of one engine.
        assert_eq!(count(tofud, QueueMode::Normal) * u32::from(tofud.contexts), 64);
        for machine in QueueMachine::ALL {
            let beyond = !0u16 << machine.queues_per_engine;
            assert_eq!((machine.normal | machine.exclusive | machine.session) & beyond, 0, "{}", machine.name);
            assert!(machine.engines <= 8 && machine.contexts <= 8 && machine.longest < 1 << 24);
        }
    }
}
