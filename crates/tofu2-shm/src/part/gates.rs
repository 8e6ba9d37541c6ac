//! Gates connected to gates of other nodes: their updates, as bytes that the layer between the
//! nodes transports.

mod bytes;

use super::Part;
use crate::gates::remote::GateUpdate;
pub(super) use bytes::bytes_of;
use bytes::update_of;
use rdma_fabric::{Rank, Result};

impl Part {
    /// The maximum number of bytes of a gate's update.
    pub const GATE_BYTES: usize = bytes::MOST;

    /// Sets the functions that pass updates about gates of this node to ranks of other nodes. Both
    /// are called on any thread of the rank. Only the first call has an effect.
    ///
    /// The first function sends an update to a rank, which then calls [`Part::gate`]: possibly late
    /// and in any order, but every update must arrive. The second, `confirm`, sends the updates of
    /// gates that are being set. It returns when each of these ranks that is not lost has called
    /// [`Part::gate_set`] with its update, and this rank has called [`Part::gate_answer`] with the
    /// result.
    pub fn on_gates(
        &self,
        tell: impl Fn(Rank, Vec<u8>) + Send + Sync + 'static,
        confirm: impl Fn(Vec<(Rank, Vec<u8>)>) -> Result<()> + Send + Sync + 'static,
    ) {
        if let Some(internode) = self.endpoint.job().internode() {
            internode.set_gates(Box::new(tell), Box::new(confirm));
        }
    }

    /// Processes an update of a gate of another node, and executes the gates of this node that can
    /// fire as a result. Bytes that are not a valid update have no effect.
    pub fn gate(&self, update: &[u8]) {
        if let Some(update) = self.read(update) {
            self.endpoint.apply_gate(&update);
        }
    }

    /// Processes an update of a gate of another node that is being set. Returns, for its sender, an
    /// update of the gate that it is for; an empty vector if there is no such gate.
    pub fn gate_set(&self, update: &[u8]) -> Vec<u8> {
        let answer = self.read(update).and_then(|update| {
            self.endpoint.apply_setting(&update, false);
            self.endpoint.answer_about_gate(&update)
        });
        answer.map_or_else(Vec::new, |update| bytes_of(&update))
    }

    /// Processes the result of [`Part::gate_set`] on another node, for an update of this rank.
    pub fn gate_answer(&self, update: &[u8]) {
        if let Some(update) = self.read(update) {
            self.endpoint.apply_setting(&update, true);
        }
    }

    /// Decodes an update of a gate of another node.
    fn read(&self, bytes: &[u8]) -> Option<GateUpdate> {
        update_of(bytes).filter(|update| self.endpoint.job().is_remote(update.rank))
    }
}

#[cfg(test)]
mod tests;
