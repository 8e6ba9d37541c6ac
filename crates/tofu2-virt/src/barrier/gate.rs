//! The gates of barrier units: their halves and inputs, their owners, and the resolution of gate
//! ids.

use super::{super::core::Machine, units::BarrierUnits};
use rdma_fabric::{
    Rank, Result,
    barrier::{GateError, GateId, RoundFault, Values, Wave, Wiring},
};
use std::collections::VecDeque;

/// A signal that is travelling to an input or waiting there.
#[derive(Clone, Debug)]
pub(super) struct Signal {
    /// The arrival time, in picoseconds.
    pub(super) at: u64,
    pub(super) round: u64,
    pub(super) wave: Wave,
}

/// Signals in order of arrival; at most two.
pub(super) type Input = VecDeque<Signal>;

/// A relay gate, or one half of a start/end gate.
#[derive(Clone, Debug, Default)]
pub(super) struct Half {
    /// Number of rounds fired.
    pub(super) fired: u64,
    /// The signal that it sends when the current round has fired: `Some(None)` if no input had a
    /// signal.
    pub(super) firing: Option<Option<Wave>>,
    /// Signals from the local source; for a start half, from the host.
    pub(super) local: Input,
    /// Signals from the remote source.
    pub(super) remote: Input,
    /// For an end half: signals that the start half has sent. Only their faults are used.
    pub(super) sent: Input,
}

/// An entry of a unit's gate table.
#[derive(Clone, Debug, Default)]
pub(super) struct Gate {
    pub(super) owner: u32,
    /// The lane of the owner that polled last.
    pub(super) waiter: u32,
    /// Odd while allocated.
    pub(super) life: u32,
    pub(super) is_start: bool,
    /// `None` until the gate is set.
    pub(super) wiring: Option<Wiring>,
    /// The round started last.
    pub(super) posted: u64,
    /// Whether the host has not yet received the result of that round.
    pub(super) under_way: bool,
    /// The result of the round, and the time at which the host sees it.
    pub(super) result: Option<(u64, Result<Option<Values>, RoundFault>)>,
    /// The start half, or the whole of a relay gate.
    pub(super) main: Half,
    pub(super) end: Half,
}

impl Gate {
    pub(super) fn half(&mut self, end: bool) -> &mut Half {
        if end { &mut self.end } else { &mut self.main }
    }

    /// Returns the half that other gates signal.
    pub(super) fn inputs(&mut self) -> &mut Half {
        self.half(self.is_start)
    }

    /// Returns whether an operation or a firing is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.under_way || self.main.firing.is_some() || self.end.firing.is_some()
    }

    /// Resets the gate and sets its wiring.
    pub(super) fn set(&mut self, wiring: Wiring) {
        self.clear();
        self.wiring = Some(wiring);
    }

    /// Resets the gate and removes its wiring.
    pub(super) fn clear(&mut self) {
        let Gate { owner, waiter, life, is_start, .. } = *self;
        *self = Gate { owner, waiter, life, is_start, ..Gate::default() };
    }
}

/// The outcome of resolving a gate id.
pub(super) enum Named {
    Gate(u32),
    Wrong(RoundFault),
}

impl BarrierUnits {
    pub(super) fn take(
        &mut self,
        rank: Rank,
        node: u32,
        starts: u32,
        all: u32,
        relays: usize,
    ) -> Result<Vec<GateId>, GateError> {
        let first = *self.first.entry(node).or_insert_with(|| {
            let first = self.gates.len() as u32;
            self.gates.extend((0..all).map(|index| Gate { is_start: index < starts, ..Gate::default() }));
            first
        });
        let is_free = |index: &u32| {
            let life = self.gates[(first + index) as usize].life;
            life.is_multiple_of(2) && life + 2 < GateId::GENERATIONS
        };
        let free_starts: Vec<u32> = (0..starts).filter(is_free).collect();
        let free: Vec<u32> = (starts..all).filter(is_free).collect();
        let none = GateError::NoGates { rank, wanted: 1 + relays, starts: free_starts.len(), relays: free.len() };
        let start = *free_starts.first().filter(|_| relays <= free.len()).ok_or(none)?;
        let chosen = [start].into_iter().chain(free.into_iter().take(relays));
        let take = |index: u32| {
            let gate = &mut self.gates[(first + index) as usize];
            gate.clear();
            (gate.owner, gate.waiter, gate.life) = (rank.number(), rank.number(), gate.life + 1);
            GateId::new(rank, index, gate.life)
        };
        Ok(chosen.map(take).collect())
    }

    /// Returns the number of a gate that rank `me` owns.
    ///
    /// # Errors
    /// [`GateError::NotOwn`], [`GateError::Freed`], [`GateError::NoSuchGate`].
    pub(super) fn own_gate(&self, machine: &Machine, me: u32, gate: GateId) -> Result<u32> {
        if gate.is_null() || gate.rank().number() != me {
            return Err(GateError::NotOwn { gate, rank: Rank::new(me) }.into());
        }
        match self.number_of(machine, gate) {
            Some(number) => {
                let Gate { life, owner, .. } = *self.gate(number);
                match gate.generation() {
                    now if now == life && owner == me => Ok(number),
                    before if before < life && before % 2 == 1 => Err(GateError::Freed(gate).into()),
                    _ => Err(GateError::NoSuchGate(gate).into()),
                }
            }
            None => Err(GateError::NoSuchGate(gate).into()),
        }
    }

    /// Returns the number of a start gate that rank `me` owns.
    ///
    /// # Errors
    /// [`GateError::NotStart`], and the errors of [`BarrierUnits::own_gate`].
    pub(super) fn own_start_gate(&self, machine: &Machine, me: u32, gate: GateId) -> Result<u32> {
        let number = self.own_gate(machine, me, gate)?;
        if self.gate(number).is_start { Ok(number) } else { Err(GateError::NotStart(gate).into()) }
    }

    /// Returns the number of the table entry that a gate id identifies, if there is one.
    pub(super) fn number_of(&self, machine: &Machine, gate: GateId) -> Option<u32> {
        let rank = gate.rank().number();
        if rank >= machine.ranks || gate.index() >= machine.timing.barrier_gates {
            return None;
        }
        Some(*self.first.get(&machine.node_of(rank))? + gate.index())
    }

    /// Resolves the gate to which `by` is wired: it must be allocated and point back through the
    /// wire that `back` reads.
    pub(super) fn named(
        &self,
        machine: &Machine,
        gate: GateId,
        by: GateId,
        back: impl Fn(&Wiring) -> Option<GateId>,
    ) -> Named {
        let Some(number) = self.number_of(machine, gate) else {
            return Named::Wrong(RoundFault::Corrupt(by.rank()));
        };
        let state = self.gate(number);
        if state.life != gate.generation() {
            return Named::Wrong(RoundFault::Freed(gate));
        }
        match state.wiring.as_ref().and_then(back) {
            Some(other) if other == by => Named::Gate(number),
            _ => Named::Wrong(RoundFault::PointsElsewhere { gate, by }),
        }
    }
}
