//! The barrier unit and hardware barriers. Waits for them are recorded, as waits for gates.

use super::Observer;
use crate::{
    counts::WaitKind,
    event::{Event, EventKind},
    recorder::only,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Result,
    barrier::{BarrierLimits, GateId, Progress, Values, Wiring},
    provider::{BarrierUnit, Colours, Slot},
};
use std::task::{Context, Poll};

const NONE: FabricError = FabricError::Unsupported { feature: &"a barrier unit" };
const NO_COLOURS: FabricError = FabricError::Unsupported { feature: &"hardware barriers" };

impl Observer {
    fn unit(&self) -> Result<&dyn BarrierUnit> {
        self.below.provider().gates().ok_or(NONE)
    }

    fn coloured(&self) -> Result<&dyn Colours> {
        self.below.provider().colours().ok_or(NO_COLOURS)
    }

    fn begin_gate(&self, slot: &mut Slot, deps: &Deps<'_>) {
        self.waits.begin(slot, Event::new(EventKind::WaitGate, only(deps), self.now_ps()));
    }

    fn end_gate(&self, slot: &mut Slot, end_below: impl FnOnce(&mut Slot)) {
        let Some(mut wait) = self.waits.end(slot) else { return };
        if !wait.below.is_empty() {
            end_below(&mut wait.below);
        }
        self.recorder.ended(&wait, WaitKind::Gate, self.now_ps());
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
            self.begin_gate(slot, &deps);
        }
        let stands = self.waits.poll(slot, |below| unit.poll(below, gate, deps, cx));
        if stands.is_ready() {
            BarrierUnit::end_wait(self, slot);
        }
        stands
    }

    fn end_wait(&self, slot: &mut Slot) {
        self.end_gate(slot, |below| {
            if let Ok(unit) = self.unit() {
                unit.end_wait(below);
            }
        });
    }
}

impl Colours for Observer {
    fn count(&self) -> u32 {
        self.below.barrier_colours()
    }

    fn claim(&self, colour: u32, members: &[Rank]) -> Result<()> {
        self.coloured()?.claim(colour, members)
    }

    fn free(&self, colour: u32) {
        if let Ok(colours) = self.coloured() {
            colours.free(colour);
        }
    }

    fn start(&self, colour: u32) -> Result<()> {
        self.coloured()?.start(colour)
    }

    fn poll(&self, slot: &mut Slot, colour: u32, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let colours = self.coloured()?;
        if slot.is_empty() {
            self.begin_gate(slot, &deps);
        }
        let stands = self.waits.poll(slot, |below| colours.poll(below, colour, deps, cx));
        if stands.is_ready() {
            Colours::end_wait(self, slot);
        }
        stands
    }

    fn end_wait(&self, slot: &mut Slot) {
        self.end_gate(slot, |below| {
            if let Ok(colours) = self.coloured() {
                colours.end_wait(below);
            }
        });
    }
}
