//! The barrier unit of a rank.

use super::SteppedRank;
use crate::wire::Request;
use core::task::{Context, Poll};
use rdma_fabric::{
    Deps, Result,
    barrier::{BarrierLimits, BarrierUnit, GateId, Progress, Values, Wiring},
    provider::WaitState,
};

/// Every operation depends on all ranks.
impl BarrierUnit for SteppedRank {
    fn limits(&self) -> BarrierLimits {
        let limits = self.0.call(&Request::GateLimits);
        limits.map_or(BarrierLimits::NONE, |(starts, relays)| BarrierLimits::own(starts, relays))
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        self.0.call(&Request::TakeGates { relays })
    }

    fn free(&self, gates: &[GateId]) {
        // Fails only if the simulator has ended.
        let _ = self.0.call::<()>(&Request::FreeGates { gates: gates.to_vec() });
    }

    fn set(&self, wirings: &[Wiring]) -> Result<()> {
        self.0.call(&Request::SetGates { wirings: wirings.to_vec() })
    }

    fn start(&self, gate: GateId, values: Values) -> Result<()> {
        self.0.call(&Request::StartGate { gate, values })
    }

    fn test(&self, gate: GateId, _: Deps<'_>) -> Result<Progress> {
        self.0.call(&Request::TestGate { gate })
    }

    /// A test that finds nothing has taken virtual time, so the task may ask again at once.
    fn poll(
        &self,
        _: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        match self.test(gate, deps) {
            Ok(Progress::Completed(values)) => Poll::Ready(Ok(values)),
            Ok(Progress::NotCompleted) => {
                cx.waker().wake_by_ref();
                Poll::Pending
            }
            Err(error) => Poll::Ready(Err(error)),
        }
    }

    fn end_wait(&self, _: &mut WaitState) {}
}
