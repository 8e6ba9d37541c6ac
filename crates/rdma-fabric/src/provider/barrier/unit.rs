//! The trait that a provider with barrier units implements, with limits and results.

use super::{GateId, Values, Wiring};
use crate::{Deps, Result, provider::WaitState};
use core::task::{Context, Poll};

/// Limits of a rank's barrier unit, to be queried at run time like [`crate::Caps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BarrierLimits {
    /// Start/end gates of a unit: operations that can be in flight at once.
    pub start_gates: usize,
    /// Relay gates of a unit.
    pub relay_gates: usize,
    /// Ranks that share a unit.
    pub ranks_per_unit: usize,
}

impl BarrierLimits {
    /// No barrier unit.
    pub const NONE: BarrierLimits = BarrierLimits::own(0, 0);

    /// Returns the limits of a unit that belongs to a single rank.
    pub const fn own(start_gates: usize, relay_gates: usize) -> Self {
        BarrierLimits { start_gates, relay_gates, ranks_per_unit: 1 }
    }

    /// Returns the limits of a unit that is shared by this many ranks.
    #[must_use]
    pub const fn shared_by(mut self, ranks: usize) -> Self {
        self.ranks_per_unit = ranks;
        self
    }
}

/// The state of an operation of a start/end gate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not complete yet. Tofu's `UTOFU_ERR_NOT_COMPLETED`.
    NotCompleted,
    /// Complete, with this result; `None` if no gate signals the start/end gate.
    Completed(Option<Values>),
}

/// The barrier unit of a rank, as a provider implements it: `fabric_offload::barrier::GateUnit`
/// is its form for programs.
pub trait BarrierUnit {
    /// Returns the unit's limits.
    fn limits(&self) -> BarrierLimits;
    /// Allocates a start/end gate and relay gates.
    fn take(&self, relays: usize) -> Result<Vec<GateId>>;
    /// Gives gates back.
    fn free(&self, gates: &[GateId]);
    /// Sets wires.
    fn set(&self, wirings: &[Wiring]) -> Result<()>;
    /// Starts an operation.
    fn start(&self, gate: GateId, values: Values) -> Result<()>;
    /// Returns the state of the gate's operation.
    fn test(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress>;
    /// Waits for the gate's operation.
    fn poll(
        &self,
        wait_state: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>>;
    /// Ends a wait. Called for every wait state that is not empty.
    fn end_wait(&self, wait_state: &mut WaitState);
}
