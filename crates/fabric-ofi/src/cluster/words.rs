//! Words of other ranks, and atomics on own ones, by libfabric's atomics instead of by messages.
//!
//! A NIC's atomics are atomic against each other, not against those of a CPU. So if they are used,
//! they do all: also a rank's atomics on its own memory go through its endpoint. What its CPU loads
//! and stores is not coherent with them
//! ([`coherent_atomics`](rdma_fabric::Caps::coherent_atomics)), and nothing else may change words of
//! regions by atomics of a CPU: no rank shares the memory, and control queues, which CPUs execute,
//! refuse to.

use super::{core::State, directory::FarRegion, flight::Flight, message::WordWork, net::Net, watched::Watched};
use crate::{Endpoint, OfiError};
use rdma_fabric::{Amo, Result, provider::Place};
use std::{collections::HashMap, sync::Arc};

/// Who works on words of other ranks: loads, stores and atomics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum AtomicsBy {
    /// The target's CPU, which is asked by a message.
    #[default]
    Cpu,
    /// The network, by libfabric's atomics, those on own memory included. A node has one rank then.
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

/// Checks that an endpoint has all atomics that words need, and begins to watch own words.
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
    /// Begins work on a word of this width at an offset in a region, by libfabric. Returns its id,
    /// or `None` if there is no room.
    ///
    /// # Errors
    /// As [`State::write`].
    pub(super) fn word(
        &mut self,
        flight: Flight,
        (region, offset, width): (&Arc<FarRegion>, u64, usize),
        work: WordWork,
    ) -> Result<Option<u64>> {
        let at = region.at + offset;
        let begun = self.begin(flight, region, |link, (peer, key), id| {
            let endpoint = &mut link.endpoint;
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
    /// Returns the region of a word of this rank if atomics on it go through the network: not those
    /// on memory outside the heap, which no other rank can reach.
    pub(super) fn own_by_nic(&self, word: &Place) -> Option<Arc<FarRegion>> {
        self.watched.as_ref().filter(|_| self.part.has_resolved(word))?;
        let key = word.addr().region;
        let located = self.part.locate(key).ok()?;
        Some(Arc::new(FarRegion::new(self.id, self.me.number(), key, (located.at, located.len), located.lock)))
    }
}
