//! The barrier unit under a layer.

use super::{Layer, Layered};
use crate::{
    Deps, Result,
    barrier::{BarrierFabric, BarrierLimits, GateId, Progress, Values, Wiring},
};
use core::future::Future;

impl<F: BarrierFabric, L: Layer<F>> BarrierFabric for Layered<F, L> {
    fn barrier_limits(&self) -> BarrierLimits {
        self.layer().barrier_limits(self.below())
    }

    fn take_gates(&self, relays: usize) -> Result<Vec<GateId>> {
        self.layer().take_gates(self.below(), relays)
    }

    fn free_gates(&self, gates: &[GateId]) {
        self.below().free_gates(gates);
    }

    fn set_gates(&self, wirings: &[Wiring]) -> Result<()> {
        self.below().set_gates(wirings)
    }

    #[inline]
    fn start_gate(&self, gate: GateId, values: Values) -> Result<()> {
        self.layer().start_gate(self.below(), gate, values)
    }

    #[inline]
    fn poll_gate(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.layer().poll_gate(self.below(), gate, deps)
    }

    #[inline]
    fn await_gate(&self, gate: GateId, deps: Deps<'_>) -> impl Future<Output = Result<Option<Values>>> {
        self.layer().await_gate(self.below(), gate, deps)
    }
}
