//! Active target for all members: epochs between fences.

use super::{
    Window,
    core::{Core, Word, Words, rounds},
    epochs::{EpochKind, OpenEpoch},
    error::WindowResult,
    locked,
    target::Target,
};
use crate::AccessLock;
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Fabric, Pod, Rank, Result, op::Put, provider::Boxed};
use std::sync::{Arc, Mutex};

/// An epoch between fences, in which each member may access every member's memory.
///
/// Dropping it does not wait for the others; operations in flight continue in the background, and
/// the next fence of the window completes them.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct FenceEpoch<'w, T: Pod> {
    core: &'w Arc<Core>,
    element: PhantomData<fn() -> T>,
    _open: OpenEpoch<'w>,
}

impl<T: Pod> fmt::Debug for FenceEpoch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "FenceEpoch of {}", self.core.fabric.rank())
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Starts the first epoch by a fence (`MPI_Win_fence` with `MPI_MODE_NOPRECEDE`). Collective
    /// over the members.
    ///
    /// When it returns, every member has called it. So the members' memory may be accessed, and
    /// their earlier writes to it are visible. If the future is dropped, the next fence or barrier
    /// of this rank continues it.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`]; [`rdma_fabric::FabricError::PeerLost`],
    /// [`rdma_fabric::FabricError::PeersLeft`] for a member.
    pub async fn fence(&self) -> WindowResult<FenceEpoch<'_, T>> {
        let open = self.core.open.begin(EpochKind::Fence, false)?;
        self.core.fence().await?;
        Ok(FenceEpoch { core: &self.core, element: PhantomData, _open: open })
    }
}

impl<T: Pod> FenceEpoch<'_, T> {
    /// Returns a member's memory. Cheap, but not free: keep it for several operations.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::NotInGroup`], [`rdma_fabric::FabricError::StaleRegion`],
    /// [`rdma_fabric::FabricError::PeerLost`].
    pub fn at(&self, rank: Rank) -> WindowResult<Target<'_, T>> {
        Ok(Target::new(self.core, rank)?)
    }

    /// Ends this epoch and starts the next (`MPI_Win_fence`). Collective over the members.
    ///
    /// When it returns, all operations of all members in the epoch are complete and visible. If
    /// there were no operations since the last fence, nothing is flushed, so the assertion
    /// `MPI_MODE_NOPRECEDE` is not needed. `MPI_MODE_NOSTORE` and `MPI_MODE_NOPUT` would save
    /// nothing. If the future is dropped, the next fence or barrier of this rank continues it.
    ///
    /// # Errors
    /// The first error of an operation of the epoch, in which case the next epoch has still been
    /// started; [`rdma_fabric::FabricError::PeerLost`], [`rdma_fabric::FabricError::PeersLeft`] for
    /// a member.
    pub fn fence(&mut self) -> impl Future<Output = WindowResult<()>> {
        self.core.fence()
    }

    /// Ends the last epoch by a fence (`MPI_Win_fence` with `MPI_MODE_NOSUCCEED`): no epoch
    /// follows.
    ///
    /// # Errors
    /// As [`FenceEpoch::fence`].
    pub async fn end(mut self) -> WindowResult<()> {
        self.fence().await
    }
}

impl<T: Pod> Drop for FenceEpoch<'_, T> {
    fn drop(&mut self) {
        self.core.finish_slow();
    }
}

/// The progress of this rank.
#[derive(Clone, Copy, Debug, Default)]
struct State {
    /// The number of barriers started.
    number: u64,
    /// The round of the last barrier, if it is not complete.
    round: Option<u32>,
    /// Whether the partner of this round was notified.
    notified: bool,
}

/// The barrier of all members of a window: a dissemination barrier of one word per round, which can
/// be dropped and continued.
#[derive(Debug, Default)]
pub(super) struct MemberBarrier(Mutex<State>);

impl MemberBarrier {
    /// Waits until every member has arrived. If the future is dropped, the next call continues the
    /// same barrier.
    pub(super) fn meet<'a>(&'a self, fabric: &'a Fabric, words: &'a Words) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let members = words.memory().members();
            let me = words.memory().number(fabric.rank()).unwrap_or(0);
            let mut at = {
                let mut state = locked(&self.0);
                if state.round.is_none() {
                    *state = State { number: state.number + 1, round: Some(0), notified: false };
                }
                *state
            };
            for round in at.round.unwrap_or(0)..rounds(members) {
                if !at.notified {
                    let next = words.memory().member((me + (1 << round)) % members)?;
                    let word = words.theirs(fabric, next, Word::Reached(round))?.as_span();
                    // Puts are not ordered among themselves: the put of the previous barrier must
                    // not overwrite this one.
                    fabric.flush(next).await?;
                    drop(fabric.post(Put { to: &word, from: [at.number], notice: None }).await?);
                    locked(&self.0).notified = true;
                }
                let mine = words.own(fabric, Word::Reached(round))?;
                fabric.wait_until(&mine, words.memory().deps(), |reached| reached >= at.number).await?;
                at.notified = false;
                *locked(&self.0) = State { round: Some(round + 1), ..at };
            }
            locked(&self.0).round = None;
            Ok(())
        })
    }
}
