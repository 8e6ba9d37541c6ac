//! Gates whose wires lead to other nodes: their news, as bytes that whoever connects nodes carries.

mod bytes;

use super::Part;
use crate::shm::gates::far::News;
pub(super) use bytes::bytes_of;
use bytes::news_of;
use rdma_fabric::{Rank, Result};

impl Part {
    /// The most bytes of a gate's news.
    pub const GATE_BYTES: usize = bytes::MOST;

    /// Sets who passes on what ranks of other nodes must know of gates of this node. Both are called by
    /// any thread of the rank. The first counts.
    ///
    /// `tell` passes on news to a rank, which then calls [`Part::gate`]: late and in any order if need
    /// be, but all of them. `confirm` passes on the news of gates that are being set, and returns when
    /// each of these ranks that is not lost has called [`Part::gate_set`] with them, and this one
    /// [`Part::gate_answer`] with what that has returned.
    pub fn on_gates(
        &self,
        tell: impl Fn(Rank, Vec<u8>) + Send + Sync + 'static,
        confirm: impl Fn(Vec<(Rank, Vec<u8>)>) -> Result<()> + Send + Sync + 'static,
    ) {
        if let Some(elsewhere) = self.endpoint.job().elsewhere() {
            elsewhere.set_gates(Box::new(tell), Box::new(confirm));
        }
    }

    /// Notes news of a gate of another node, and executes the gates of this one that can fire now.
    /// Bytes that are no news have no effect.
    pub fn gate(&self, news: &[u8]) {
        if let Some(news) = self.read(news) {
            self.endpoint.hear_of_gate(&news);
        }
    }

    /// Notes news of a gate of another node that is being set. Returns, for their sender, those of the
    /// gate that they are for; nothing if there is no such gate.
    pub fn gate_set(&self, news: &[u8]) -> Vec<u8> {
        let answer = self.read(news).and_then(|news| {
            self.endpoint.hear_of_setting(&news, false);
            self.endpoint.answer_about_gate(&news)
        });
        answer.map_or_else(Vec::new, |news| bytes_of(&news))
    }

    /// Notes what [`Part::gate_set`] has returned elsewhere for news of this rank.
    pub fn gate_answer(&self, news: &[u8]) {
        if let Some(news) = self.read(news) {
            self.endpoint.hear_of_setting(&news, true);
        }
    }

    /// Returns the news that these bytes are, of a gate of another node.
    fn read(&self, bytes: &[u8]) -> Option<News> {
        news_of(bytes).filter(|news| self.endpoint.job().is_far(news.rank))
    }
}

#[cfg(test)]
mod tests;
