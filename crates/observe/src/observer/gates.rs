//! The barrier unit. Waits for it are recorded.

use super::Observer;
use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::only,
};
use rdma_fabric::{
    Deps, FabricError, Result,
    barrier::{BarrierLimits, GateId, Progress, Values, Wiring},
    provider::{BarrierUnit, Slot},
};
use std::task::{Context, Poll};

const NONE: FabricError = FabricError::Unsupported { feature: &"a barrier unit" };

impl Observer {
    fn unit(&self) -> Result<&dyn BarrierUnit> {
        self.below.provider().gates().ok_or(NONE)
    }
}

impl BarrierUnit for Observer {
    fn limits(&self) -> BarrierLimits {
        self.below.barrier_limits()
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        self.unit()?.take(relays)
    }

    fn free(&self, gates: &[GateId]) {
        self.below.free_gates(gates);
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        self.below.set_gates(wirings)
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        self.below.start_gate(gate, values)
    }

    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.below.poll_gate(gate, deps)
    }

    fn poll(
        &self,
        slot: &mut Slot,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        let unit = self.unit()?;
        if slot.is_empty() {
            self.waits.begin(slot, Event::new(EventKind::WaitGate, only(&deps), self.now_ps()));
        }
        let stands = self.waits.poll(slot, |below| unit.poll(below, gate, deps, cx));
        if stands.is_ready() {
            BarrierUnit::end_wait(self, slot);
        }
        stands
    }

    fn end_wait(&self, slot: &mut Slot) {
        let Some(mut wait) = self.waits.end(slot) else { return };
        if !wait.below.is_empty()
            && let Ok(unit) = self.unit()
        {
            unit.end_wait(&mut wait.below);
        }
        self.recorder.ended(&wait, WaitKind::Gate, self.now_ps());
    }
}
