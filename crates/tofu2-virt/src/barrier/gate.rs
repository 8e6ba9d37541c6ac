//! The gates of barrier units: their halves, their owners, and the resolution of gate
//! ids.

use super::{
    super::core::Machine,
    signals::{Input, Signals},
    units::BarrierUnits,
};
use rdma_fabric::{
    Rank, Result,
    barrier::{GateError, GateId, RoundFault, Wiring},
};

/// A relay gate, or one half of a start/end gate.
#[derive(Debug, Default)]
pub(super) struct Half {
    /// Number of rounds fired.
    pub(super) fired: u64,
    /// The signal that it sends when the current round has fired.
    pub(super) firing: Input,
    /// Signals from the local source; for a start half, from the host.
    pub(super) local: Input,
    /// Signals from the remote source.
    pub(super) remote: Input,
    /// For an end half: signals that the start half has sent. Only their faults are used.
    pub(super) sent: Input,
}

/// An entry of a unit's gate table.
#[derive(Debug, Default)]
pub(super) struct Gate {
    pub(super) owner: u32,
    /// The lane of the owner that polled last.
    pub(super) waiter: u32,
    /// Odd while allocated.
    pub(super) life: u32,
    pub(super) is_start: bool,
    /// `None` until the gate is set.
    pub(super) set: Option<Box<SetGate>>,
}

/// The wiring of a gate, and its rounds since it was set.
#[derive(Debug)]
pub(super) struct SetGate {
    pub(super) wiring: Wiring,
    /// The round started last.
    pub(super) posted: u64,
    /// Whether the host has not yet received the result of that round.
    pub(super) under_way: bool,
    /// The result of the round, which arrives when the host sees it.
    pub(super) result: Input,
    /// The start half, or the whole of a relay gate.
    pub(super) main: Half,
    pub(super) end: Half,
}

impl SetGate {
    fn new(wiring: Wiring) -> Self {
        let (main, end) = (Half::default(), Half::default());
        SetGate { wiring, posted: 0, under_way: false, result: Input::default(), main, end }
    }

    pub(super) fn half(&mut self, end: bool) -> &mut Half {
        if end { &mut self.end } else { &mut self.main }
    }
}

impl Gate {
    pub(super) fn wiring(&self) -> Option<&Wiring> {
        self.set.as_deref().map(|set| &set.wiring)
    }

    /// Returns the half that other gates signal, of a gate that is set.
    pub(super) fn inputs(&mut self) -> Option<&mut Half> {
        let is_start = self.is_start;
        self.set.as_deref_mut().map(|set| set.half(is_start))
    }

    /// Returns whether an operation or a firing is in progress.
    pub(super) fn is_busy(&self) -> bool {
        self.set
            .as_deref()
            .is_some_and(|set| set.under_way || !set.main.firing.is_empty() || !set.end.firing.is_empty())
    }

    /// Resets the gate and sets its wiring.
    pub(super) fn set(&mut self, wiring: Wiring, signals: &mut Signals) {
        self.clear(signals);
        self.set = Some(Box::new(SetGate::new(wiring)));
    }

    /// Resets the gate and removes its wiring.
    pub(super) fn clear(&mut self, signals: &mut Signals) {
        let Some(set) = self.set.take() else { return };
        let SetGate { mut result, main, end, .. } = *set;
        while result.pop(signals).is_some() {}
        for Half { firing, local, remote, sent, .. } in [main, end] {
            for mut input in [firing, local, remote, sent] {
                while input.pop(signals).is_some() {}
            }
        }
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
        match state.wiring().and_then(back) {
            Some(other) if other == by => Named::Gate(number),
            _ => Named::Wrong(RoundFault::PointsElsewhere { gate, by }),
        }
    }
}
