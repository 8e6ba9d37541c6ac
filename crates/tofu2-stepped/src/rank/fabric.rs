//! A rank's fabric: its provider's parts, and what only ranks in virtual time have.

use super::{
    SteppedRank,
    regions::{Bytes, OwnRegions, RemoteRegions},
};
use crate::wire::{FabricCall, PostedOperation, Target};
use core::{num::NonZeroU64, ptr::NonNull};
use rdma_fabric::{
    Fabric, FabricError, LockedMemory, Multicasts, Region, Result,
    provider::{JobFacts, KeepAlive, Place, Posted, Token},
};
use std::sync::{Arc, Mutex};

/// The provider.
#[derive(Debug)]
pub(super) struct SteppedFabric {
    pub(super) rank: SteppedRank,
    pub(super) regions: Arc<OwnRegions>,
    pub(super) remote: Mutex<RemoteRegions>,
    /// The seal of places.
    pub(super) keep_alive: KeepAlive,
}

impl SteppedRank {
    /// Returns the fabric of this rank, for futures that [`tofu2_shm::block_on`] runs. It has no helpers and no
    /// protected memory.
    ///
    /// # Errors
    /// [`FabricError::System`] if the simulator has ended.
    pub fn fabric(&self) -> Result<Fabric> {
        let mut facts: JobFacts = self.0.fabric(FabricCall::Facts {})?;
        facts.caps.helpers = false;
        facts.caps.locked_memory = LockedMemory::None;
        facts.caps.multicasts = Multicasts::None;
        let provider = SteppedFabric {
            rank: self.clone(),
            regions: Arc::default(),
            remote: Mutex::default(),
            keep_alive: KeepAlive::new(()),
        };
        Ok(Fabric::new(self.rank(), Arc::new(facts), provider))
    }

    /// Returns the rank of a fabric; `None` for another provider's.
    pub fn of(fabric: &Fabric) -> Option<Self> {
        SteppedFabric::of(fabric).map(|provider| provider.rank.clone())
    }

    /// Registers `len` bytes of the program's memory from `start` on as a region of `fabric`. They stay
    /// where they are.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] for another provider's fabric; as
    /// [`Fabric::alloc`](rdma_fabric::Fabric::alloc); [`FabricError::System`] if the simulator may not access
    /// the memory of this process.
    ///
    /// # Safety
    /// Until the region ends, the bytes stay mapped, and the program expects other ranks to read and
    /// write them.
    #[allow(unsafe_code)]
    pub unsafe fn share(fabric: &Fabric, start: NonNull<u8>, len: usize) -> Result<Region> {
        let foreign = FabricError::Unsupported { feature: &"registering memory with another provider" };
        let SteppedFabric { rank, regions, .. } = SteppedFabric::of(fabric).ok_or(foreign)?;
        let start = start.as_ptr().expose_provenance();
        // SAFETY: the caller's promise.
        unsafe { regions.share(&rank.0, Bytes { start, len }) }
    }
}

impl SteppedFabric {
    fn of(fabric: &Fabric) -> Option<&Self> {
        let provider: &dyn core::any::Any = fabric.provider();
        provider.downcast_ref()
    }

    /// Returns a place for a request.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] for a place of another provider.
    pub(super) fn target(&self, place: &Place) -> Result<Target> {
        if place.has_keep_alive(&self.keep_alive) {
            Ok(place.into())
        } else {
            Err(FabricError::Unsupported { feature: &"a place of another provider" })
        }
    }

    pub(super) fn post(&self, call: Result<FabricCall>) -> Posted {
        match call.and_then(|call| self.rank.0.fabric(call)) {
            Ok(PostedOperation::Complete { word }) => Posted::Complete(word),
            Ok(PostedOperation::Full {}) => Posted::Full,
            Ok(PostedOperation::Pending { number }) => match NonZeroU64::new(number) {
                Some(token) => {
                    self.rank.0.deferred().posted(number);
                    Posted::Pending(Token(token))
                }
                None => Posted::Failed(FabricError::setting("reply of the simulator", "an operation without a number")),
            },
            Err(error) => Posted::Failed(error),
        }
    }
}
