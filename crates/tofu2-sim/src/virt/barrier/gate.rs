//! One gate of a unit: its halves, inputs and rounds.

use rdma_fabric::{
    Result,
    barrier::{RoundFault, Values, Wave, Wiring},
};
use std::collections::VecDeque;

/// A signal on its way to an input, or waiting there.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    /// When it is there, in picoseconds.
    pub(super) at: u64,
    pub(super) round: u64,
    pub(super) wave: Wave,
}

/// Signals in order of arrival; two at most.
pub(super) type Input = VecDeque<Signal>;

/// A relay gate, or one half of a start/end gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    /// Number of rounds fired.
    pub(super) fired: u64,
    /// What it will signal when it has fired the next; nothing if no input had a signal.
    pub(super) firing: Option<Option<Wave>>,
    /// From the local source; of a start half, from the host.
    pub(super) local: Input,
    /// From the remote source.
    pub(super) remote: Input,
    /// Of an end half: from the start half, as soon as that has signalled; only its faults count.
    pub(super) sent: Input,
}

/// A place in a unit's table.
#[derive(Clone, Debug)]
pub(super) struct Gate {
    pub(super) owner: u32,
    /// Odd while allocated.
    pub(super) life: u32,
    pub(super) is_start: bool,
    /// `None` until it was set.
    pub(super) wiring: Option<Wiring>,
    /// Round started last.
    pub(super) posted: u64,
    /// Whether the host has not learnt how that ended.
    pub(super) under_way: bool,
    /// How it ended, and when the host sees that.
    pub(super) result: Option<(u64, Result<Option<Values>, RoundFault>)>,
    /// Start half or relay gate.
    pub(super) main: Half,
    pub(super) end: Half,
}

impl Gate {
    pub(super) fn new(is_start: bool) -> Self {
        Gate {
            owner: 0,
            life: 0,
            is_start,
            wiring: None,
            posted: 0,
            under_way: false,
            result: None,
            main: Half::default(),
            end: Half::default(),
        }
    }

    pub(super) fn half(&mut self, end: bool) -> &mut Half {
        if end { &mut self.end } else { &mut self.main }
    }

    /// The half that others signal.
    pub(super) fn inputs(&mut self) -> &mut Half {
        self.half(self.is_start)
    }

    /// Whether an operation or a firing is under way.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way || self.main.firing.is_some() || self.end.firing.is_some()
    }

    /// Begin anew, with these wires.
    pub(super) fn set(&mut self, wiring: Wiring) {
        self.clear();
        self.wiring = Some(wiring);
    }

    /// Begin anew, without wires.
    pub(super) fn clear(&mut self) {
        let (owner, life) = (self.owner, self.life);
        *self = Gate { owner, life, ..Gate::new(self.is_start) };
    }
}
