//! Entering all claims of an access or none, and leaving them.

use super::{claim::Claim, pace::BackOff};
use crate::{
    LockError, Result, crowd,
    error::Trouble,
    owed::{Owed, Quit, Side},
    posting::NotOver,
};
use core::fmt;
use rdma_fabric::{Fabric, FabricError, GroupMemory, PutOrder, Rank, RemoteWord, Time};
use std::sync::{Arc, OnceLock};

/// A rank's side of a lock that backs off.
pub(crate) struct Base {
    pub(super) fabric: Fabric,
    pub(super) memory: GroupMemory,
    pub(super) home: Rank,
    me: Rank,
    pace: BackOff,
    /// Whether puts are ordered before all atomics, so that nothing need be flushed. Where they are, operations tend to be over
    /// when they are posted.
    pub(super) ordered_everywhere: bool,
    /// What failed between two steps of the protocol, if anything has.
    broken: OnceLock<LockError>,
}

/// One claim of an access.
#[derive(Clone)]
pub(super) struct Way {
    pub(super) word: RemoteWord<u64>,
    pub(super) claim: Claim,
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "home {}", self.home)?;
        self.broken.get().map_or(Ok(()), |cause| write!(f, ", broken: {cause}"))
    }
}

impl Side for Base {
    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl Base {
    pub(super) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, pace: BackOff) -> Result<Self> {
        memory.at(home, 0)?;
        Ok(Base {
            memory,
            fabric: fabric.clone(),
            home,
            me: fabric.rank(),
            pace,
            ordered_everywhere: fabric.caps().put_order >= PutOrder::AllTargets,
            broken: OnceLock::new(),
        })
    }

    /// Whether what this rank did before is known.
    #[inline(always)]
    pub(super) fn is_whole(&self) -> bool {
        self.broken.get().is_none()
    }

    fn check(&self) -> Result<()> {
        match self.broken.get() {
            None => Ok(()),
            Some(cause) => Err(LockError::Broken(Box::new(cause.clone()))),
        }
    }

    fn answer<T>(&self, outcome: Result<T, Trouble>) -> Result<T> {
        outcome.map_err(|trouble| match trouble {
            Trouble::GaveUp(error) => error,
            Trouble::Broken(error) => {
                self.broken.get_or_init(|| error.clone());
                error
            }
        })
    }

    /// Puts before the lock passes on (release): every target, because no fabric orders different targets.
    pub(super) async fn flush_data(&self) -> Result<()> {
        if !self.ordered_everywhere {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }

    /// One attempt: all of `ways`, or none. The atomic of the first may have been posted already.
    async fn enter(&self, ways: &[Way], mut first: NotOver, quit: &Quit) -> Result<bool, Trouble> {
        for (before, way) in ways.iter().enumerate() {
            let old = match first.take() {
                Some(posting) => posting.result().await,
                None => self.fabric.atomic(&way.word, way.claim.enter).await,
            };
            match old {
                Ok(old) if way.claim.admits(old) => {}
                Ok(old) => {
                    if let Some(undo) = way.claim.undo() {
                        self.fabric.atomic(&way.word, undo).await?;
                    }
                    self.leave(&ways[..before]).await?;
                    return if way.claim.is_crowded(old) { Err(Trouble::GaveUp(crowd::refusal())) } else { Ok(false) };
                }
                Err(error) => {
                    let trouble = lost_with_its_words(&way.word, error);
                    self.leave(&ways[..before]).await?;
                    return Err(trouble);
                }
            }
        }
        if quit.is_set() {
            self.leave(ways).await?;
            return Err(Trouble::GaveUp(Quit::REASON));
        }
        Ok(true)
    }

    /// All of `ways`, the last first, whatever the others meet.
    async fn leave(&self, ways: &[Way]) -> Result<(), Trouble> {
        self.leave_from(ways, None).await
    }

    /// The same. The atomic of the last may have been posted already.
    async fn leave_from(&self, ways: &[Way], mut last: NotOver) -> Result<(), Trouble> {
        let mut outcome = Ok(());
        for way in ways.iter().rev() {
            let old = match last.take() {
                Some(posting) => posting.result().await,
                None => self.fabric.atomic(&way.word, way.claim.leave).await,
            };
            let left = match old {
                Ok(old) if way.claim.was_held(old) => Ok(()),
                Ok(old) => Err(Trouble::Broken(LockError::corrupt("word", old))),
                Err(error) => Err(lost_with_its_words(&way.word, error)),
            };
            outcome = outcome.and(left);
        }
        outcome
    }
}

/// Words that are lost with their rank hold nothing any more that would have to be undone.
fn lost_with_its_words(word: &RemoteWord<u64>, error: FabricError) -> Trouble {
    match error {
        FabricError::PeerLost { rank } if rank == word.rank() => Trouble::GaveUp(error.into()),
        error => Trouble::Broken(error.into()),
    }
}

/// One attempt, which ends not holding the lock if this is dropped.
pub(super) async fn try_acquire<const N: usize>(base: &Arc<Base>, ways: [Way; N], first: NotOver) -> Result<bool> {
    if first.is_none() {
        base.check()?;
    }
    Owed::new(base, |base, quit| async move { base.answer(base.enter(&ways, first, &quit).await) }).await
}

/// As many attempts as it takes until `deadline`. Between them nothing is held and nothing owed.
pub(super) async fn acquire<const N: usize>(
    base: &Arc<Base>,
    ways: [Way; N],
    mut first: NotOver,
    deadline: Time,
) -> Result<()> {
    let mut attempts = 0u32;
    while !try_acquire(base, ways.clone(), first.take()).await? {
        attempts = attempts.saturating_add(1);
        if attempts >= base.pace.attempts {
            return Err(LockError::Contended { attempts });
        }
        let now = base.fabric.now();
        let again = now + base.pace.sleep(base.me, attempts);
        if now < deadline {
            base.fabric.sleep_until(again.min(deadline)).await;
        }
        if base.fabric.now() >= deadline {
            return Err(LockError::TimedOut);
        }
    }
    Ok(())
}

/// Give all of `ways` back; if this is dropped, in the background. The atomic of the last may have been posted already.
pub(super) async fn release<const N: usize>(base: &Arc<Base>, ways: [Way; N], last: NotOver) -> Result<()> {
    Owed::new(base, |base, _| async move { base.answer(base.leave_from(&ways, last).await) }).await
}

/// Flush, and give all of `ways` back, in the background. The atomic of the last may have been posted already.
#[cold]
pub(super) fn release_unawaited<const N: usize>(base: &Arc<Base>, ways: [Way; N], last: NotOver) {
    let owner = base.clone();
    base.fabric.detach(async move {
        if last.is_none() {
            let _ = owner.flush_data().await;
        }
        let _ = owner.answer(owner.leave_from(&ways, last).await);
    });
}
