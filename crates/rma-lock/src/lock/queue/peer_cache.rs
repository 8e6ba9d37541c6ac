//! A cache of the words of other ranks' nodes, resolved once: resolving a word takes half as long
//! as a hand-over.

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

/// Created on the first access to another rank's node; the words of each rank on the first access
/// to that rank.
#[derive(Default)]
pub(super) struct PeerCache(OnceLock<Box<[OnceLock<Words>]>>);

impl fmt::Debug for PeerCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ranks = self.0.get().into_iter().flatten().enumerate();
        ranks.filter(|(_, words)| words.get().is_some()).try_for_each(|(rank, _)| write!(f, ", met rank {rank}"))
    }
}

impl Queue {
    /// Returns a word of any rank's node from the cache. For ranks that are accessed repeatedly;
    /// [`Queue::node`] does not cache.
    #[inline]
    pub(crate) fn peer_cache(&self, id: NodeId, part: NodeWord) -> Result<&RemoteWord<u64>, FabricError> {
        let ranks = self.peer_cache.0.get_or_init(|| (0..self.fabric.ranks()).map(|_| OnceLock::new()).collect());
        let of_rank = &ranks[id.rank().index()];
        let words = match of_rank.get() {
            Some(words) => words,
            None => self.resolve(id, of_rank)?,
        };
        Ok(&words[layout::index(id.slot(), part)])
    }

    #[cold]
    fn resolve<'a>(&self, id: NodeId, of_rank: &'a OnceLock<Words>) -> Result<&'a [RemoteWord<u64>], FabricError> {
        let words = self.node_words(id.rank(), |addr| self.fabric.remote_word(addr))?;
        Ok(of_rank.get_or_init(|| words))
    }
}
