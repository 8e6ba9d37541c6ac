//! A rank's barrier unit.

use super::{BarrierLimits, BarrierUnit, GateError, GateId, Progress, Values, Wiring};
use core::{
    fmt,
    future::{Future, poll_fn},
};
use rdma_fabric::{Deps, Fabric, FabricError, Result, provider::WaitGuard};

/// The barrier unit of a rank.
#[derive(Clone, Copy, Debug)]
pub struct GateUnit<'a>(&'a Fabric);

impl<'a> GateUnit<'a> {
    /// Returns the unit of this rank; where there is none, its limits are [`BarrierLimits::NONE`],
    /// and every other call is [`FabricError::Unsupported`].
    pub fn of(fabric: &'a Fabric) -> Self {
        GateUnit(fabric)
    }

    /// Returns the limits of this rank's unit.
    pub fn limits(self) -> BarrierLimits {
        self.0.provider().gates().map_or(BarrierLimits::NONE, |unit| unit.limits())
    }

    fn unit(self) -> Result<&'a dyn BarrierUnit> {
        self.0.provider().gates().ok_or(FabricError::Unsupported { feature: &"a barrier unit" })
    }

    /// Frees gates. Signals that they have sent can still be combined by the receiving gates; a
    /// gate that waits for another signal from them, or signals them, receives
    /// [`GateError::Freed`]. Only this rank's own gates are freed; others are ignored.
    pub fn free(self, gates: &[GateId]) {
        if let Ok(unit) = self.unit() {
            unit.free(gates);
        }
    }

    /// Sets the connections of this rank's own gates, all or none, and restarts the count of their
    /// rounds. Peers set their own gates. Members synchronise between setting the last gate and
    /// starting the first. Local, except if gates are, or were, connected to other nodes: then this
    /// waits until all ranks on those nodes that are not lost have been notified, which does not
    /// depend on their actions.
    ///
    /// Local connections are checked here. For remote connections only the rank is checked; the
    /// target is checked on each use.
    ///
    /// # Errors
    /// As [`super::check_wirings`], [`GateError::Freed`], [`GateError::NoSuchGate`],
    /// [`GateError::Outstanding`]; between nodes, [`FabricError::Aborted`] and
    /// [`FabricError::System`], after which the gates are unusable.
    pub fn set(self, wirings: &[Wiring]) -> Result<()> {
        self.unit()?.set(wirings)
    }

    /// Starts an operation: `values` enter at the start half of `gate`. Never blocks. In virtual
    /// time the CPU is busy for as long as a post takes.
    ///
    /// # Errors
    /// [`GateError::Outstanding`], [`GateError::NotSet`], [`GateError::NotStart`],
    /// [`GateError::NotOwn`], [`GateError::Freed`].
    pub fn start(self, gate: GateId, values: Values) -> Result<()> {
        self.unit()?.start(gate, values)
    }

    /// Returns the state of the operation of `gate`. Once it has returned a result or a fault, the
    /// next operation may be started.
    ///
    /// # Errors
    /// The fault of the round: [`GateError::Mismatch`], [`GateError::PointsElsewhere`],
    /// [`GateError::Freed`], [`FabricError::Corrupt`]. [`GateError::Idle`] if nothing was
    /// started. [`FabricError::PeerLost`] and [`FabricError::PeersLeft`] as for a
    /// wait with these dependencies; the operation is then still in flight, and the gate can only
    /// be freed.
    pub fn poll(self, gate: GateId, deps: Deps<'_>) -> Result<Progress> {
        self.unit()?.test(gate, deps)
    }

    /// Waits for the operation of `gate`; the result is that of [`Progress::Completed`]. Dropping
    /// the future leaves the operation in flight.
    ///
    /// # Errors
    /// As [`GateUnit::poll`].
    pub fn wait(self, gate: GateId, deps: Deps<'_>) -> impl Future<Output = Result<Option<Values>>> {
        let mut wait = WaitGuard::new(move |wait_state, _| {
            if let Ok(unit) = self.unit() {
                unit.end_wait(wait_state);
            }
        });
        poll_fn(move |cx| self.unit()?.poll(wait.state(), gate, deps, cx))
    }

    /// Allocates `gates` gates: the first is a start/end gate, the rest are relay gates. Dropping
    /// the [`Gates`] frees them.
    ///
    /// # Errors
    /// [`GateError::NoGates`], also if `gates` is 0.
    pub fn alloc(self, gates: usize) -> Result<Gates> {
        let none = GateError::NoGates { rank: self.0.rank(), wanted: 0, starts: 0, relays: 0 };
        let relays = gates.checked_sub(1).ok_or(none)?;
        Ok(Gates { ids: self.unit()?.take(relays)?, fabric: self.0.clone() })
    }
}

/// Gates allocated by a rank; freed when dropped.
pub struct Gates {
    fabric: Fabric,
    /// The start/end gate first.
    ids: Vec<GateId>,
}

impl Gates {
    /// Returns the start/end gate.
    pub fn start(&self) -> GateId {
        self.ids.first().copied().unwrap_or(GateId::NULL)
    }

    /// Returns all gates, the start/end gate first.
    pub fn ids(&self) -> &[GateId] {
        &self.ids
    }

    /// Returns the fabric to which the gates belong.
    pub fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Drop for Gates {
    fn drop(&mut self) {
        GateUnit::of(&self.fabric).free(&self.ids);
    }
}

impl fmt::Debug for Gates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(&self.ids).finish()
    }
}
