//! Aggregation: the blocks from the members of one node to those of another travel in one message.
//!
//! ```text
//!        node X                                       node Y
//!  members  --A-->  representative  ------B------>  representative  --C-->  members
//!           S: all that X sends to Y       R: the same, before it is distributed
//! ```
//! For each pair of nodes X -> Y, one member of X and one of Y [represent](pairs) them; the members
//! of a node take turns in representing it towards its neighbours. A member puts its blocks for Y,
//! one after the other, into the memory S of its representative (A). The representative puts all of
//! S into the memory R of the other representative (B), in one message unless the network's limit
//! requires more. The other representative puts the parts into the receivers' memory (C).
//! Representatives copy their own blocks into S and out of R themselves. Blocks between members of
//! one node, long blocks, and a block that would be alone in its message are sent directly, as
//! without aggregation.
//!
//! # Steps are channels
//! Each A, B and C is a [channel](crate::init::Channel) in one direction, like that of an edge: its
//! receiver sends READY(k) at its start, and then data may be written. In addition, B leaves only
//! when its READY *and* all A of its pair have arrived, and C when the READYs of all receivers of
//! the pair and B have. All members make their channels from their own [plan].
//!
//! # Queues
//! The arrival of data to be forwarded is credit like that of a READY: with n contributions and a
//! READY there are n NOPs before B. A, and blocks that are sent directly, are served by a first
//! group of queues, B by a second, and C by a third. So a queue depends only on starts of other
//! members, and on queues of lower stages. There are no cyclic dependencies, regardless of the
//! order of the starts, and after start no CPU is needed, not even those of the representatives.
//! But all members of a pair must have *started* (senders, both representatives, and all its
//! receivers) before any receiver obtains its part.
//!
//! # Credit of two iterations does not mix
//! `start(k+1)` of a member follows its `wait(k)`, which takes the completions of all data that it
//! forwards. For a queue of stage A, the argument in [`crate::engine`]'s program then holds: the
//! representative sends READY(k+1) after B(k) has left, for which this A(k) had to arrive. For the
//! others:
//! * *B.* A(k+1) leaves after READY(k+1) of the representative, which is after its `wait(k)`: all
//!   commands of iteration k in this queue have started. The other representative's READY(k+1)
//!   follows its `wait(k)`, so B(k) to it has arrived; by then the first SELF of iteration k has
//!   been released, and the command that early credit would release may leave in any case.
//! * *C.* B(k+1) leaves after this member's READY(k+1), so after its `wait(k)`. READY(k+1) of a
//!   receiver follows its `wait(k)`, so C(k) to it has arrived; the rest is as for B.
//!
//! So credit of iteration k+1 arrives before that of k is complete only where k's data may already
//! leave, and an iteration of T slots receives credit for T.
//!
//! # Memory
//! S is written by A(k+1) after the representative's READY(k+1), so after its `wait(k)`: B(k) has
//! been read from it. The same holds for R with C. Between start and wait, the memory into which
//! members pack and from which they unpack belongs to them. So no memory is needed twice.
//!
//! # Layout
//! In S and R, blocks are ordered by sender, then by receiver, so A is a single put of all blocks
//! that a member sends to Y. The blocks of one receiver are then apart. C combines those that are
//! at most a given number of bytes apart, including the bytes between them, which the receiver does
//! not unpack: for small blocks one put, where one put per sender would cost one command each.
//!
//! # Losses
//! The members of a pair depend on all members of the group: a loss that stops one representative
//! also stops, through it, pairs that the lost member does not belong to.
//!
//! # Source
//! The paper's future work (M. Hatanaka et al., MPI persistent neighbourhood collectives over Tofu2
//! protocol offload, §6: a process that represents its node). Three steps with one message for each
//! pair of nodes: A. Bienz, W. Gropp, L. Olson, Node aware sparse matrix-vector multiplication
//! (2019), and MPI Advance's `MPIX_Neighbor_alltoallv_init`.

mod making;
#[cfg(test)]
mod model;
mod pairs;
mod plan;

pub(crate) use making::make;

use crate::{Result, init::least};
use rdma_fabric::Group;

/// Whether the blocks between two nodes travel together. This requires that all members request it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Each block is sent to its destination separately.
    #[default]
    None,
    /// The blocks from members of a node to members of another node are sent in one message between
    /// representatives of both ([`rdma_fabric::Fabric::node`] identifies the node of a rank).
    ///
    /// For many small blocks. A block takes three steps instead of one; each end copies it once
    /// more, in start and in wait, unless it is contiguous and the member's only block between the
    /// two nodes.
    ByNode {
        /// The length in bytes above which blocks are sent separately; the minimum over all members
        /// applies.
        longest: u64,
        /// Blocks for one receiver that are at most this many bytes apart in the message are
        /// distributed by one command, including the bytes between them. The minimum over all
        /// members applies.
        gap: u64,
    },
}

impl Aggregation {
    /// Aggregates by node, blocks of up to 256 bytes, with gaps of up to 1 KiB: for Tofu2, where a
    /// command costs an engine about as much as 1000 bytes. Longer blocks are slower in every
    /// pattern listed in `docs/systems/persistent.md`, which also lists the results for shorter
    /// blocks.
    pub const fn by_node() -> Self {
        Aggregation::ByNode { longest: 256, gap: 1024 }
    }

    /// Returns the longest block that a member aggregates; 0 for none.
    pub(crate) fn longest(self) -> u64 {
        match self {
            Aggregation::None => 0,
            Aggregation::ByNode { longest, .. } => longest,
        }
    }

    /// Returns the aggregation that all members request, where all aggregate blocks, at most as
    /// long as `longest`. Collective.
    pub(crate) async fn agree(self, group: &mut Group, longest: u64) -> Result<AgreedAggregation> {
        let gap = match self {
            Aggregation::None => 0,
            Aggregation::ByNode { gap, .. } => gap,
        };
        Ok(AgreedAggregation { longest, gap: least(group, gap).await? })
    }
}

/// The aggregation that all members have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct AgreedAggregation {
    pub(super) longest: u64,
    pub(super) gap: u64,
}

impl From<AgreedAggregation> for Aggregation {
    fn from(AgreedAggregation { longest, gap }: AgreedAggregation) -> Self {
        Aggregation::ByNode { longest, gap }
    }
}
