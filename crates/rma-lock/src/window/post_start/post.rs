//! The target's part: post and wait.

use super::{Check, distinct};
use crate::{
    AccessLock,
    window::{
        Window,
        core::{Core, Word},
        epochs::{EpochKind, OpenEpoch},
        error::WindowResult,
        locked,
    },
};
use core::{fmt, future::Future, marker::PhantomData};
use rdma_fabric::{Deps, FabricError, Pod, Rank, provider::Boxed};
use std::sync::Arc;

/// This rank's own memory, exposed to some members between post and wait.
///
/// Dropping it does not end the exposure; the next [`Window::post`] waits for its end first.
#[must_use = "wait for the end of the exposure"]
pub struct Exposure<'w, T: Pod> {
    core: &'w Arc<Core>,
    element: PhantomData<fn() -> T>,
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
    /// [`crate::WindowError::EpochOpen`] between fences, or while another task of this rank posts or waits
    /// for the end of an exposure; [`FabricError::NotInGroup`], [`crate::WindowError::TooManyMembers`],
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
    /// [`crate::WindowError::EpochOpen`] if another task of this rank waits for that; those of the origins.
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
}

impl<T: Pod> Exposure<'_, T> {
    /// Waits until all origins of the exposure have completed (`MPI_Win_wait`). Their operations
    /// are then visible. If the future is dropped, the exposure continues.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`] while another task of this rank waits for the end;
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`] for an origin, which is removed from
    /// the exposure; the next [`Window::post`] waits for the others.
    pub fn wait(self) -> impl Future<Output = WindowResult<()>> {
        self.core.exposure_over()
    }

    /// Ends the exposure if all origins have completed, and returns whether it has ended
    /// (`MPI_Win_test`). Never waits.
    ///
    /// # Errors
    /// [`crate::WindowError::EpochOpen`] while another task of this rank waits for the end;
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
