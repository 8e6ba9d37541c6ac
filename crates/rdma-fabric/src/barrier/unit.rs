//! A rank's barrier unit.

use super::{GateId, Values, Wiring};
use crate::{
    Deps, Fabric, FabricError, Result,
    provider::{self, Slot},
};
use core::{
    fmt,
    future::Future,
    pin::Pin,
    task::{Context, Poll},
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

impl Fabric {
    /// What this rank's unit has.
    pub fn barrier_limits(&self) -> BarrierLimits {
        self.provider().gates().map_or(BarrierLimits::NONE, |unit| unit.limits())
    }

    fn unit(&self) -> Result<&dyn provider::Gates> {
        self.provider().gates().ok_or(FabricError::Unsupported { feature: &"a barrier unit" })
    }

    /// Give gates back. What they have signalled can still be combined by the gates it went to; whoever waits for
    /// another signal of theirs, or signals them, gets [`super::GateError::Freed`]. Own gates only; others are ignored.
    pub fn free_gates(&self, gates: &[GateId]) {
        if let Ok(unit) = self.unit() {
            unit.free(gates);
        }
    }

    /// Set wires of own gates, all or none, and begin their rounds anew. Local; peers see to their own gates. Between
    /// setting the last gate and starting the first, members synchronise.
    ///
    /// Local wires are checked here. Of remote ones only the rank is; where such a wire leads is checked whenever it is used.
    ///
    /// # Errors
    /// As [`super::check_wirings`], [`super::GateError::Freed`], [`super::GateError::NoSuchGate`],
    /// [`super::GateError::Outstanding`].
    pub fn set_gates(&self, wirings: &[Wiring]) -> Result<()> {
        self.unit()?.set(wirings)
    }

    /// Start an operation: `values` enter at the start half of `gate`. Never blocks. In virtual time the CPU is busy as long
    /// as with posting.
    ///
    /// # Errors
    /// [`super::GateError::Outstanding`], [`super::GateError::NotSet`], [`super::GateError::NotStart`],
    /// [`super::GateError::NotOwn`], [`super::GateError::Freed`].
    pub fn start_gate(&self, gate: GateId, values: Values) -> Result<()> {
        self.unit()?.start(gate, values)
    }

    /// How the operation of `gate` stands. Once it has told a result or a fault, the next may be started.
    ///
    /// # Errors
    /// What the round met: [`super::GateError::Mismatch`], [`super::GateError::PointsElsewhere`],
    /// [`super::GateError::Freed`], [`crate::FabricError::Corrupt`]. [`super::GateError::Idle`] if nothing was
    /// started. [`crate::FabricError::PeerLost`] and [`crate::FabricError::PeersLeft`] as for a wait with these
    /// dependencies; the operation is then still under way, and the gate can only be freed.
    pub fn poll_gate(&self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.unit()?.test(gate, deps)
    }

    /// Wait for the operation of `gate`; the result as in [`Progress::Completed`]. Dropping the future leaves the
    /// operation under way.
    ///
    /// # Errors
    /// As [`Fabric::poll_gate`].
    pub fn await_gate(&self, gate: GateId, deps: Deps<'_>) -> impl Future<Output = Result<Option<Values>>> {
        AtGate { fabric: self, gate, deps, slot: Slot::default() }
    }

    /// Allocate `gates` gates: the first is a start/end gate, the rest are relay gates. Dropping the answer frees them.
    ///
    /// # Errors
    /// [`super::GateError::NoGates`], also if `gates` is 0.
    pub fn alloc_gates(&self, gates: usize) -> Result<Gates> {
        let none = super::GateError::NoGates { rank: self.rank(), wanted: 0, starts: 0, relays: 0 };
        let relays = gates.checked_sub(1).ok_or(none)?;
        Ok(Gates { ids: self.unit()?.take(relays)?, fabric: self.clone() })
    }
}

/// Gates that a rank has; freed when dropped.
pub struct Gates {
    fabric: Fabric,
    /// The start/end gate first.
    ids: Vec<GateId>,
}

impl Gates {
    /// The start/end gate.
    pub fn start(&self) -> GateId {
        self.ids.first().copied().unwrap_or(GateId::NULL)
    }

    /// All gates, the start/end gate first.
    pub fn ids(&self) -> &[GateId] {
        &self.ids
    }

    /// The fabric they belong to.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        self.fabric.free_gates(&self.ids);
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.ids).finish()
    }
}

/// Waits for the end of an operation of barrier gates.
struct AtGate<'a, 'd> {
    fabric: &'a Fabric,
    gate: GateId,
    deps: Deps<'d>,
    slot: Slot,
}

impl Future for AtGate<'_, '_> {
    type Output = Result<Option<Values>>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let me = &mut *self;
        me.fabric.unit()?.poll(&mut me.slot, me.gate, me.deps, cx)
    }
}

impl Drop for AtGate<'_, '_> {
    fn drop(&mut self) {
        if !self.slot.is_empty()
            && let Some(gates) = self.fabric.provider().gates()
        {
            gates.end_wait(&mut self.slot);
        }
    }
}
