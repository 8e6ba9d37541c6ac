//! Active target of some members: post, start, complete, wait.
//!
//! For each pair of members there are two words. *Posted*, at the origin: its target sets it when it exposes its memory, the origin clears it when it
//! starts. *Completed*, at the target: its origin sets it when it has flushed what it did, the target clears it when all have. Each is set only
//! when the other side has cleared it, which it was told by the other word; so no put of one epoch lands in the next.

use super::{
    Window,
    error::{EpochKind, WindowError, WindowResult},
    locked,
    open::Opened,
    side::Core,
    target::Target,
    words::Word,
};
use crate::AccessLock;
use core::{fmt, mem};
use rdma_fabric::{Deps, FabricError, Pod, Rank, op::Put};
use std::sync::Arc;

/// Whether an epoch is awaited that its target has told of.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Check {
    Told,
    /// It is known by other means (`MPI_MODE_NOCHECK`).
    Known,
}

/// An epoch of some members' memory, between start and complete.
///
/// Dropping it completes it in the background, and tells nobody about errors.
#[must_use = "an epoch that is dropped at once allows nothing"]
pub struct StartEpoch<'w, T: Pod> {
    core: &'w Arc<Core<T>>,
    /// Sorted; those to be told that it is over.
    targets: Vec<Rank>,
    /// That it is over has been told to so many, the last ones.
    told: usize,
    _opened: Opened<'w>,
}

/// Own memory exposed to some members, between post and wait.
///
/// Dropping it does not end the exposure: the next [`Window::post`] waits for its end first.
#[must_use = "wait for the end of the exposure"]
pub struct Exposure<'w, T: Pod> {
    core: &'w Arc<Core<T>>,
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
    /// Expose own memory to `origins` (`MPI_Win_post`). What this rank wrote to it before is there when they start.
    ///
    /// An exposure that was not waited for is waited for first. If the future is dropped, those that have been told may start, and
    /// the next post waits for them.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`] between fences; [`FabricError::NotInGroup`], [`WindowError::TooManyMembers`] with nobody told;
    /// [`FabricError::PeerLost`].
    pub async fn post(&self, origins: &[Rank]) -> WindowResult<Exposure<'_, T>> {
        self.expose(origins, Check::Told).await
    }

    /// The same without telling them (`MPI_MODE_NOCHECK`): they learn of it by other means, and use [`Window::start_no_check`].
    ///
    /// # Errors
    /// As [`Window::post`].
    pub async fn post_no_check(&self, origins: &[Rank]) -> WindowResult<Exposure<'_, T>> {
        self.expose(origins, Check::Known).await
    }

    async fn expose(&self, origins: &[Rank], check: Check) -> WindowResult<Exposure<'_, T>> {
        let core = &self.core;
        let origins = distinct(core, origins)?;
        core.exposure_over().await?;
        let mut opened = Some(core.open.begin(EpochKind::Exposure, false)?);
        let me = core.words.number(core.fabric.rank())?;
        for origin in origins {
            if check == Check::Told {
                core.set(origin, Word::Posted(me)).await?;
            }
            locked(&core.exposed).push(origin);
            // From now on somebody has to be waited for, whatever becomes of this future.
            opened.take().into_iter().for_each(Opened::keep);
        }
        Ok(Exposure { core })
    }

    /// Begin an epoch of the memory of `targets` when all of them have posted (`MPI_Win_start`). Dropping the future leaves nothing.
    ///
    /// # Errors
    /// [`WindowError::EpochOpen`]; [`FabricError::NotInGroup`], [`WindowError::TooManyMembers`]; [`FabricError::PeerLost`],
    /// [`FabricError::PeersLeft`] of a target that has not posted.
    pub async fn start(&self, targets: &[Rank]) -> WindowResult<StartEpoch<'_, T>> {
        self.begin(targets, Check::Told).await
    }

    /// The same, at once (`MPI_MODE_NOCHECK`): the caller promises that all of them have called [`Window::post_no_check`].
    ///
    /// # Errors
    /// As [`Window::start`].
    pub async fn start_no_check(&self, targets: &[Rank]) -> WindowResult<StartEpoch<'_, T>> {
        self.begin(targets, Check::Known).await
    }

    async fn begin(&self, targets: &[Rank], check: Check) -> WindowResult<StartEpoch<'_, T>> {
        let core = &self.core;
        let targets = distinct(core, targets)?;
        let opened = core.open.begin(EpochKind::Start, false)?;
        if check == Check::Told {
            for target in &targets {
                let word = core.words.own(&core.fabric, Word::Posted(core.words.number(*target)?))?;
                core.fabric.wait_until(&word, Deps::One(*target), |set| set == 1).await?;
            }
            // Nothing is awaited from here on: either all are taken or none.
            for target in &targets {
                core.clear(Word::Posted(core.words.number(*target)?))?;
            }
        }
        Ok(StartEpoch { core, targets, told: 0, _opened: opened })
    }
}

/// Members, sorted, each once.
fn distinct<T: Pod>(core: &Core<T>, ranks: &[Rank]) -> WindowResult<Vec<Rank>> {
    let mut ranks = ranks.to_vec();
    ranks.sort_unstable();
    ranks.dedup();
    ranks.iter().try_for_each(|rank| core.words.number(*rank).map(drop))?;
    Ok(ranks)
}

impl<T: Pod> Core<T> {
    async fn set(&self, rank: Rank, word: Word) -> rdma_fabric::Result<()> {
        let word = self.words.theirs(&self.fabric, rank, word)?.as_span();
        self.fabric.post(Put { to: &word, from: [1u64], notice: None }).await.map(drop)
    }

    fn clear(&self, word: Word) -> rdma_fabric::Result<()> {
        self.fabric.store(&self.words.own(&self.fabric, word)?, 0)
    }

    /// If the exposure is to nobody it is over.
    fn exposed_to_nobody(&self) {
        if locked(&self.exposed).is_empty() {
            self.open.end(EpochKind::Exposure);
        }
    }

    /// Wait until all that were told of the exposure have completed. Dropped, it leaves things as they were.
    async fn exposure_over(&self) -> WindowResult<()> {
        let origins = locked(&self.exposed).clone();
        for origin in &origins {
            let word = self.words.own(&self.fabric, Word::Completed(self.words.number(*origin)?))?;
            let set = self.fabric.wait_until(&word, Deps::One(*origin), |set| set == 1).await;
            if let Err(error) = set {
                // Who is lost, or has left, will not complete.
                if matches!(error, FabricError::PeerLost { .. } | FabricError::PeersLeft) {
                    locked(&self.exposed).retain(|other| other != origin);
                    self.exposed_to_nobody();
                }
                return Err(error.into());
            }
        }
        self.end_exposure(&origins)
    }

    /// Nothing is awaited: either all are taken or none.
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

    /// Flush what was done in an epoch, and tell its targets, but for the last `told`, that it is over.
    async fn complete(&self, targets: &[Rank], told: &mut usize) -> WindowResult<()> {
        let flushed = self.flush(None).await;
        let me = self.words.number(self.fabric.rank())?;
        let mut outcome = Ok(());
        while *told < targets.len() {
            // One that is lost does not keep the others waiting.
            let set = self.set(targets[targets.len() - 1 - *told], Word::Completed(me)).await;
            *told += 1;
            outcome = outcome.and(set);
        }
        Ok(flushed.and(outcome)?)
    }
}

impl<T: Pod> StartEpoch<'_, T> {
    /// A target's memory. Cheap, but not free: keep it for several operations.
    ///
    /// # Errors
    /// [`WindowError::NotInEpoch`]; [`FabricError::StaleRegion`], [`FabricError::PeerLost`].
    pub fn at(&self, rank: Rank) -> WindowResult<Target<'_, T>> {
        if self.targets.binary_search(&rank).is_err() {
            return Err(WindowError::NotInEpoch { rank });
        }
        Ok(Target::new(self.core, rank)?)
    }

    /// End the epoch: complete everything, make it visible, and tell the targets (`MPI_Win_complete`). If the future is dropped, the rest is done in
    /// the background.
    ///
    /// # Errors
    /// The first error of an operation of the epoch, with the targets told all the same; [`FabricError::PeerLost`].
    pub async fn complete(mut self) -> WindowResult<()> {
        let core = self.core;
        let StartEpoch { targets, told, .. } = &mut self;
        core.complete(targets, told).await
    }
}

impl<T: Pod> Drop for StartEpoch<'_, T> {
    fn drop(&mut self) {
        let (targets, mut told) = (mem::take(&mut self.targets), self.told);
        if told < targets.len() {
            let owner = self.core.clone();
            self.core.fabric.detach(async move { drop(owner.complete(&targets, &mut told).await) });
        }
    }
}

impl<T: Pod> Exposure<'_, T> {
    /// Wait until everybody to whom the memory was exposed has completed (`MPI_Win_wait`). What they did is there then. If the future is
    /// dropped, the exposure goes on.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`]: of an origin, which is then not waited for any more; the next [`Window::post`]
    /// waits for the others.
    pub async fn wait(self) -> WindowResult<()> {
        self.core.exposure_over().await
    }

    /// End the exposure if everybody has completed, and tell whether it is over (`MPI_Win_test`). Never waits.
    ///
    /// # Errors
    /// [`FabricError::StaleRegion`] only.
    pub fn test(&mut self) -> WindowResult<bool> {
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
