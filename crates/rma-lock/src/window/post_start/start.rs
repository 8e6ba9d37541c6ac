//! The origins' part: start and complete.

use super::{Check, distinct};
use crate::{
    AccessLock,
    window::{
        Window,
        core::{Core, Word},
        epochs::{EpochKind, OpenEpoch},
        error::{WindowError, WindowResult},
        target::Target,
    },
};
use core::{fmt, marker::PhantomData, mem};
use rdma_fabric::{Deps, Pod, Rank, provider::Boxed};
use std::sync::Arc;

/// An epoch of some members' memory, between start and complete.
///
/// Dropping it completes the epoch in the background, without reporting errors.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct StartEpoch<'w, T: Pod> {
    core: &'w Arc<Core>,
    element: PhantomData<fn() -> T>,
    /// Sorted; the ranks to notify of the end of the epoch.
    targets: Vec<Rank>,
    /// The number of targets, from the end, that have been notified of the end of the epoch.
    notified: usize,
    _open: OpenEpoch<'w>,
}

impl<T: Pod> fmt::Debug for StartEpoch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartEpoch({:?})", self.targets)
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Starts an epoch of the memory of `targets` when all of them have posted (`MPI_Win_start`).
    /// Dropping the future leaves no trace.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`]; [`rdma_fabric::FabricError::NotInGroup`], [`WindowError::TooManyMembers`];
    /// [`rdma_fabric::FabricError::PeerLost`], [`rdma_fabric::FabricError::PeersLeft`] for a target that has not posted.
    pub async fn start(&self, targets: &[Rank]) -> WindowResult<StartEpoch<'_, T>> {
        let (targets, open) = self.core.start(targets, Check::Notified).await?;
        Ok(StartEpoch { core: &self.core, element: PhantomData, targets, notified: 0, _open: open })
    }

    /// Starts an epoch of the memory of `targets` immediately (`MPI_MODE_NOCHECK`): the caller
    /// guarantees that all of them have called [`Window::post_no_check`].
    ///
    /// # Errors
    /// As [`Window::start`].
    pub async fn start_no_check(&self, targets: &[Rank]) -> WindowResult<StartEpoch<'_, T>> {
        let (targets, open) = self.core.start(targets, Check::Known).await?;
        Ok(StartEpoch { core: &self.core, element: PhantomData, targets, notified: 0, _open: open })
    }
}

impl Core {
    /// Starts an epoch of the memory of `targets`, and returns them sorted.
    fn start<'w: 'a, 'a>(
        &'w self,
        targets: &'a [Rank],
        check: Check,
    ) -> Boxed<'a, WindowResult<(Vec<Rank>, OpenEpoch<'w>)>> {
        Box::pin(async move {
            let targets = distinct(self, targets)?;
            let open = self.open.begin(EpochKind::Start, false)?;
            if check == Check::Notified {
                for target in &targets {
                    let word = self.words.own(&self.fabric, Word::Posted(self.words.number(*target)?))?;
                    self.fabric.wait_until(&word, Deps::One(*target), |set| set == 1).await?;
                }
                // There are no awaits from here on, so either all are taken or none.
                for target in &targets {
                    self.clear(Word::Posted(self.words.number(*target)?))?;
                }
            }
            Ok((targets, open))
        })
    }

    /// Flushes the operations of an epoch, and notifies its targets, except for the last
    /// `notified`, of the end of the epoch.
    fn complete<'a>(&'a self, targets: &'a [Rank], notified: &'a mut usize) -> Boxed<'a, WindowResult<()>> {
        Box::pin(async move {
            let flushed = self.flush(None).await;
            let me = self.words.number(self.fabric.rank())?;
            let mut outcome = Ok(());
            while *notified < targets.len() {
                // A lost target does not delay the others.
                let set = self.set(targets[targets.len() - 1 - *notified], Word::Completed(me)).await;
                *notified += 1;
                outcome = outcome.and(set);
            }
            Ok(flushed.and(outcome)?)
        })
    }
}

impl<T: Pod> StartEpoch<'_, T> {
    /// Returns a target's memory. Cheap, but not free: keep it for several operations.
    ///
    /// # Errors
    /// [`WindowError::NotInEpoch`]; [`rdma_fabric::FabricError::StaleRegion`], [`rdma_fabric::FabricError::PeerLost`].
    pub fn at(&self, rank: Rank) -> WindowResult<Target<'_, T>> {
        if self.targets.binary_search(&rank).is_err() {
            return Err(WindowError::NotInEpoch { rank });
        }
        Ok(Target::new(self.core, rank)?)
    }

    /// Ends the epoch: completes all operations, makes them visible, and notifies the targets
    /// (`MPI_Win_complete`). If the future is dropped, the rest is done in the background.
    ///
    /// # Errors
    /// The first error of an operation of the epoch, in which case the targets are still notified;
    /// [`rdma_fabric::FabricError::PeerLost`].
    pub async fn complete(mut self) -> WindowResult<()> {
        let core = self.core;
        let StartEpoch { targets, notified, .. } = &mut self;
        core.complete(targets, notified).await
    }
}

impl<T: Pod> Drop for StartEpoch<'_, T> {
    fn drop(&mut self) {
        let (targets, mut notified) = (mem::take(&mut self.targets), self.notified);
        if notified < targets.len() {
            let owner = self.core.clone();
            self.core.fabric.detach(async move { drop(owner.complete(&targets, &mut notified).await) });
        }
    }
}
