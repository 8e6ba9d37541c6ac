//! The words of nodes that this rank has met, resolved once: resolving one takes as long as half a
//! hand-over.

use super::{
    Queue,
    layout::{self, NodeWord},
    node::NodeId,
};
use core::fmt;
use rdma_fabric::{FabricError, RemoteWord};
use std::sync::OnceLock;

/// The words of one rank's nodes.
type Words = Box<[RemoteWord<u64>]>;

/// Made when writers first meet; of each rank when it is first met.
#[derive(Default)]
pub(super) struct Met(OnceLock<Box<[OnceLock<Words>]>>);

impl fmt::Debug for Met {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks = self.0.get().into_iter().flatten().enumerate();
        ranks.filter(|(_, words)| words.get().is_some()).try_for_each(|(rank, _)| write!(f, ", met rank {rank}"))
    }
}

impl Queue {
    /// Returns a word of any rank's node. For ranks that are met again and again:
    /// [`Queue::node`] keeps nothing.
    #[inline]
    pub(crate) fn met(&self, id: NodeId, part: NodeWord) -> Result<&RemoteWord<u64>, FabricError> {
        let ranks = self.met.0.get_or_init(|| (0..self.fabric.ranks()).map(|_| OnceLock::new()).collect());
        let of_rank = &ranks[id.rank().index()];
        let words = match of_rank.get() {
            Some(words) => words,
            None => self.meet(id, of_rank)?,
        };
        Ok(&words[layout::index(id.slot(), part)])
    }

    #[cold]
    fn meet<'a>(&self, id: NodeId, of_rank: &'a OnceLock<Words>) -> Result<&'a [RemoteWord<u64>], FabricError> {
        let words = self.node_words(id.rank(), |addr| self.fabric.remote_word(addr))?;
        Ok(of_rank.get_or_init(|| words))
    }
}
