//! Steps that are announced before they are posted.

use super::{Lane, Queue, Step};
use crate::posting::{NotOver, atomic_now};
use rdma_fabric::{Amo, FabricError, Handle, Refused, RemoteWord};

impl Queue {
    #[inline(always)]
    pub(crate) fn publish(&self, step: Step) -> Result<(), FabricError> {
        self.publish_in(self.published.lane(), step)
    }

    #[inline(always)]
    pub(crate) fn publish_in(&self, lane: Lane, step: Step) -> Result<(), FabricError> {
        self.published.step(&self.fabric, &self.memory, lane, step)
    }

    /// An atomic that is over at once.
    #[inline(always)]
    pub(crate) fn atomic_now(&self, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<u64, NotOver> {
        atomic_now(&self.fabric, word, amo)
    }

    /// The same, announced. If it was not posted the announcement is taken back.
    #[inline(always)]
    pub(crate) fn announced_now(
        &self,
        lane: Lane,
        step: Step,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<u64, NotOver> {
        if self.publish_in(lane, step).is_err() {
            return Err(None);
        }
        match self.atomic_now(word, amo) {
            Ok(old) => Ok(old),
            Err(not_over) => {
                if not_over.is_none() {
                    let _ = self.publish_in(lane, step.undone());
                }
                Err(not_over)
            }
        }
    }

    /// Announce a step and post its atomic, waiting for room. Until it is posted, dropping this owes nothing.
    pub(crate) async fn post(
        &self,
        step: Step,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<Handle<u64>, FabricError> {
        match self.try_post(self.published.lane(), step, word, amo) {
            Ok(handle) => Ok(handle),
            Err(Refused::Failed(error, ())) => Err(error),
            Err(Refused::Full(())) => Box::pin(self.post_later(step, word, amo)).await,
        }
    }

    async fn post_later(&self, step: Step, word: &RemoteWord<u64>, amo: Amo<u64>) -> Result<Handle<u64>, FabricError> {
        loop {
            self.fabric.room(None).await?;
            match self.try_post(self.published.lane(), step, word, amo) {
                Ok(handle) => return Ok(handle),
                Err(Refused::Failed(error, ())) => return Err(error),
                Err(Refused::Full(())) => {}
            }
        }
    }

    #[inline(always)]
    pub(crate) fn try_post(
        &self,
        lane: Lane,
        step: Step,
        word: &RemoteWord<u64>,
        amo: Amo<u64>,
    ) -> Result<Handle<u64>, Refused<()>> {
        self.publish_in(lane, step).map_err(|error| Refused::Failed(error, ()))?;
        let posted = self.fabric.try_atomic(word, amo);
        if posted.is_err() {
            let _ = self.publish_in(lane, step.undone());
        }
        posted
    }
}
