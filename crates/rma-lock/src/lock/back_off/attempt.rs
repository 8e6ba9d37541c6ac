//! Makes all claims of an access or none, and releases them.

use super::pace::BackOff;
use crate::{
    LockError, Result,
    error::Stopped,
    lock::{
        detach::{Broken, Cancelled, DetachOnDrop, HasFabric},
        holder_limit::{self, limit_bits},
        posting::Unfinished,
    },
};
use core::fmt;
use rdma_fabric::{Amo, Fabric, FabricError, GroupMemory, PutOrder, Rank, RemoteWord, Time};
use std::sync::Arc;

/// A writer inside, in a rank's word.
const WRITER: u64 = 1;
/// A reader inside.
const READER: u64 = 2;
/// A holder with exclusive access to some rank, in a window's second word.
const SOMEWHERE: u64 = 1;
/// A holder with access to all ranks, in a window's second word.
const EVERYWHERE: u64 = 1 << 32;

/// One part of an access.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Claim {
    /// The atomic that makes it.
    pub(super) enter: Amo<u64>,
    /// Bits that must not have been set.
    in_the_way: u64,
    /// More bits that must not have been set: they mean that the word already has too many holders.
    limit_bits: u64,
    /// The bits of which at least one must be set while the claim is held.
    held: u64,
    /// The atomic that releases it.
    pub(super) leave: Amo<u64>,
}

impl Claim {
    pub(super) const READ: Claim = Claim::counted(READER, !WRITER, WRITER);
    pub(super) const WRITE: Claim = Claim {
        enter: Amo::CompareSwap { expected: 0, new: WRITER },
        in_the_way: u64::MAX,
        limit_bits: 0,
        held: WRITER,
        leave: Amo::Add(WRITER.wrapping_neg()),
    };
    pub(super) const SOMEWHERE: Claim = Claim::counted(SOMEWHERE, EVERYWHERE - 1, !(EVERYWHERE - 1));
    pub(super) const EVERYWHERE: Claim = Claim::counted(EVERYWHERE, !(EVERYWHERE - 1), EVERYWHERE - 1);

    /// Returns a claim in which each holder counts as `one` in `field`.
    const fn counted(one: u64, field: u64, in_the_way: u64) -> Claim {
        let limit_bits = limit_bits(field, one);
        Claim { enter: Amo::Add(one), in_the_way, limit_bits, held: field, leave: Amo::Add(one.wrapping_neg()) }
    }

    /// Returns whether the claim was made, if the word was `old` before.
    #[inline(always)]
    pub(super) fn admits(&self, old: u64) -> bool {
        old & (self.in_the_way | self.limit_bits) == 0
    }

    /// Returns whether the claim was refused because of the holder limit, regardless of other
    /// conflicts.
    pub(super) fn is_over_limit(&self, old: u64) -> bool {
        old & self.limit_bits != 0
    }

    /// Returns whether the claim can have been held, if the word was `old` before the claim was
    /// released.
    #[inline(always)]
    pub(super) fn was_held(&self, old: u64) -> bool {
        old & self.held != 0
    }

    /// Returns the atomic that withdraws the claim if it was not admitted. A failed
    /// compare-and-swap has changed nothing.
    pub(super) fn undo(&self) -> Option<Amo<u64>> {
        matches!(self.enter, Amo::Add(_)).then_some(self.leave)
    }
}

/// The part of a back-off lock at one rank.
pub(crate) struct Base {
    pub(super) fabric: Fabric,
    pub(super) memory: GroupMemory,
    pub(super) home: Rank,
    me: Rank,
    pace: BackOff,
    /// Whether puts are ordered before all atomics, so that no flush is needed. If so, operations
    /// usually complete when they are posted.
    pub(super) ordered_everywhere: bool,
    pub(super) broken: Broken,
}

/// The claims of an access: one word or two, in order.
pub(super) type Claims = Arc<[WordClaim]>;

/// One claim of an access.
#[derive(Clone)]
pub(super) struct WordClaim {
    pub(super) word: RemoteWord<u64>,
    pub(super) claim: Claim,
}

impl fmt::Debug for Base {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "home {}", self.home)?;
        self.broken.cause().map_or(Ok(()), |cause| write!(f, ", broken: {cause}"))
    }
}

impl HasFabric for Base {
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
            broken: Broken::default(),
        })
    }

    /// Flushes puts before the lock is passed on (release): to every target, because no fabric
    /// orders different targets.
    pub(super) async fn flush_data(&self) -> Result<()> {
        if !self.ordered_everywhere {
            self.fabric.flush_all().await?;
        }
        Ok(())
    }

    /// Makes one attempt: all of `claims`, or none. The first claim's atomic may already have been
    /// posted.
    async fn enter(&self, claims: &[WordClaim], mut first: Unfinished, cancelled: &Cancelled) -> Result<bool, Stopped> {
        for (before, held) in claims.iter().enumerate() {
            let old = match first.take() {
                Some(posting) => posting.result().await,
                None => self.fabric.atomic(&held.word, held.claim.enter).await,
            };
            match old {
                Ok(old) if held.claim.admits(old) => {}
                Ok(old) => {
                    if let Some(undo) = held.claim.undo() {
                        self.fabric.atomic(&held.word, undo).await?;
                    }
                    self.leave(&claims[..before]).await?;
                    return if held.claim.is_over_limit(old) {
                        Err(Stopped::GaveUp(holder_limit::refusal()))
                    } else {
                        Ok(false)
                    };
                }
                Err(error) => {
                    let stopped = lost_with_its_words(&held.word, error);
                    self.leave(&claims[..before]).await?;
                    return Err(stopped);
                }
            }
        }
        if cancelled.is_set() {
            self.leave(claims).await?;
            return Err(Stopped::GaveUp(Cancelled::REASON));
        }
        Ok(true)
    }

    /// Releases all of `claims`, last first, even if some releases fail.
    async fn leave(&self, claims: &[WordClaim]) -> Result<(), Stopped> {
        self.leave_from(claims, None).await
    }

    /// Releases all of `claims`, last first. The last claim's atomic may already have been posted.
    async fn leave_from(&self, claims: &[WordClaim], mut last: Unfinished) -> Result<(), Stopped> {
        let mut outcome = Ok(());
        for held in claims.iter().rev() {
            let old = match last.take() {
                Some(posting) => posting.result().await,
                None => self.fabric.atomic(&held.word, held.claim.leave).await,
            };
            let left = match old {
                Ok(old) if held.claim.was_held(old) => Ok(()),
                Ok(old) => Err(Stopped::Broken(LockError::corrupt("word", old))),
                Err(error) => Err(lost_with_its_words(&held.word, error)),
            };
            outcome = outcome.and(left);
        }
        outcome
    }
}

/// Returns the kind of failure of an operation on `word`: a word that is lost with its rank needs
/// no cleanup.
fn lost_with_its_words(word: &RemoteWord<u64>, error: FabricError) -> Stopped {
    match error {
        FabricError::PeerLost { rank } if rank == word.rank() => Stopped::GaveUp(error.into()),
        error => Stopped::Broken(error.into()),
    }
}

/// Makes one attempt. If this future is dropped, the attempt ends without holding the lock.
pub(super) async fn try_acquire(base: &Arc<Base>, claims: Claims, first: Unfinished) -> Result<bool> {
    if first.is_none() {
        base.broken.check()?;
    }
    DetachOnDrop::new(base, |base, cancelled| async move {
        base.broken.answer(base.enter(&claims, first, &cancelled).await)
    })
    .await
}

/// Makes attempts until one succeeds or `deadline` passes. Between attempts nothing is held, and no
/// other rank depends on this future.
pub(super) async fn acquire(base: &Arc<Base>, claims: Claims, mut first: Unfinished, deadline: Time) -> Result<()> {
    let mut attempts = 0u32;
    while !try_acquire(base, claims.clone(), first.take()).await? {
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

/// Releases all of `claims`; if this is dropped, in the background. The last claim's atomic may
/// already have been posted.
pub(super) async fn release(base: &Arc<Base>, claims: Claims, last: Unfinished) -> Result<()> {
    DetachOnDrop::new(base, |base, _| async move { base.broken.answer(base.leave_from(&claims, last).await) }).await
}

/// Flushes, and releases all of `claims`, in the background. The last claim's atomic may already
/// have been posted.
#[cold]
pub(super) fn release_unawaited(base: &Arc<Base>, claims: Claims, last: Unfinished) {
    let owner = base.clone();
    base.fabric.detach(async move {
        if last.is_none() {
            let _ = owner.flush_data().await;
        }
        let _ = owner.broken.answer(owner.leave_from(&claims, last).await);
    });
}
