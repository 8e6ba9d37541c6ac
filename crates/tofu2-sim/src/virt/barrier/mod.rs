//! The barrier unit of a node: gates that combine signals, without a CPU.
//!
//! A node's ranks share its unit, on one of the engines (TNIs): `barrier_channels` start/end gates, `barrier_gates` gates in all. A gate
//! takes `barrier_gate` from its last input to its outputs; a signal is at a local gate at once, and at a remote one after
//! the wire (as puts have it: the first hop, then each further one; nothing inside a node). Starting keeps the CPU busy as long as
//! posting; the result is seen as long after it came as polling takes. Gates of a unit work at the same time, and signals
//! take no room on links: no figure is known for either.
//!
//! Whether a gate at the far end has room, or was freed, is known at once.

mod gate;
mod units;

pub(super) use units::BarrierUnits;

use super::{
    provider::{Keys, Me, VirtRank},
    rank_state::Status,
    waits,
    watch::What,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    barrier::{BarrierLimits, GateError, GateId, Progress, Values, Wiring, check_wirings},
    provider::{BarrierUnit, Slot},
};
use std::task::{Context, Poll};

/// How an operation stands, for who may wait for it.
enum Standing {
    Over(Result<Option<Values>>),
    /// It will be over, or the rank will be woken when that is uncertain.
    Coming,
    Waiting,
}

impl Me {
    fn standing(&self, gate: GateId, deps: Deps<'_>) -> Result<Standing> {
        let mut core = self.world.core();
        let number = core.own_start_gate(self.rank, gate)?;
        let seen = core.now_of(self.rank);
        let state = core.barrier.gate_mut(number);
        if !state.under_way {
            return Err(GateError::Idle(gate).into());
        }
        match state.result {
            Some((visible, _)) if visible > seen => Ok(Standing::Coming),
            Some((_, result)) => {
                (state.under_way, state.result) = (false, None);
                let result = result.map_err(FabricError::from);
                // Who is lost has freed its gates, or has others free theirs.
                let freed = matches!(&result, Err(FabricError::Gate(error)) if matches!(**error, GateError::Freed(_)));
                if freed
                    && let Some(lost @ FabricError::PeerLost { .. }) = core.hopeless(self.rank, waits::NO_WAIT, deps)
                {
                    return Ok(Standing::Over(Err(lost)));
                }
                Ok(Standing::Over(result))
            }
            None => Ok(Standing::Waiting),
        }
    }

    /// What a wait for gates may hope for: signals under way may still end it when all have left.
    fn outlook(&self, error: FabricError) -> Result<()> {
        let mut core = self.world.core();
        if error == FabricError::PeersLeft && core.barrier.expect_signals(self.rank) { Ok(()) } else { Err(error) }
    }
}

impl<K: Keys> BarrierUnit for VirtRank<K> {
    fn limits(&self) -> BarrierLimits {
        let core = self.me.world.core();
        let (starts, all) = (core.timing.barrier_channels, core.timing.barrier_gates);
        BarrierLimits::own(starts as usize, (all - starts) as usize).shared_by(core.ranks_per_node as usize)
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        let me = &*self.me;
        let mut core = me.world.core();
        let (node, starts, all) = (core.node_of(me.rank), core.timing.barrier_channels, core.timing.barrier_gates);
        Ok(core.barrier.take(Rank::new(me.rank), node, starts, all, relays)?)
    }

    fn free(&self, gates: &[GateId]) {
        let me = &*self.me;
        let mut core = me.world.core();
        for &gate in gates {
            if let Ok(number) = core.own_gate(me.rank, gate) {
                core.free_gate(number);
            }
        }
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        let me = &*self.me;
        let mut core = me.world.core();
        let alive = |gate: GateId| {
            let state = core.barrier.gate(core.own_gate(me.rank, gate)?);
            Ok((state.wiring.unwrap_or(Wiring::none(gate)), state.is_start))
        };
        check_wirings(Rank::new(me.rank), core.ranks.len(), wirings, alive)?;
        for wiring in wirings {
            if core.barrier.gate(core.own_gate(me.rank, wiring.gate)?).is_busy() {
                return Err(GateError::Outstanding(wiring.gate).into());
            }
        }
        for wiring in wirings {
            let number = core.own_gate(me.rank, wiring.gate)?;
            core.barrier.gate_mut(number).set(*wiring);
        }
        Ok(())
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        let me = &*self.me;
        me.world.core().start_gate(me.rank, gate, &values)
    }

    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        let me = &*self.me;
        match me.standing(gate, deps)? {
            Standing::Over(result) => result.map(Progress::Completed),
            Standing::Coming => Ok(Progress::NotCompleted),
            Standing::Waiting => {
                let hopeless = me.world.core().hopeless(me.rank, waits::NO_WAIT, deps);
                hopeless.map_or(Ok(()), |error| me.outlook(error))?;
                Ok(Progress::NotCompleted)
            }
        }
    }

    fn poll(
        &self,
        slot: &mut Slot,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        let me = &*self.me;
        let Slot([wait, ..]) = slot;
        match me.standing(gate, deps)? {
            Standing::Over(result) => return Poll::Ready(result),
            Standing::Coming => {}
            Standing::Waiting => {
                let going = me.go_on(&mut me.world.core(), wait, What::Gate, deps);
                going.or_else(|error| me.outlook(error))?;
            }
        }
        me.world.listen(me.rank, cx);
        Poll::Pending
    }

    fn end_wait(&self, slot: &mut Slot) {
        let Slot([wait, ..]) = slot;
        self.me.unwatch(&mut self.me.world.core(), wait);
    }
}

impl super::core::Core {
    /// Whether a rank's program still runs.
    fn is_running(&self, rank: u32) -> bool {
        self.status_of(rank) == Some(Status::Running)
    }
}
