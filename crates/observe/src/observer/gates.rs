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
    provider::{BarrierUnit, Colours, WaitState},
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

    fn begin_gate(&self, wait_state: &mut WaitState, deps: &Deps<'_>) {
        self.waits.begin(wait_state, Event::new(EventKind::WaitGate, only(deps), self.now_ps()));
    }

    fn end_gate(&self, wait_state: &mut WaitState, end_below: impl FnOnce(&mut WaitState)) {
        let Some(mut wait) = self.waits.end(wait_state) else { return };
        if !wait.below.is_empty() {
            end_below(&mut wait.below);
        }
        self.recorder.ended(&wait, WaitKind::Gate, self.now_ps());
    }
}

impl BarrierUnit for Observer {
    fn limits(&self) -> BarrierLimits {
        self.unit().map_or(BarrierLimits::NONE, |unit| unit.limits())
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        self.unit()?.take(relays)
    }

    fn free(&self, gates: &[GateId]) {
        if let Ok(unit) = self.unit() {
            unit.free(gates);
        }
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        self.unit()?.set(wirings)
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        self.unit()?.start(gate, values)
    }

    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.unit()?.test(gate, deps)
    }

    fn poll(
        &self,
        wait_state: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        let unit = self.unit()?;
        if wait_state.is_empty() {
            self.begin_gate(wait_state, &deps);
        }
        let stands = self.waits.poll(wait_state, |below| unit.poll(below, gate, deps, cx));
        if stands.is_ready() {
            BarrierUnit::end_wait(self, wait_state);
        }
        stands
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        self.end_gate(wait_state, |below| {
            if let Ok(unit) = self.unit() {
                unit.end_wait(below);
            }
        });
    }
}

impl Colours for Observer {
    fn count(&self) -> u32 {
        self.coloured().map_or(0, Colours::count)
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

    fn poll(&self, wait_state: &mut WaitState, colour: u32, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let colours = self.coloured()?;
        if wait_state.is_empty() {
            self.begin_gate(wait_state, &deps);
        }
        let stands = self.waits.poll(wait_state, |below| colours.poll(below, colour, deps, cx));
        if stands.is_ready() {
            Colours::end_wait(self, wait_state);
        }
        stands
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        self.end_gate(wait_state, |below| {
            if let Ok(colours) = self.coloured() {
                colours.end_wait(below);
            }
        });
    }
}
