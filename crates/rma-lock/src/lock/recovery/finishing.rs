//! Finishes a closed epoch: removes this rank's stand-in from the next one.

use super::{
    Core,
    words::{self, Claim},
};
use crate::{Result, lock::counted::CountedLock};
use core::{
    fmt,
    sync::atomic::{AtomicBool, Ordering::SeqCst, fence},
};
use rdma_fabric::{Fabric, LocalWord};
use std::sync::{Arc, Weak};

/// The link from the lock of an epoch to the recoverable lock that it belongs to.
///
/// Empty by default: most locks have no epoch.
#[derive(Default)]
pub(crate) struct EpochLink(Option<Box<Epoch>>);

struct Epoch {
    core: Weak<Core>,
    number: usize,
    /// This rank's [`Claim`] in the epoch.
    claim: LocalWord<u64>,
    /// Whether this rank has left data half-written.
    tears: AtomicBool,
}

impl fmt::Debug for EpochLink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "EpochLink(epoch {})", self.0.as_ref().map_or(0, |epoch| epoch.number))
    }
}

impl EpochLink {
    pub(crate) fn new(core: &Arc<Core>, epoch: usize) -> Result<Self> {
        let claim = core.fabric.local_word(core.words_of(epoch)?.at(core.me, words::CLAIM)?)?;
        let (core, tears) = (Arc::downgrade(core), AtomicBool::new(false));
        Ok(EpochLink(Some(Box::new(Epoch { core, number: epoch, claim, tears }))))
    }

    /// Records that this rank leaves data half-written, wherever the rank or its stand-in is
    /// inside.
    pub(crate) fn tear(&self) {
        if let Some(epoch) = &self.0 {
            epoch.tears.store(true, SeqCst);
        }
    }

    pub(crate) fn tears(&self) -> bool {
        self.0.as_ref().is_some_and(|epoch| epoch.tears.load(SeqCst))
    }

    /// Removes this rank's stand-in from the next epoch, if there is one and this rank has
    /// completed all of its work in this epoch (`is_out`). Called after this rank has published the
    /// end of an acquisition or release.
    #[inline(always)]
    pub(crate) fn continued(&self, fabric: &Fabric, is_out: impl FnOnce() -> bool) {
        // This rank publishes before it checks, and a rank that marks the claim does so before it
        // checks again: at least one of them observes the other.
        fence(SeqCst);
        if let Some(epoch) = &self.0
            && let Ok(claim) = fabric.load(&epoch.claim)
            && claim & !Claim::HOSTS != 0
            && is_out()
        {
            epoch.finish();
        }
    }
}

impl Epoch {
    #[cold]
    fn finish(&self) {
        if let Some(core) = self.core.upgrade() {
            let (fabric, epoch) = (core.fabric.clone(), self.number);
            // An error can only be that of the home, and all other ranks will find it as well.
            fabric.detach(async move { drop(core.finish(epoch).await) });
        }
    }
}

impl Core {
    /// Ends this rank's part in `epoch`, except for stand-ins from older ones.
    pub(super) async fn finish(self: &Arc<Self>, mut epoch: usize) -> Result<()> {
        loop {
            let claim = self.fabric.remote_word(self.words_of(epoch)?.at(self.me, words::CLAIM)?)?;
            if Claim::of_bits(self.fabric.get_word(&claim).await?).hosts() {
                return Ok(());
            }
            let before = Claim::of_bits(self.fabric.fetch_or(&claim, Claim::OVER).await?);
            let Some((next, writes)) = before.stand_in().filter(|_| !before.has_ended()) else { return Ok(()) };
            // It only leaves, so no wait depends on it.
            let lock = CountedLock::of_epoch(self, next, self.words_of(next)?)?;
            if self.epochs[epoch].get().is_some_and(|lock| lock.tears()) {
                lock.mark_torn().await?;
            }
            lock.stand_in_leaves(writes).await?;
            let hosting = self.fabric.remote_word(self.words_of(next)?.at(self.me, words::CLAIM)?)?;
            let then = Claim::of_bits(self.fabric.fetch_and(&hosting, !Claim::HOSTS).await?);
            // The next epoch is closed as well, and this rank has no other work there.
            let inside = self.epochs[next].get().is_some_and(|lock| lock.is_inside());
            if then.stand_in().is_none() || inside {
                return Ok(());
            }
            epoch = next;
        }
    }
}
