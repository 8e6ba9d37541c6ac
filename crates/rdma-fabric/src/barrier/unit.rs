//! The contract of a barrier unit: what a provider implements.

use super::{GateId, Values, Wiring};
use crate::{Deps, Fabric, FabricError, Result};
use core::{
    fmt,
    future::{Future, ready},
};

/// What a rank's barrier unit has. Values, like [`crate::Caps`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct BarrierLimits {
    /// Start/end gates of a unit: operations that can be under way at once.
    pub start_gates: usize,
    /// Relay gates of a unit.
    pub relay_gates: usize,
    /// Ranks that share a unit.
    pub ranks_per_unit: usize,
}

/// What is asked of a provider that has no unit.
fn absent<T>() -> Result<T> {
    Err(FabricError::Unsupported { feature: "a barrier unit" })
}

impl BarrierLimits {
    /// No unit.
    pub const NONE: BarrierLimits = BarrierLimits::own(0, 0);

    /// The limits of a unit that is one rank's own.
    pub const fn own(start_gates: usize, relay_gates: usize) -> Self {
        BarrierLimits { start_gates, relay_gates, ranks_per_unit: 1 }
    }

    /// The same unit, shared by so many ranks.
    #[must_use]
    pub const fn shared_by(mut self, ranks: usize) -> Self {
        self.ranks_per_unit = ranks;
        self
    }
}

/// How an operation of a start/end gate stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Progress {
    /// Not over yet. Tofu's `UTOFU_ERR_NOT_COMPLETED`.
    NotCompleted,
    /// Over, with this result; without one if no gate signals the start/end gate.
    Completed(Option<Values>),
}

/// A fabric whose ranks have barrier units: the third trait, beside [`Fabric`].
///
/// Whether there are any is asked at run time: the provided methods are those of a provider without, whose limits are
/// [`BarrierLimits::NONE`] and whose answers are [`FabricError::Unsupported`].
///
/// No CPU takes part between starting a gate and the end of the operation, except where a provider says so. See the
/// [module](crate::barrier) for gates, rounds and faults.
#[diagnostic::on_unimplemented(
    message = "`{Self}` is not known to have barrier units",
    note = "ask for `F: BarrierFabric`, or for `F: FullFabric`, which is all that a program is given"
)]
pub trait BarrierFabric: Fabric {
    /// What this rank's unit has.
    fn barrier_limits(&self) -> BarrierLimits {
        BarrierLimits::NONE
    }

    /// Take a start/end gate and `relays` relay gates: what a provider implements of [`BarrierFabric::alloc_gates`].
    /// They have no wires. All or none.
    ///
    /// # Errors
    /// [`super::GateError::NoGates`].
    fn take_gates(&self, relays: usize) -> Result<Vec<GateId>> {
        let _ = relays;
        absent()
    }

    /// Give gates back. What they have signalled can still be combined by the gates it went to; whoever waits for
    /// another signal of theirs, or signals them, gets [`super::GateError::Freed`]. Own gates only; others are ignored.
    fn free_gates(&self, gates: &[GateId]) {
        let _ = gates;
    }

    /// Set wires of own gates, all or none, and begin their rounds anew. Local; peers see to their own gates. Between
    /// setting the last gate and starting the first, members synchronise.
    ///
    /// Local wires are checked here. Of remote ones only the rank is; where such a wire leads is checked whenever it is used.
    ///
    /// # Errors
    /// As [`super::check_wirings`], [`super::GateError::Freed`], [`super::GateError::NoSuchGate`],
    /// [`super::GateError::Outstanding`].
    fn set_gates(&self, wirings: &[Wiring]) -> Result<()> {
        let _ = wirings;
        absent()
    }

    /// Start an operation: `values` enter at the start half of `gate`. Never blocks. In virtual time the CPU is busy as long
    /// as with posting.
    ///
    /// # Errors
    /// [`super::GateError::Outstanding`], [`super::GateError::NotSet`], [`super::GateError::NotStart`],
    /// [`super::GateError::NotOwn`], [`super::GateError::Freed`].
    fn start_gate(&self, gate: GateId, values: Values) -> Result<()> {
        let _ = (gate, values);
        absent()
    }

    /// How the operation of `gate` stands. Once it has told a result or a fault, the next may be started.
    ///
    /// # Errors
    /// What the round met: [`super::GateError::Mismatch`], [`super::GateError::PointsElsewhere`],
    /// [`super::GateError::Freed`], [`crate::FabricError::Corrupt`]. [`super::GateError::Idle`] if nothing was
    /// started. [`crate::FabricError::PeerLost`] and [`crate::FabricError::PeersLeft`] as for a wait with these
    /// dependencies; the operation is then still under way, and the gate can only be freed.
    fn poll_gate(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        let _ = (gate, deps);
        absent()
    }

    /// Wait for the operation of `gate`; the result as in [`Progress::Completed`]. Dropping the future leaves the
    /// operation under way.
    ///
    /// # Errors
    /// As [`BarrierFabric::poll_gate`].
    fn await_gate(&self, gate: GateId, deps: Deps<'_>) -> impl Future<Output = Result<Option<Values>>> {
        let _ = (gate, deps);
        ready(absent())
    }

    /// Allocate `gates` gates: the first is a start/end gate, the rest are relay gates. Dropping the answer frees them.
    ///
    /// # Errors
    /// [`super::GateError::NoGates`], also if `gates` is 0.
    fn alloc_gates(&self, gates: usize) -> Result<Gates<Self>> {
        let none = super::GateError::NoGates { rank: self.rank(), wanted: 0, starts: 0, relays: 0 };
        let relays = gates.checked_sub(1).ok_or(none)?;
        Ok(Gates { ids: self.take_gates(relays)?, fabric: self.clone() })
    }
}

/// Gates that a rank has; freed when dropped.
pub struct Gates<F: BarrierFabric> {
    fabric: F,
    /// The start/end gate first.
    ids: Vec<GateId>,
}

impl<F: BarrierFabric> Gates<F> {
    /// The start/end gate.
    pub fn start(&self) -> GateId {
        self.ids.first().copied().unwrap_or(GateId::NULL)
    }

    /// All gates, the start/end gate first.
    pub fn ids(&self) -> &[GateId] {
        &self.ids
    }

    /// The fabric they belong to.
    pub fn fabric(&self) -> &F {
        &self.fabric
    }
}

impl<F: BarrierFabric> Drop for Gates<F> {
    fn drop(&mut self) {
        self.fabric.free_gates(&self.ids);
    }
}

impl<F: BarrierFabric> fmt::Debug for Gates<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.ids).finish()
    }
}
