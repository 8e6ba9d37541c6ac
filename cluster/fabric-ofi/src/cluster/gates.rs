//! Gates connected to gates of other nodes: their updates as messages, and the barrier unit of a
//! fabric.
//!
//! The ranks of a gate's node execute it, and send its updates to the ranks whose gates it is
//! connected to ([`Part::on_gates`](tofu2_shm::part::Part::on_gates)). A rank that receives
//! updates executes the gates that they complete, and sends their updates in turn. Processing
//! updates is therefore deferred work: see [`super::arrivals`].

use super::{
    flight::{Flight, Job},
    message::{Head, Kind},
    mutant::Mutant,
    net::Net,
    provider::Cluster,
};
use core::task::{Context, Poll};
use rdma_fabric::{
    Deps, FabricError, Rank, RegionKey, Result,
    barrier::{BarrierLimits, GateId, Progress, Values, Wiring},
    provider::{BarrierUnit, WaitState},
};
use tofu2_shm::part::Part;

const _: () = assert!(Part::GATE_BYTES <= super::link::PAYLOAD, "news fit into a message");

/// `detail` of updates whose sender waits for those of the receiving gate.
const ASKS: u8 = 1;

impl Net {
    fn gate_head(&self) -> Head {
        Head::request(Kind::Gate, self.me.number(), RegionKey::from_bits(0))
    }

    /// Processes updates of a gate; returns the answer.
    pub(super) fn receive_gate_update(&self, head: &Head, news: &[u8]) -> Vec<u8> {
        if head.detail == ASKS {
            return self.part.gate_set(news);
        }
        self.part.gate(news);
        Vec::new()
    }

    /// Sends updates of a gate.
    pub(super) fn send_gate_update(&self, to: Rank, news: Vec<u8>) {
        self.with(|state| {
            state.core.send_message(to.number(), self.gate_head(), news);
            state.flush_outbox();
        });
    }

    /// Sends updates of gates that this rank is setting, and waits until they and their answers
    /// have been processed. Lost ranks are skipped.
    ///
    /// # Errors
    /// [`FabricError::Aborted`], [`FabricError::System`].
    pub(super) fn confirm_gates(&self, all: Vec<(Rank, Vec<u8>)>) -> Result<()> {
        let head = Head { detail: ASKS, ..self.gate_head() };
        let mut asked = Vec::new();
        for (rank, news) in all {
            let flight = || Flight { wanted: true, ..Flight::new(rank.number(), Job::Gate) };
            let id = none_if_lost(self.wait(rank, |state| state.request(flight(), head, &news)))?;
            asked.extend(id.map(|id| (rank, id)));
        }
        if self.lock().core.has_mutant(Mutant::SetsUnconfirmed) {
            return Ok(());
        }
        for (rank, id) in asked {
            let over = self.wait(rank, |state| Ok(state.core.flights.is_complete(id).then_some(())));
            let flight = self.with(|state| state.core.flights.remove(id));
            none_if_lost(over)?;
            let Some(Flight { outcome: Some(outcome), bytes, .. }) = flight else { continue };
            if none_if_lost(outcome)?.is_some() {
                self.part.gate_answer(&bytes);
            }
        }
        Ok(())
    }
}

fn none_if_lost<T>(outcome: Result<T>) -> Result<Option<T>> {
    match outcome {
        Err(FabricError::PeerLost { .. }) => Ok(None),
        other => other.map(Some),
    }
}

impl Cluster {
    /// Returns the barrier unit of this node, which executes all gates of its ranks.
    fn unit(&self) -> Result<&dyn BarrierUnit> {
        self.below.provider().gates().ok_or(FabricError::Unsupported { feature: &"a barrier unit" })
    }
}

impl BarrierUnit for Cluster {
    fn limits(&self) -> BarrierLimits {
        self.unit().map_or(BarrierLimits::NONE, |unit| unit.limits())
    }

    fn take(&self, relays: usize) -> Result<Vec<GateId>> {
        // Room is made when destinations on other nodes have read earlier values.
        self.net.look();
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
        let unit = self.unit()?;
        let over = || match unit.test(gate, deps)? {
            Progress::NotCompleted => Ok(None),
            completed => Ok(Some(completed)),
        };
        if let Some(completed) = self.net.find(over)? {
            return Ok(completed);
        }
        // A broken network can't send the updates of this rank's gates.
        self.net.lock().core.is_whole().map(|()| Progress::NotCompleted)
    }

    fn poll(
        &self,
        wait_state: &mut WaitState,
        gate: GateId,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<Option<Values>>> {
        self.net.poll_while_waiting();
        match self.unit()?.poll(wait_state, gate, deps, cx) {
            Poll::Pending => {
                self.net.lock().core.is_whole().map_or_else(|error| Poll::Ready(Err(error)), |()| Poll::Pending)
            }
            ready => {
                self.net.progress.found();
                ready
            }
        }
    }

    fn end_wait(&self, wait_state: &mut WaitState) {
        if let Ok(unit) = self.unit() {
            unit.end_wait(wait_state);
        }
    }
}
