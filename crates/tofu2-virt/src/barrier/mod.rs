//! The barrier unit of a node: gates that combine signals, without a CPU.
//!
//! A node's ranks share its unit, which belongs to one of the engines (TNIs) and has
//! `barrier_gates` gates, `barrier_channels` of them start/end gates. A gate takes `barrier_gate`
//! from its last input to its outputs. A signal reaches a local gate immediately and a remote one
//! after the wire latency, which is that of puts: the first hop, then each further one; nothing
//! inside a node. Starting a round keeps the CPU busy for as long as posting; the host sees the
//! result one polling time after it arrived. The gates of a unit work simultaneously, and signals
//! take up no bandwidth on links: no figures are known for either.
//!
//! Whether a gate at the far end has room, or was freed, is known immediately.

mod colours;
mod gate;
mod signals;
mod units;

pub(super) use colours::ColourBarriers;
pub(super) use units::BarrierUnits;

use super::{
    provider::{Keys, Me, VirtRank},
    ranks::Watched,
    waits,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    barrier::{BarrierLimits, GateError, GateId, Progress, Values, Wiring, check_wirings},
    provider::{BarrierUnit, WaitState},
};
use std::{
    mem,
    task::{Context, Poll},
};

/// The state of a round of gates, as a waiter sees it.
enum Round {
    Complete(Result<Option<Values>>),
    /// The round has ended; the rank will be woken at the time at which it sees the end.
    Coming,
    Waiting,
}

impl Me {
    fn round(&self, gate: GateId, deps: Deps<'_>) -> Result<Round> {
        let lane = self.lane();
        let mut core = self.world.core();
        let number = core.barrier.own_start_gate(&core.machine, self.rank, gate)?;
        let seen = core.now_of(lane);
        let (state, signals) = core.barrier.with_signals(number);
        let set = state.set.as_deref_mut().filter(|set| set.under_way).ok_or(GateError::Idle(gate))?;
        match set.result.front(signals).map(|signal| signal.at) {
            Some(visible) if visible > seen => {
                if mem::replace(&mut state.waiter, lane) != lane {
                    core.clock.wake_at(lane, visible);
                }
                Ok(Round::Coming)
            }
            Some(_) => {
                set.under_way = false;
                let wave = set.result.pop(signals).flatten();
                let result = wave.map(|wave| wave.leave()).transpose().map_err(FabricError::from);
                // A lost rank has freed its gates, or has caused others to free theirs.
                let freed = matches!(&result, Err(FabricError::Gate(error)) if matches!(**error, GateError::Freed(_)));
                if freed
                    && let Some(lost @ FabricError::PeerLost { .. }) = core.ranks.hopeless(lane, waits::NO_WAIT, deps)
                {
                    return Ok(Round::Complete(Err(lost)));
                }
                Ok(Round::Complete(result))
            }
            None => {
                state.waiter = lane;
                Ok(Round::Waiting)
            }
        }
    }

    /// Lets a wait for gates continue after all peers have left, if signals in flight may still end
    /// it.
    fn outlook(&self, error: FabricError) -> Result<()> {
        let lane = self.lane();
        let mut core = self.world.core();
        if error == FabricError::PeersLeft && core.barrier.expect_signals(lane) { Ok(()) } else { Err(error) }
    }
}

impl<K: Keys> BarrierUnit for VirtRank<K> {
    fn limits(&self) -> BarrierLimits {
        let core = self.me.world.core();
        let (starts, all) = (core.machine.timing.barrier_channels, core.machine.timing.barrier_gates);
        BarrierLimits::own(starts as usize, (all - starts) as usize).shared_by(core.machine.ranks_per_node as usize)
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        let me = &*self.me;
        let mut core = me.world.core();
        let (node, starts, all) =
            (core.machine.node_of(me.rank), core.machine.timing.barrier_channels, core.machine.timing.barrier_gates);
        Ok(core.barrier.take(Rank::new(me.rank), node, starts, all, relays)?)
    }

    fn free(&self, gates: &[GateId]) {
        let me = &*self.me;
        let mut core = me.world.core();
        for &gate in gates {
            if let Ok(number) = core.barrier.own_gate(&core.machine, me.rank, gate) {
                let core = &mut *core;
                core.barrier.free(&core.machine, &mut core.clock, number);
            }
        }
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        let me = &*self.me;
        let mut core = me.world.core();
        let alive = |gate: GateId| {
            let state = core.barrier.gate(core.barrier.own_gate(&core.machine, me.rank, gate)?);
            Ok((state.wiring().copied().unwrap_or(Wiring::none(gate)), state.is_start))
        };
        check_wirings(Rank::new(me.rank), core.ranks.len(), wirings, alive)?;
        for wiring in wirings {
            if core.barrier.gate(core.barrier.own_gate(&core.machine, me.rank, wiring.gate)?).is_busy() {
                return Err(GateError::Outstanding(wiring.gate).into());
            }
        }
        for wiring in wirings {
            let number = core.barrier.own_gate(&core.machine, me.rank, wiring.gate)?;
            let (state, signals) = core.barrier.with_signals(number);
            state.set(*wiring, signals);
        }
        Ok(())
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        let me = &*self.me;
        let lane = me.lane();
        let core = &mut *me.world.core();
        let number = core.barrier.own_start_gate(&core.machine, me.rank, gate)?;
        let written = core.now_of(lane).saturating_add(core.machine.timing.post);
        core.barrier.start(&mut core.clock, number, gate, &values, written)?;
        core.ranks.occupy_cpu(lane, core.clock.now(), core.machine.timing.post);
        Ok(())
    }

    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        let me = &*self.me;
        match me.round(gate, deps)? {
            Round::Complete(result) => result.map(Progress::Completed),
            Round::Coming => Ok(Progress::NotCompleted),
            Round::Waiting => {
                let lane = me.lane();
                let hopeless = me.world.core().ranks.hopeless(lane, waits::NO_WAIT, deps);
                hopeless.map_or(Ok(()), |error| me.outlook(error))?;
                Ok(Progress::NotCompleted)
            }
        }
    }

    fn poll(
        &self,
        wait_state: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        let me = &*self.me;
        let lane = me.lane();
        let WaitState([wait, ..]) = wait_state;
        match me.round(gate, deps)? {
            Round::Complete(result) => return Poll::Ready(result),
            Round::Coming => {}
            Round::Waiting => {
                let going = me.advance(&mut me.world.core(), lane, wait, Watched::Gate, deps);
                going.or_else(|error| me.outlook(error))?;
            }
        }
        me.world.listen(lane, cx);
        Poll::Pending
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        let WaitState([wait, ..]) = wait_state;
        self.me.unwatch(&mut self.me.world.core(), wait);
    }
}
