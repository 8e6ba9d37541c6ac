//! The barrier unit of an observed fabric: passed through; waits for it are noted.

use crate::{
    counts::WaitKind,
    observed::{Observed, only},
    waiting::Waiting,
};
use rdma_fabric::{
    Deps, FullFabric, Result,
    barrier::{BarrierFabric, BarrierLimits, GateId, Progress, Values, Wiring},
};

impl<F: FullFabric> BarrierFabric for Observed<F> {
    fn barrier_limits(&self) -> BarrierLimits {
        self.inner.barrier_limits()
    }

    fn take_gates(&self, relays: usize) -> Result<Vec<GateId>> {
        self.inner.take_gates(relays)
    }

    fn free_gates(&self, gates: &[GateId]) {
        self.inner.free_gates(gates);
    }

    fn set_gates(&self, wirings: &[Wiring]) -> Result<()> {
        self.inner.set_gates(wirings)
    }

    fn start_gate(&self, gate: GateId, values: Values) -> Result<()> {
        self.inner.start_gate(gate, values)
    }

    fn poll_gate(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.inner.poll_gate(gate, deps)
    }

    async fn await_gate(&self, gate: GateId, deps: Deps<'_>) -> Result<Option<Values>> {
        let mut waiting = Waiting::begin(self, WaitKind::Gate, only(&deps));
        waiting.until(self.inner.await_gate(gate, deps)).await
    }
}
