//! Active target of all members: epochs between fences.

use super::{
    Window,
    error::{EpochKind, WindowResult},
    open::Opened,
    passive::finish_later,
    side::Core,
    target::Target,
};
use crate::AccessLock;
use core::fmt;
use rdma_fabric::{Pod, Rank};
use std::sync::Arc;

/// Between fences: each member may reach each one's memory.
///
/// Dropping it does not wait for the others; what was begun goes on in the background, and the next fence of the window completes it.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct FenceEpoch<'w, T: Pod> {
    core: &'w Arc<Core<T>>,
    _opened: Opened<'w>,
}

impl<T: Pod> fmt::Debug for FenceEpoch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FenceEpoch of {}", self.core.fabric.rank())
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// The fence that begins the first epoch (`MPI_Win_fence` with `MPI_MODE_NOPRECEDE`). Collective over the members.
    ///
    /// When it returns, every member has called it; so it may be accessed, and what they wrote to their own memory before is there.
    /// If the future is dropped, the next fence or barrier of this rank goes on with it.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::PeerLost`], [`rdma_fabric::FabricError::PeersLeft`] of a member.
    pub async fn fence(&self) -> WindowResult<FenceEpoch<'_, T>> {
        let opened = self.core.open.begin(EpochKind::Fence, false)?;
        self.core.fence().await?;
        Ok(FenceEpoch { core: &self.core, _opened: opened })
    }
}

impl<T: Pod> FenceEpoch<'_, T> {
    /// A member's memory. Cheap, but not free: keep it for several operations.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::StaleRegion`], [`rdma_fabric::FabricError::PeerLost`].
    pub fn at(&self, rank: Rank) -> WindowResult<Target<'_, T>> {
        Ok(Target::new(self.core, rank)?)
    }

    /// End this epoch and begin the next (`MPI_Win_fence`). Collective over the members.
    ///
    /// When it returns, everything that any member did in the epoch is complete and visible. If nothing was done since the last fence, nothing is
    /// flushed: the assertion `MPI_MODE_NOPRECEDE` need not be told. `MPI_MODE_NOSTORE` and `MPI_MODE_NOPUT` would save nothing.
    /// If the future is dropped, the next fence or barrier of this rank goes on with it.
    ///
    /// # Errors
    /// The first error of an operation of the epoch, with the next epoch begun all the same; [`rdma_fabric::FabricError::PeerLost`],
    /// [`rdma_fabric::FabricError::PeersLeft`] of a member.
    pub async fn fence(&mut self) -> WindowResult<()> {
        self.core.fence().await
    }

    /// The last fence (`MPI_Win_fence` with `MPI_MODE_NOSUCCEED`): no epoch follows.
    ///
    /// # Errors
    /// As [`FenceEpoch::fence`].
    pub async fn end(mut self) -> WindowResult<()> {
        self.fence().await
    }
}

impl<T: Pod> Drop for FenceEpoch<'_, T> {
    fn drop(&mut self) {
        finish_later(self.core);
    }
}
