//! Active target for some members: post, start, complete, wait.
//!
//! For each pair of members there are two words. *Posted*, at the origin: the target sets it when
//! it exposes its memory, and the origin clears it when it starts. *Completed*, at the target: the
//! origin sets it when it has flushed its operations, and the target clears it when all origins
//! have set it. Each word is set only after the other side has cleared it, which the other word
//! shows, so no put of one epoch takes effect in the next.

use super::{
    Window,
    core::{Core, Word},
    epochs::{EpochKind, OpenEpoch},
    error::{WindowError, WindowResult},
    locked,
    target::Target,
};
use crate::AccessLock;
use core::{fmt, future::Future, marker::PhantomData, mem};
use rdma_fabric::{Deps, FabricError, Pod, Rank, op::Put, provider::Boxed};
use std::sync::Arc;

/// The way in which the origins of an exposure are notified.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    /// By a word in their own memory.
    Notified,
    /// By other means (`MPI_MODE_NOCHECK`).
    Known,
}

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

/// This rank's own memory, exposed to some members between post and wait.
///
/// Dropping it does not end the exposure; the next [`Window::post`] waits for its end first.
#[must_use = "wait for the end of the exposure"]
pub struct Exposure<'w, T: Pod> {
    core: &'w Arc<Core>,
    element: PhantomData<fn() -> T>,
}

impl<T: Pod> fmt::Debug for StartEpoch<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "StartEpoch({:?})", self.targets)
    }
}

impl<T: Pod> fmt::Debug for Exposure<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Exposure({:?})", locked(&self.core.exposed))
    }
}

impl<T: Pod, L: AccessLock> Window<T, L> {
    /// Exposes this rank's own memory to `origins` (`MPI_Win_post`). This rank's earlier writes to
    /// it are visible to them after they have started.
    ///
    /// If an earlier exposure was not waited for, this waits for it first. If the future is
    /// dropped, origins that have been notified may start, and the next post waits for them.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] between fences, or while another task of this rank posts or waits
    /// for the end of an exposure; [`FabricError::NotInGroup`], [`WindowError::TooManyMembers`],
    /// without notifying any origin; [`FabricError::PeerLost`].
    pub async fn post(&self, origins: &[Rank]) -> WindowResult<Exposure<'_, T>> {
        self.core.expose(origins, Check::Notified).await?;
        Ok(Exposure { core: &self.core, element: PhantomData })
    }

    /// Exposes this rank's own memory to `origins` without notifying them (`MPI_MODE_NOCHECK`): the
    /// program notifies them by other means, and they use [`Window::start_no_check`].
    ///
    /// # Errors
    /// As [`Window::post`].
    pub async fn post_no_check(&self, origins: &[Rank]) -> WindowResult<Exposure<'_, T>> {
        self.core.expose(origins, Check::Known).await?;
        Ok(Exposure { core: &self.core, element: PhantomData })
    }

    /// Starts an epoch of the memory of `targets` when all of them have posted (`MPI_Win_start`).
    /// Dropping the future leaves no trace.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`]; [`FabricError::NotInGroup`], [`WindowError::TooManyMembers`];
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`] for a target that has not posted.
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

/// Returns `ranks` sorted and without duplicates, if all are members.
fn distinct(core: &Core, ranks: &[Rank]) -> WindowResult<Vec<Rank>> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.iter().try_for_each(|rank| core.words.number(*rank).map(drop))?;
    Ok(ranks)
}

impl Core {
    /// Exposes this rank's memory.
    fn expose<'a>(&'a self, origins: &'a [Rank], check: Check) -> Boxed<'a, WindowResult<()>> {
        Box::pin(async move {
            let origins = distinct(self, origins)?;
            let _alone = self.open.begin(EpochKind::Wait, false)?;
            self.last_exposure_over().await?;
            let mut open = Some(self.open.begin(EpochKind::Exposure, false)?);
            let me = self.words.number(self.fabric.rank())?;
            for origin in origins {
                if check == Check::Notified {
                    self.set(origin, Word::Posted(me)).await?;
                }
                locked(&self.exposed).push(origin);
                // From now on this rank has an origin to wait for, even if this future is dropped.
                open.take().into_iter().for_each(OpenEpoch::keep);
            }
            Ok(())
        })
    }

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

    async fn set(&self, rank: Rank, word: Word) -> rdma_fabric::Result<()> {
        let word = self.words.theirs(&self.fabric, rank, word)?.as_span();
        self.fabric.post(Put { to: &word, from: [1u64], notice: None }).await.map(drop)
    }

    fn clear(&self, word: Word) -> rdma_fabric::Result<()> {
        self.fabric.store(&self.words.own(&self.fabric, word)?, 0)
    }

    /// Ends the exposure if no origin is left.
    fn exposed_to_nobody(&self) {
        if locked(&self.exposed).is_empty() {
            self.open.end(EpochKind::Exposure);
        }
    }

    /// Waits until all origins that were notified of the exposure have completed. Dropping the
    /// future changes nothing.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] if another task of this rank waits for that; those of the origins.
    fn exposure_over(&self) -> Boxed<'_, WindowResult<()>> {
        Box::pin(async move {
            let _alone = self.open.begin(EpochKind::Wait, false)?;
            self.last_exposure_over().await
        })
    }

    /// Waits like [`Core::exposure_over`], for a caller that ensures that no other task does.
    fn last_exposure_over(&self) -> Boxed<'_, WindowResult<()>> {
        Box::pin(async move {
            let origins = locked(&self.exposed).clone();
            for origin in &origins {
                let word = self.words.own(&self.fabric, Word::Completed(self.words.number(*origin)?))?;
                let set = self.fabric.wait_until(&word, Deps::One(*origin), |set| set == 1).await;
                if let Err(error) = set {
                    // An origin that is lost, or has left, will not complete.
                    if matches!(error, FabricError::PeerLost { .. } | FabricError::PeersLeft) {
                        locked(&self.exposed).retain(|other| other != origin);
                        self.exposed_to_nobody();
                    }
                    return Err(error.into());
                }
            }
            self.end_exposure(&origins)
        })
    }

    /// Ends the exposure. There are no awaits, so either all words are cleared or none.
    fn end_exposure(&self, origins: &[Rank]) -> WindowResult<()> {
        if origins.is_empty() {
            return Ok(());
        }
        for origin in origins {
            self.clear(Word::Completed(self.words.number(*origin)?))?;
        }
        locked(&self.exposed).clear();
        self.open.end(EpochKind::Exposure);
        Ok(())
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
    /// [`WindowError::NotInEpoch`]; [`FabricError::StaleRegion`], [`FabricError::PeerLost`].
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
    /// [`FabricError::PeerLost`].
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

impl<T: Pod> Exposure<'_, T> {
    /// Waits until all origins of the exposure have completed (`MPI_Win_wait`). Their operations
    /// are then visible. If the future is dropped, the exposure continues.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] while another task of this rank waits for the end;
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`] for an origin, which is removed from
    /// the exposure; the next [`Window::post`] waits for the others.
    pub fn wait(self) -> impl Future<Output = WindowResult<()>> {
        self.core.exposure_over()
    }

    /// Ends the exposure if all origins have completed, and returns whether it has ended
    /// (`MPI_Win_test`). Never waits.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] while another task of this rank waits for the end;
    /// [`FabricError::StaleRegion`].
    pub fn test(&mut self) -> WindowResult<bool> {
        let _alone = self.core.open.begin(EpochKind::Wait, false)?;
        let origins = locked(&self.core.exposed).clone();
        for origin in &origins {
            let word = Word::Completed(self.core.words.number(*origin)?);
            if self.core.fabric.load(&self.core.words.own(&self.core.fabric, word)?)? != 1 {
                return Ok(false);
            }
        }
        self.core.end_exposure(&origins)?;
        Ok(true)
    }
}
