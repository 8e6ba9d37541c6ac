//! Commands of control queues that go from one node to another.

use super::Part;
pub use crate::shm::queues::far::{Cargo, FarCommand, FarReply, Obeyed};
use rdma_fabric::RegionKey;

impl Part {
    /// Sets who takes commands of this rank's control queues to ranks of other nodes: together with
    /// their bytes if these are at most `most_inline`. For each of them, [`Part::replied`] must be
    /// called some time, though not from within `carry`. The first counts; before, there are no
    /// queues for other nodes.
    ///
    /// `carry` is called on any thread of the rank, while the queue's lock is held; `work` on one
    /// that waits for replies.
    pub fn on_command(
        &self,
        most_inline: usize,
        carry: impl Fn(FarCommand, Cargo) + Send + Sync + 'static,
        work: impl Fn() + Send + Sync + 'static,
    ) {
        if let Some(elsewhere) = self.endpoint.job().elsewhere() {
            elsewhere.set_carrier(most_inline, Box::new(carry), Box::new(work));
        }
    }

    /// Carries out a command of another node in this rank's memory: `bytes` came with it, or, if it
    /// `is_long`, stay at its poster. Also executes what that releases in this node's queues.
    ///
    /// If its bytes have to be moved, [`Part::moved`] must be called afterwards.
    pub fn obey(&self, command: &FarCommand, bytes: &[u8], is_long: bool) -> Obeyed {
        self.endpoint.executor().obey(command, bytes, is_long)
    }

    /// Ends a command whose bytes had to be moved from or to this region of the rank: they have
    /// `arrived`, or never will.
    pub fn moved(&self, command: &FarCommand, region: RegionKey, arrived: bool) -> FarReply {
        self.endpoint.executor().moved(command, region, arrived)
    }

    /// Ends a command of this rank, to which its target has replied.
    pub fn replied(&self, command: &FarCommand, reply: &FarReply) {
        self.endpoint.executor().replied(command.from(), command.number(), reply);
    }
}
