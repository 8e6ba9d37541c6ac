//! The firing of gates, round by round.

use super::{
    super::{
        clock::{Clock, EventKind},
        core::Machine,
        ranks::Ranks,
    },
    gate::{Gate, Half, Named, SetGate},
    signals::{Input, Signal, Signals},
};
use rdma_fabric::{
    Rank, Result,
    barrier::{GateError, GateId, RoundFault, Values, Wave, Wiring},
};
use std::{collections::HashMap, mem};

/// The gates of all nodes. A node's gates are created on first use.
#[derive(Debug)]
pub(crate) struct BarrierUnits {
    pub(super) gates: Vec<Gate>,
    signals: Signals,
    /// The index of each node's first gate. Never iterated.
    pub(super) first: HashMap<u32, u32>,
    /// The number of pending gate events.
    under_way: u32,
    /// Ranks to wake when no gate event is pending.
    uncertain: Vec<u32>,
}

/// A half of a gate: its number, and whether it is an end half.
type HalfId = (u32, bool);

/// Reads one of a gate's wires.
type End = fn(&Wiring) -> Option<GateId>;

impl BarrierUnits {
    pub(crate) fn new() -> Self {
        let signals = Signals::new();
        BarrierUnits { gates: Vec::new(), signals, first: HashMap::new(), under_way: 0, uncertain: Vec::new() }
    }

    pub(super) fn gate(&self, number: u32) -> &Gate {
        &self.gates[number as usize]
    }

    /// Returns a gate, and the table of its signals.
    pub(super) fn with_signals(&mut self, number: u32) -> (&mut Gate, &mut Signals) {
        (&mut self.gates[number as usize], &mut self.signals)
    }

    /// Returns whether signals are in flight. If so, `rank` is woken when none is left.
    pub(super) fn expect_signals(&mut self, rank: u32) -> bool {
        let expects = self.under_way > 0;
        if expects && !self.uncertain.contains(&rank) {
            self.uncertain.push(rank);
        }
        expects
    }

    /// Starts the next round of a start gate for its host. The values are available at `written`.
    ///
    /// # Errors
    /// [`GateError::Outstanding`], [`GateError::NotSet`].
    pub(super) fn start(
        &mut self,
        clock: &mut Clock,
        number: u32,
        gate: GateId,
        values: &Values,
        written: u64,
    ) -> Result<()> {
        let (state, signals) = self.with_signals(number);
        let Some(set) = state.set.as_deref_mut() else { return Err(GateError::NotSet(gate).into()) };
        if set.under_way {
            return Err(GateError::Outstanding(gate).into());
        }
        set.posted += 1;
        set.under_way = true;
        let signal = Signal::new(written, set.posted, Some(Wave::enter(values)));
        set.main.local.push(signals, signal);
        self.push(clock, written, EventKind::Signal, (number, false));
        Ok(())
    }

    pub(super) fn free(&mut self, machine: &Machine, clock: &mut Clock, number: u32) {
        let concerned = [false, true].into_iter().flat_map(|end| self.around(machine, (number, end))).collect();
        let (state, signals) = self.with_signals(number);
        state.clear(signals);
        state.life += 1;
        self.run(machine, clock, concerned);
    }

    fn push(&mut self, clock: &mut Clock, at: u64, kind: EventKind, (number, end): HalfId) {
        let life = self.gate(number).life as u16;
        self.under_way += 1;
        clock.push_detailed(at, kind, number, life << 1 | u16::from(end));
    }

    /// Handles a `Signal` or a `Fired` event: a signal has reached a gate, or a gate has fired.
    pub(crate) fn gate_moves(
        &mut self,
        machine: &Machine,
        clock: &mut Clock,
        ranks: &mut Ranks,
        fired: bool,
        number: u32,
        detail: u16,
    ) {
        self.under_way -= 1;
        let half = (number, detail & 1 == 1);
        // The gate may have been freed in the meantime, and perhaps reallocated.
        if self.gate(number).life as u16 & 0x7fff == detail >> 1 {
            let mut work = vec![half];
            if fired {
                self.publish(machine, clock, half, &mut work);
            }
            self.run(machine, clock, work);
        }
        if self.under_way == 0 {
            for rank in mem::take(&mut self.uncertain) {
                ranks.wake(rank);
            }
        }
    }

    /// Returns the halves that an event at a half may affect, other than that half.
    fn around(&self, machine: &Machine, (number, end): HalfId) -> Vec<HalfId> {
        let state = self.gate(number);
        let Some(wiring) = state.wiring() else { return Vec::new() };
        let sources = [wiring.source_local, wiring.source_remote].map(|gate| gate.filter(|_| end == state.is_start));
        let destinations = [wiring.destination_local, wiring.destination_remote].map(|gate| gate.filter(|_| !end));
        let sources = sources.into_iter().flatten().filter_map(|gate| Some((self.number_of(machine, gate)?, false)));
        let destinations = destinations.into_iter().flatten().filter_map(|gate| {
            let number = self.number_of(machine, gate)?;
            Some((number, self.gate(number).is_start))
        });
        sources.chain(destinations).collect()
    }

    /// Begins to fire the halves of `work` that can fire, and those that can fire as a result.
    fn run(&mut self, machine: &Machine, clock: &mut Clock, mut work: Vec<HalfId>) {
        while let Some(half) = work.pop() {
            if self.begin(machine, clock, half).is_some() {
                // The sources have room now.
                work.extend(self.around(machine, half));
            }
        }
    }

    /// Begins to fire a half's next round, if its inputs have arrived and its outputs have room.
    fn begin(&mut self, machine: &Machine, clock: &mut Clock, id: HalfId) -> Option<()> {
        let (number, end) = id;
        let (now, state) = (clock.now(), self.gate(number));
        let SetGate { wiring, main, end: end_half, .. } = state.set.as_deref()?;
        let half = if end { end_half } else { main };
        if !half.firing.is_empty() || state.life.is_multiple_of(2) {
            return None;
        }
        let (round, gate) = (half.fired + 1, wiring.gate);
        let is_start_half = state.is_start && !end;
        let come = |input: &Input| match input.front(&self.signals) {
            Some(signal) if signal.at > now => None,
            Some(signal) if signal.round != round => {
                Some(Some(Wave::Fault(RoundFault::Corrupt(Rank::new(state.owner)))))
            }
            Some(signal) => Some(signal.wave.clone()),
            None => Some(None),
        };
        let mut waves = Vec::with_capacity(3);
        // Whether the number of rounds is bounded by the number that hosts start. A relay gate
        // without a destination fires only in such rounds; otherwise faults that arise
        // spontaneously would keep it firing forever.
        let mut is_driven = state.is_start;
        let channels = machine.timing.barrier_channels;
        if is_start_half {
            waves.push(come(&half.local)??);
        } else {
            let wires: [(Option<GateId>, &Input, End); 2] = [
                (wiring.source_local, &half.local, |wiring| wiring.destination_local),
                (wiring.source_remote, &half.remote, |wiring| wiring.destination_remote),
            ];
            for (source, input, back) in wires {
                let Some(source) = source else { continue };
                let wave = match (come(input)?, self.named(machine, source, gate, back)) {
                    (Some(wave), _) => {
                        is_driven |= source.index() < channels || !matches!(wave, Wave::Fault(_));
                        wave
                    }
                    (None, Named::Wrong(fault)) => Wave::Fault(fault),
                    (None, Named::Gate(_)) => return None,
                };
                waves.push(wave);
            }
        }
        if end {
            let sent = come(&half.sent)??;
            if matches!(sent, Wave::Fault(_)) {
                waves.push(sent);
            }
        } else {
            let wires: [(Option<GateId>, bool, End); 2] = [
                (wiring.destination_local, true, |wiring| wiring.source_local),
                (wiring.destination_remote, false, |wiring| wiring.source_remote),
            ];
            for (destination, local, back) in wires {
                let Some(destination) = destination else { continue };
                match self.named(machine, destination, gate, back) {
                    Named::Wrong(fault) => waves.push(Wave::Fault(fault)),
                    Named::Gate(to) => {
                        is_driven = true;
                        let to = self.gate(to);
                        let inputs = to.set.as_deref().map(|set| if to.is_start { &set.end } else { &set.main });
                        if inputs.is_some_and(|to| (if local { to.local } else { to.remote }).is_full()) {
                            return None;
                        }
                    }
                }
            }
        }
        if !is_driven {
            return None;
        }
        let wave = waves.into_iter().reduce(|a, b| a.merge(b, gate));
        let done = now.saturating_add(machine.timing.barrier_gate);
        let (state, signals) = self.with_signals(number);
        let Half { local, remote, sent, firing, .. } = state.set.as_deref_mut()?.half(end);
        [local, remote, sent].into_iter().for_each(|input| drop(input.pop(signals)));
        firing.push(signals, Signal::new(done, round, wave));
        self.push(clock, done, EventKind::Fired, id);
        Some(())
    }

    /// Finishes firing a gate: sends the signal to its outputs, or passes the result to its host.
    fn publish(&mut self, machine: &Machine, clock: &mut Clock, (number, end): HalfId, work: &mut Vec<HalfId>) {
        let now = clock.now();
        let (state, signals) = self.with_signals(number);
        let (is_start, owner, waiter) = (state.is_start, state.owner, state.waiter);
        let Some(set) = state.set.as_deref_mut() else { return };
        let (wiring, half) = (set.wiring, set.half(end));
        let Some(wave) = half.firing.pop(signals) else { return };
        half.fired += 1;
        let round = half.fired;
        if end {
            // Polling takes as long as posting.
            let visible = now.saturating_add(machine.timing.post);
            set.result.push(signals, Signal::new(visible, round, wave));
            return clock.wake_at(waiter, visible);
        }
        if wave.is_none() {
            return;
        }
        if is_start {
            set.end.sent.push(signals, Signal::new(now, round, wave.clone()));
            work.push((number, true));
        }
        let local =
            wiring.destination_local.map(|gate| self.named(machine, gate, wiring.gate, |wiring| wiring.source_local));
        if let Some(Named::Gate(to)) = local {
            self.signal(to, now, |inputs| &mut inputs.local, (round, wave.clone()));
            work.push((to, self.gate(to).is_start));
        }
        let remote =
            wiring.destination_remote.map(|gate| (gate, self.named(machine, gate, wiring.gate, |w| w.source_remote)));
        if let Some((gate, Named::Gate(to))) = remote {
            let (from, there) = (machine.node_of(owner), machine.node_of(gate.rank().number()));
            let wire = machine.wire_between(from, there);
            let extra = clock.extra();
            let at = now.saturating_add(wire).saturating_add(extra);
            let at = self.signal(to, at, |inputs| &mut inputs.remote, (round, wave));
            self.push(clock, at, EventKind::Signal, (to, self.gate(to).is_start));
        }
    }

    /// Adds a signal that arrives at `at` to an input of a gate. Returns the time at which it arrives: there
    /// is one path, so signals keep their order.
    fn signal(
        &mut self,
        to: u32,
        at: u64,
        input: impl Fn(&mut Half) -> &mut Input,
        (round, wave): (u64, Option<Wave>),
    ) -> u64 {
        let (state, signals) = self.with_signals(to);
        let Some(input) = state.inputs().map(input) else { return at };
        let at = at.max(input.back(signals).map_or(0, |last| last.at));
        input.push(signals, Signal::new(at, round, wave));
        at
    }
}
