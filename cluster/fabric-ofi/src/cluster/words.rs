//! Access to words of other ranks, and atomics on this rank's words, through libfabric's atomics
//! instead of messages.
//!
//! A NIC's atomics are atomic with respect to each other, but not to atomics of a CPU. If they are
//! used, they are therefore used for all atomics, including those of a rank on its own memory,
//! which go through its endpoint. Loads and stores by its CPU are not coherent with them
//! ([`coherent_atomics`](rdma_fabric::Caps::coherent_atomics)). No atomic of a CPU may change words
//! of regions: no two ranks share memory, and control queues, which CPUs execute, refuse atomics.

use super::{core::State, directory::RemoteRegion, flight::Flight, message::WordWork, net::Net, watched::Watched};
use crate::{Endpoint, OfiError};
use rdma_fabric::{Amo, Result, provider::Place};
use std::{collections::HashMap, sync::Arc};

/// Selects how words of other ranks are loaded, stored and changed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtomicsBy {
    /// By the target's CPU, which receives a message.
    #[default]
    Cpu,
    /// By the network, with libfabric's atomics, also for own memory. Requires one rank per node.
    Nic,
}

/// Checks that no two ranks share memory.
pub(super) fn one_rank_a_node(nodes: &[u32]) -> crate::Result<()> {
    let mut ranks = HashMap::new();
    for (rank, node) in (0..).zip(nodes) {
        if let Some(first) = ranks.insert(*node, rank) {
            return Err(OfiError::SharedNode { node: *node, ranks: [first, rank] });
        }
    }
    Ok(())
}

/// Checks that an endpoint has all atomics that words need, and returns the set of watched words.
pub(super) fn watched(endpoint: &Endpoint) -> crate::Result<Watched> {
    match endpoint.atomics().lacks() {
        None => Ok(Watched::default()),
        Some((kind, width)) => {
            let provider = endpoint.domain().provider().to_owned();
            Err(OfiError::NoAtomic { provider, kind, width })
        }
    }
}

impl State {
    /// Starts a libfabric operation on a word of this width at an offset in a region. Returns its
    /// id, or `None` if there is no room.
    ///
    /// # Errors
    /// As [`State::write`].
    pub(super) fn word(
        &mut self,
        flight: Flight,
        (region, offset, width): (&Arc<RemoteRegion>, u64, usize),
        work: WordWork,
    ) -> Result<Option<u64>> {
        let at = region.at + offset;
        let begun = self.begin(flight, region, at, |link, (peer, piece), id| {
            let (endpoint, key, at) = (&mut link.endpoint, piece.key, piece.offset(at));
            let posted = match work {
                WordWork::Load => endpoint.load_word(peer, key, at, width, id),
                WordWork::Store(value) => endpoint.change(peer, key, at, width, Amo::Swap(value), id),
                WordWork::Change(amo) => endpoint.change(peer, key, at, width, amo, id),
            };
            Ok(posted?.then_some(None))
        })?;
        self.core.counters.atomics += u64::from(begun.is_some());
        Ok(begun)
    }
}

impl Net {
    /// Returns the region of a word of this rank if atomics on it go through the network. Those on
    /// memory outside the heap, which no other rank can reach, do not.
    pub(super) fn own_by_nic(&self, word: &Place) -> Option<Arc<RemoteRegion>> {
        self.watched.as_ref().filter(|_| self.part.has_resolved(word))?;
        let key = word.addr().region;
        let located = self.part.locate(key).ok()?;
        Some(Arc::new(RemoteRegion::new(self.id, self.me.number(), key, (located.at, located.len), located.lock)))
    }
}
