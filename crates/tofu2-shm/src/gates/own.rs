//! A rank's gates, and the rounds it has started; private to the rank.

use super::{
    record::{At, Field, Half, Units, ahead, next, pack, slot, unpack},
    remote::{self, GateUpdate, Known},
};
use crate::memory::word::Word;
use core::sync::atomic::Ordering::{AcqRel, Acquire, Relaxed, Release};
use rdma_fabric::{
    Rank, Result,
    barrier::{GateError, GateId, Values, Wave, Wiring},
};

/// A rank's record of its gates, protected by the endpoint's lock. Nothing here is read from shared
/// memory, so damaged records can't make a rank use gates that are not its own.
#[derive(Debug, Default)]
pub(crate) struct OwnGates {
    /// The rank's gates; filled on first use.
    gates: Vec<OwnGate>,
}

#[derive(Clone, Copy, Debug, Default)]
struct OwnGate {
    /// The value of [`Field::Life`]: odd while the gate is allocated.
    life: u32,
    set: bool,
    /// The last round that a start/end gate started.
    posted: u64,
    /// Whether that round is still in progress.
    in_flight: bool,
    /// The count of state changes when the outlook was last good.
    seen: Option<u64>,
}

impl OwnGates {
    /// Returns the rank's own live gate with this ID.
    pub(crate) fn gate(&self, units: &impl Units, me: Rank, gate: GateId) -> Result<At> {
        if gate.is_null() || gate.rank() != me {
            return Err(GateError::NotOwn { gate, rank: me }.into());
        }
        let none = GateError::NoSuchGate(gate);
        let at = At::outputs(units, gate).ok_or_else(|| none.clone())?;
        let life = self.gates.get(at.node()).map_or(0, |own| own.life);
        match gate.generation() {
            generation if generation == life && life % 2 == 1 => Ok(at),
            generation if generation < life && generation % 2 == 1 => Err(GateError::Freed(gate).into()),
            _ => Err(none.into()),
        }
    }

    /// Returns the value of [`Field::Life`] of one of the rank's gates.
    #[cfg(any(target_os = "linux", test))]
    pub(super) fn life(&self, at: At) -> u32 {
        self.gates.get(at.node()).map_or(0, |own| own.life)
    }

    /// Returns the rank's own live start/end gate with this ID.
    pub(crate) fn start_gate(&self, units: &impl Units, me: Rank, gate: GateId) -> Result<At> {
        let at = self.gate(units, me, gate)?;
        if at.half(units) == Half::Start { Ok(at) } else { Err(GateError::NotStart(gate).into()) }
    }

    /// Returns the round of a start/end gate that is in progress.
    pub(crate) fn outstanding(&self, at: At) -> Option<u64> {
        let own = &self.gates[at.node()];
        own.in_flight.then_some(own.posted)
    }

    /// Records that the operation of a gate has completed.
    pub(crate) fn completed(&mut self, gate: GateId) {
        if let Some(own) = self.gates.get_mut(gate.index() as usize) {
            own.in_flight = false;
        }
    }

    /// Returns whether ranks' states have changed since [`OwnGates::seen`].
    pub(crate) fn has_changed(&self, gate: GateId, changes: u64) -> bool {
        self.gates.get(gate.index() as usize).is_some_and(|own| own.seen != Some(changes))
    }

    pub(crate) fn seen(&mut self, gate: GateId, changes: u64) {
        if let Some(own) = self.gates.get_mut(gate.index() as usize) {
            own.seen = Some(changes);
        }
    }

    /// Takes a start/end gate and `relays` relay gates. `gone` returns whether a rank will never
    /// read a packet again.
    pub(crate) fn take(
        &mut self,
        units: &impl Units,
        me: Rank,
        relays: usize,
        gone: impl Fn(Rank) -> bool,
    ) -> Result<Vec<GateId>, GateError> {
        self.gates.resize(units.gates(), OwnGate::default());
        let is_free = |&index: &usize| {
            let own = &self.gates[index];
            let unused = own.life.is_multiple_of(2) && own.life + 2 < GateId::GENERATIONS;
            let at = At::new(units, me, index).filter(|_| unused);
            at.is_some_and(|at| {
                (own.life == 0 || is_drained(units, at, &gone)) && halves(units, at).all(|at| reset(units, at))
            })
        };
        let starts: Vec<usize> = (0..units.starts()).filter(is_free).collect();
        let free: Vec<usize> = (units.starts()..units.gates()).filter(is_free).collect();
        let none = GateError::NoGates { rank: me, wanted: 1 + relays, starts: starts.len(), relays: free.len() };
        let Some(&start) = starts.first().filter(|_| relays <= free.len()) else { return Err(none) };
        let mut ids = Vec::with_capacity(1 + relays);
        for index in [start].into_iter().chain(free.into_iter().take(relays)) {
            let Some(at) = At::new(units, me, index) else { return Err(none) };
            let own = &mut self.gates[index];
            *own = OwnGate { life: own.life + 1, ..OwnGate::default() };
            let life = own.life;
            for at in halves(units, at) {
                remote::forget(units, at);
                Field::WIRES.iter().for_each(|wire| units.word(at, *wire).store(GateId::NULL.to_bits(), Relaxed));
                units.word(at, Field::Posted).store(0, Relaxed);
                // Release: pairs with the acquire in `fire` and `age`.
                units.word(at, Field::Life).store(life.into(), Release);
            }
            ids.push(GateId::new(me, index as u32, life));
        }
        Ok(ids)
    }

    /// Returns updates for ranks of other nodes, to be confirmed by them. Their answers may show
    /// that the destinations of freed gates have read all packets, so that these gates can be
    /// reused.
    pub(crate) fn undrained(&self, units: &impl Units, me: Rank, gone: impl Fn(Rank) -> bool) -> Vec<GateUpdate> {
        let outputs = (0..self.gates.len()).filter(|&index| self.gates[index].life.is_multiple_of(2));
        let waits = outputs.filter_map(|index| At::new(units, me, index)).filter(|&at| !is_drained(units, at, &gone));
        let listeners =
            waits.flat_map(|at| remote::wires(units, at)).filter(|(_, wire, _)| *wire == Field::DestinationRemote);
        listeners.filter_map(|(at, wire, to)| remote::update(units, at, wire, to)).collect()
    }

    /// Gives gates back. Returns their records.
    pub(crate) fn free(&mut self, units: &impl Units, me: Rank, gates: &[GateId]) -> Vec<At> {
        let mut freed = Vec::with_capacity(2 * gates.len());
        for &gate in gates {
            let Ok(at) = self.gate(units, me, gate) else { continue };
            let own = &mut self.gates[at.node()];
            (own.life, own.in_flight) = (own.life + 1, false);
            for at in halves(units, at) {
                // Release: pairs with the acquire in `age`.
                units.word(at, Field::Life).store(own.life.into(), Release);
                freed.push(at);
            }
        }
        freed
    }

    /// Sets wires, which have been checked. Returns the updates that ranks of other nodes must
    /// confirm before any gate is started: for the gates to which the wires lead, and for those to
    /// which they led.
    pub(crate) fn set(&mut self, units: &impl Units, me: Rank, wirings: &[Wiring]) -> Result<Vec<GateUpdate>> {
        let mut places = Vec::with_capacity(wirings.len());
        for wiring in wirings {
            let at = self.gate(units, me, wiring.gate)?;
            let claimed = halves(units, at).any(|at| unpack(units.word(at, Field::State).load(Acquire)).1 != 0);
            if self.gates[at.node()].in_flight || claimed {
                return Err(GateError::Outstanding(wiring.gate).into());
            }
            places.push(at);
        }
        let mut concerned = Vec::new();
        for (wiring, at) in wirings.iter().zip(places) {
            let own = &mut self.gates[at.node()];
            (own.set, own.posted) = (true, 0);
            let ends = [
                (Field::SourceLocal, wiring.source_local),
                (Field::SourceRemote, wiring.source_remote),
                (Field::DestinationLocal, wiring.destination_local),
                (Field::DestinationRemote, wiring.destination_remote),
            ];
            for at in halves(units, at) {
                concerned.extend(remote::wires(units, at));
                let setting = units.word(at, Field::Setting).load(Relaxed) | 1;
                units.word(at, Field::Setting).store(setting, Relaxed);
                // Pairs with the fence of `remote::update`: a reader that sees a later store also
                // sees the odd number.
                units.fence(Release);
                remote::forget(units, at);
                for (field, gate) in ends {
                    units.word(at, field).store(gate.unwrap_or(GateId::NULL).to_bits(), Relaxed);
                }
                units.word(at, Field::Posted).store(0, Relaxed);
                // Release: a rank that sees the new round also sees the new wires.
                units.word(at, Field::State).store(pack(0, 0), Release);
                // Release: pairs with the acquire in `remote::update`.
                units.word(at, Field::Setting).store(setting.wrapping_add(1), Release);
                concerned.extend(remote::wires(units, at));
            }
        }
        let mut told = Vec::new();
        concerned.retain(|concerned| {
            !told.contains(concerned) && {
                told.push(*concerned);
                true
            }
        });
        Ok(concerned.into_iter().filter_map(|(at, wire, to)| remote::update(units, at, wire, to)).collect())
    }

    /// Writes the host's values for its next round. Returns the record that may fire as a result.
    pub(crate) fn start(&mut self, units: &impl Units, me: Rank, gate: GateId, values: &Values) -> Result<At> {
        let at = self.start_gate(units, me, gate)?;
        let own = &mut self.gates[at.node()];
        if own.in_flight {
            return Err(GateError::Outstanding(gate).into());
        }
        if !own.set {
            return Err(GateError::NotSet(gate).into());
        }
        let round = next(own.posted);
        let end = At::end_of(units, at);
        // The last result was taken, so its packet is free.
        Wave::enter(values).encode(|index, word| units.packet(end, slot(next(round)), index).store(word, Relaxed));
        // Release: pairs with the acquire in `look`.
        units.word(at, Field::Posted).store(round, Release);
        (own.posted, own.in_flight, own.seen) = (round, true, None);
        Ok(at)
    }
}

/// Returns the records of a gate whose outputs are at `at`.
fn halves(units: &impl Units, at: At) -> impl Iterator<Item = At> {
    let end = (at.half(units) == Half::Start).then(|| At::end_of(units, at));
    [at].into_iter().chain(end)
}

/// Resets a record to round 0 unless a rank is executing it. Returns whether it was reset.
fn reset(units: &impl Units, at: At) -> bool {
    let state = units.word(at, Field::State);
    let now = state.load(Acquire);
    // Release: pairs with the acquire in `fire`.
    unpack(now).1 == 0 && state.replace(now, pack(0, 0), AcqRel, Relaxed).is_ok()
}

/// Returns whether no rank will read packets of a freed gate any longer and none is executing it.
fn is_drained(units: &impl Units, at: At, gone: impl Fn(Rank) -> bool) -> bool {
    // Acquire: pairs with F4 of `fire`.
    let state = |at| unpack(units.word(at, Field::State).load(Acquire));
    let read = |(wire, destination): (Field, GateId)| {
        let Known::At(to) = remote::destination(units, at, wire, destination) else { return true };
        let lives = units.word(to, Field::Life).load(Acquire) == u64::from(destination.generation());
        !lives || gone(destination.rank()) || ahead(state(to).0, state(at).0).is_none_or(|ahead| ahead >= 0)
    };
    let leads = |wire| GateId::from_bits(units.word(at, wire).load(Relaxed)).gate();
    let mut destinations = Field::DESTINATIONS.into_iter().filter_map(|wire| Some((wire, leads(wire)?)));
    halves(units, at).all(|at| state(at).1 == 0) && destinations.all(read)
}
