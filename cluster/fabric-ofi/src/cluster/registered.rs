//! The registered pieces of this rank's heap.
//!
//! A piece is registered before the first region in it exists, so a rank registers, and a NIC pins,
//! little more than the program has allocated. It stays registered until the endpoint is closed.

use super::{
    heap,
    keys::{RankKeys, RemotePiece},
    pieces::Pieces,
};
use crate::{Domain, OfiError, Region};
use core::ops::Range;
use rdma_fabric::{FabricError, Rank, error::OutOfMachineMemory};
use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};
use tofu2_shm::part::Heap;

/// The registered pieces, by the offsets of their first bytes.
type Registered = BTreeMap<usize, Arc<Region>>;

/// A heap of which pieces are registered.
#[derive(Debug)]
pub(super) struct RegisteredHeap {
    domain: Domain,
    heap: Heap,
    pieces: Pieces,
    /// Locked while pieces are being registered, which takes time. Acquired before `registered`.
    growing: Mutex<()>,
    registered: Mutex<Registered>,
}

impl RegisteredHeap {
    pub(super) fn new(domain: Domain, heap: Heap) -> Self {
        let pieces = Pieces::new(heap.len());
        RegisteredHeap { domain, heap, pieces, growing: Mutex::default(), registered: Mutex::default() }
    }

    pub(super) fn len(&self) -> usize {
        self.heap.len()
    }

    fn registered(&self) -> MutexGuard<'_, Registered> {
        self.registered.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn growing(&self) -> MutexGuard<'_, ()> {
        self.growing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers the pieces that contain any of these bytes, if the system allows to pin all of
    /// them.
    ///
    /// # Errors
    /// [`FabricError::OutOfMachineMemory`] if it does not, [`FabricError::System`].
    pub(super) fn cover(&self, bytes: Range<usize>) -> rdma_fabric::Result<()> {
        let _growing = self.growing();
        let missing: Vec<Range<usize>> = {
            let registered = self.registered();
            self.pieces.with_any(bytes).filter(|piece| !registered.contains_key(&piece.start)).collect()
        };
        self.register(missing).map_err(|error| network(&error))
    }

    /// Registers pieces that are not registered.
    fn register(&self, missing: Vec<Range<usize>>) -> crate::Result<()> {
        self.domain.may_pin(missing.iter().map(Range::len).sum())?;
        for piece in missing {
            let start = piece.start;
            let region = heap::register(&self.domain, &self.heap, piece)?;
            self.registered().insert(start, Arc::new(region));
        }
        Ok(())
    }

    /// Registers all registered pieces under other keys. The endpoint that used them is closed.
    ///
    /// # Errors
    /// Those of [`Domain::region_over`].
    pub(super) fn renew(&self) -> crate::Result<()> {
        let _growing = self.growing();
        let before = core::mem::take(&mut *self.registered());
        let starts: Vec<usize> = before.keys().copied().collect();
        drop(before);
        self.register(starts.into_iter().map(|start| self.pieces.of(start)).collect())
    }

    /// Returns the registered piece that contains a byte, and the offset of its first byte.
    pub(super) fn piece(&self, at: usize) -> Option<(usize, Arc<Region>)> {
        let registered = self.registered();
        let (start, region) = registered.range(..=at).next_back()?;
        (at - start < region.size()).then(|| (*start, region.clone()))
    }

    /// Returns the keys of the registered pieces that contain any of these bytes, for the endpoint
    /// with this door.
    pub(super) fn keys(&self, door: u64, bytes: Range<usize>) -> RankKeys {
        let registered = self.registered();
        let key = |piece: Range<usize>| registered.get(&piece.start).map(|region| (piece.start, region.key()));
        let pieces = self.pieces.with_any(bytes).filter_map(key);
        RankKeys::new(door, pieces.map(|(start, key)| RemotePiece::new(start as u64, key)).collect())
    }

    /// Returns the number of registered bytes.
    pub(super) fn registered_bytes(&self) -> usize {
        self.registered().values().map(|region| region.size()).sum()
    }
}

/// Converts an error of libfabric to a [`FabricError`].
pub(super) fn network(error: &OfiError) -> FabricError {
    match error {
        &OfiError::PinLimit { rank, bytes: requested, pinned, limit } => FabricError::from(OutOfMachineMemory {
            rank: Rank::new(rank.unwrap_or(0)),
            requested,
            ranks: 1,
            available: limit.saturating_sub(pinned),
            limit: format!("the limit of {limit} bytes of pinned memory (`ulimit -l`)").into(),
        }),
        OfiError::Call { code, .. } => FabricError::System { call: &"libfabric", errno: *code },
        _ => FabricError::System { call: &"libfabric", errno: 0 },
    }
}
