//! What members ask for.

use crate::{
    Result,
    init::{least, least_together},
};
use rdma_fabric::Group;

/// Whether the blocks between two nodes travel together. By node only if all members wish that.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Aggregation {
    /// Each block goes to its destination by itself.
    #[default]
    None,
    /// What members of a node send to members of another node goes in one message between representatives of both ([`rdma_fabric::Fabric::node`] says who shares a node).
    ///
    /// For many small blocks. A block takes three steps instead of one; each end copies it once more, in start and in wait, unless it is contiguous
    /// and the member's only one between the two nodes.
    ByNode {
        /// Longer blocks go by themselves; in bytes, the smallest number of all members counts.
        longest: u64,
        /// Blocks for one receiver that are at most so many bytes apart in the message are dealt out by one command, with what is between them. The
        /// smallest number of all members counts.
        gap: u64,
    },
}

impl Aggregation {
    /// By node, blocks of up to 256 bytes, with gaps of up to 1 KiB, for Tofu2, where a command costs an engine about as much as 1000 bytes. Longer blocks lose
    /// in every pattern that `docs/persistent.md` has; whether shorter ones gain is told there.
    pub const fn by_node() -> Self {
        Aggregation::ByNode { longest: 256, gap: 1024 }
    }

    /// What all wish for; `None` if somebody wishes no aggregation. An error of anybody, `mine` or another's, is one of all. Collective: one agreement, and
    /// another one where all wish it.
    pub(crate) async fn agree(self, group: &mut Group, mine: Result<()>) -> Result<Option<Wish>> {
        let (longest, gap) = match self {
            Aggregation::None => (0, 0),
            Aggregation::ByNode { longest, gap } => (longest, gap),
        };
        match least_together(group, mine.map(|()| longest)).await? {
            0 => Ok(None),
            longest => Ok(Some(Wish { longest, gap: least(group, gap).await? })),
        }
    }
}

/// What all members have agreed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wish {
    pub(super) longest: u64,
    pub(super) gap: u64,
}

impl From<Wish> for Aggregation {
    fn from(Wish { longest, gap }: Wish) -> Self {
        Aggregation::ByNode { longest, gap }
    }
}
