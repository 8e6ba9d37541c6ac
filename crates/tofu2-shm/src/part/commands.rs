//! Commands of control queues that go from one node to another.

use super::Part;
pub use crate::queues::remote::{Executed, Payload, RemoteCommand, RemoteReply};
use rdma_fabric::RegionKey;

impl Part {
    /// Sets the function that sends commands of this rank's control queues to ranks of other nodes,
    /// together with their bytes if there are at most `most_inline`. For each command,
    /// [`Part::replied`] must be called eventually, though not from within `carry`. Only the first
    /// call has an effect; before it, there are no queues for other nodes.
    ///
    /// `carry` is called on any thread of the rank, while the queue's lock is held; `work` is
    /// called on threads that wait for replies.
    pub fn on_command(
        &self,
        most_inline: usize,
        carry: impl Fn(RemoteCommand, Payload) + Send + Sync + 'static,
        work: impl Fn() + Send + Sync + 'static,
    ) {
        if let Some(internode) = self.endpoint.job().internode() {
            internode.set_carrier(most_inline, Box::new(carry), Box::new(work));
        }
    }

    /// Executes a command of another node in this rank's memory. `bytes` came with the command, or,
    /// if it `is_long`, are still at the rank that posted it. Also executes the commands of this
    /// node's queues that this one releases.
    ///
    /// If the command's bytes have to be moved, [`Part::moved`] must be called afterwards.
    pub fn execute_remote(&self, command: &RemoteCommand, bytes: &[u8], is_long: bool) -> Executed {
        self.endpoint.executor().execute_remote(command, bytes, is_long)
    }

    /// Completes a command whose bytes had to be moved from or to this region of the rank: either
    /// they have `arrived`, or they never will.
    pub fn moved(&self, command: &RemoteCommand, region: RegionKey, arrived: bool) -> RemoteReply {
        self.endpoint.executor().moved(command, region, arrived)
    }

    /// Completes a command of this rank, to which its target has replied.
    pub fn replied(&self, command: &RemoteCommand, reply: &RemoteReply) {
        self.endpoint.executor().replied(command.from(), command.number(), reply);
    }
}
