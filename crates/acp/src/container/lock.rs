//! Lock words in global memory.
//!
//! A lock word is 0, or a mark and the number of the rank that holds it. The mark distinguishes it from
//! other data, so that a container at a wrong address is an error and not a lock that a rank seems to
//! hold forever. A lock word is changed only by
//! atomics, since a put may take effect between the halves of an atomic. If it is mapped, all ranks
//! use CPU atomics, and a call that completes [immediately](super::near) releases it by a store. A
//! rank that finds it taken polls it a few times if it is mapped, and then sleeps for increasing
//! intervals without polling. There is no queue, and no rank is guaranteed to get the lock.
//!
//! # Deaths
//! A rank that finds the same holder twice checks whether that rank is still present. If it is not,
//! and the word still contains its number, this attempt and all later ones fail with
//! [`FabricError::PeerLost`]: the protected data may be half changed, and is not repaired.
//!
//! # Dropped futures
//! A dropped attempt releases the lock if it had acquired it; a dropped [`Held`] is unlocked in the
//! background. Work that must not stop half-way while the word is held is run by [`locked`].

use super::finish::{Unawaited, finish, finish_at};
use crate::{Acp, AcpError, GlobalAddress, Result, pace::Pace};
use core::future::Future;
use rdma_fabric::{Amo, FabricError, PutOrder, Rank};

/// The upper half of the value of a lock word that is held: "lock". No address and no small number has it.
const MARK: u64 = 0x6c6f_636b << 32;

/// A lock word that this rank holds. Dropping it unlocks in the background, and reports no errors.
#[must_use = "a lock that is dropped at once protects nothing"]
pub(crate) struct Held {
    /// `None` once it is being unlocked.
    acp: Option<Acp>,
    word: GlobalAddress,
}

/// Takes the lock at `word`. Deadlocks if the calling task already holds it.
///
/// # Errors
/// [`FabricError::PeerLost`] of the holder or of the word's owner; [`AcpError::Damaged`] if the
/// value is not that of a lock word; the errors of [`Acp::fetch`].
pub(crate) async fn lock(acp: &Acp, word: GlobalAddress) -> Result<Held> {
    if let Some(mut before) = attempt(acp, word).await? {
        let mut pace = Pace::new(acp.fabric());
        while let Some(holder) = attempt(acp, word).await? {
            if before == holder {
                check_alive(acp, word, holder).await?;
            }
            before = holder;
            acp.while_serving(pace.pause(acp.fabric())).await;
        }
    }
    Ok(Held { acp: Some(acp.clone()), word })
}

/// Does `body` while holding the lock at `word`; once started, it runs to completion, and the lock
/// is released even if this future is dropped. `body` may do what [`finish`] allows; all its puts
/// are flushed before the lock is released.
///
/// # Errors
/// As [`lock`], and the error that `body` returns, after unlocking.
pub(crate) async fn locked<Out, Body>(
    acp: &Acp,
    word: GlobalAddress,
    body: impl FnOnce(Acp, Unawaited) -> Body,
) -> Result<Out>
where
    Out: Send + 'static,
    Body: Future<Output = Result<Out>> + Send + 'static,
{
    let held = lock(acp, word).await?;
    finish_at(acp, word, |unawaited| {
        let body = body(acp.clone(), unawaited);
        async move {
            let out = body.await;
            let unlocked = held.unlock().await;
            out.and_then(|out| unlocked.map(|()| out))
        }
    })
    .await
}

/// Makes one attempt; returns the word's value if it is taken.
async fn attempt(acp: &Acp, word: GlobalAddress) -> Result<Option<u64>> {
    let (mine, free) = (holding(acp), 0);
    let taking = Amo::CompareSwap { expected: free, new: mine };
    if let Some(before) = acp.fetch_now(word, taking) {
        return Ok((before != free).then_some(before));
    }
    let taken = finish(acp, |unawaited| {
        let acp = acp.clone();
        async move {
            let before = acp.fetch(word, taking).await?;
            if before == free && unawaited.is_set() {
                release(&acp, word).await?;
            }
            Ok(before)
        }
    });
    taken.await.map(|before| (before != free).then_some(before))
}

impl Held {
    /// Makes all puts of this rank visible, then unlocks; in the background if the future is
    /// dropped.
    ///
    /// # Errors
    /// The error of a put at its target, although the lock is then released; [`AcpError::Damaged`]
    /// if the word was not this rank's.
    pub(crate) async fn unlock(mut self) -> Result<()> {
        let (acp, word) = (self.acp.take(), self.word);
        match acp {
            Some(acp) => match release_now(&acp, word) {
                Some(released) => released,
                None => finish(&acp.clone(), |_| async move { release(&acp, word).await }).await,
            },
            None => Ok(()),
        }
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(acp) = self.acp.take() {
            let (fabric, word) = (acp.fabric().clone(), self.word);
            fabric.detach(async move {
                let _ = release(&acp, word).await;
            });
        }
    }
}

/// Releases without waiting, where no flush is needed and the word is mapped.
fn release_now(acp: &Acp, word: GlobalAddress) -> Option<Result<()>> {
    if acp.fabric().caps().put_order != PutOrder::AllTargets {
        return None;
    }
    let mine = holding(acp);
    let before = acp.fetch_now(word, Amo::CompareSwap { expected: mine, new: 0 })?;
    Some(was_held(before == mine, word))
}

pub(super) fn was_held(held: bool, word: GlobalAddress) -> Result<()> {
    if held { Ok(()) } else { Err(AcpError::Damaged { address: word }) }
}

async fn release(acp: &Acp, word: GlobalAddress) -> Result<()> {
    let flushed = match acp.fabric().caps().put_order {
        PutOrder::AllTargets => Ok(()),
        _ => acp.flush_all().await,
    };
    let mine = holding(acp);
    let before = acp.fetch(word, Amo::CompareSwap { expected: mine, new: 0 }).await?;
    was_held(before == mine, word)?;
    flushed
}

/// Returns the value of a lock word that this rank holds.
pub(super) fn holding(acp: &Acp) -> u64 {
    MARK | u64::from(acp.rank().number())
}

/// Returns an error if the holder is lost and will never release the lock.
#[cold]
async fn check_alive(acp: &Acp, word: GlobalAddress, holder: u64) -> Result<()> {
    let rank = u32::try_from(holder ^ MARK).map(Rank::new).ok().filter(|rank| rank.index() < acp.ranks());
    let rank = rank.ok_or(AcpError::Damaged { address: word })?;
    match acp.probe(rank).await {
        // The rank may have unlocked before it was lost; from now on none of its operations takes
        // effect.
        Err(lost @ AcpError::Fabric(FabricError::PeerLost { .. })) if acp.load::<u64>(word).await? == holder => {
            Err(lost)
        }
        _ => Ok(()),
    }
}

impl Acp {
    /// Reads memory that every rank has, to check whether the rank is present.
    async fn probe(&self, rank: Rank) -> Result<()> {
        let at = self.try_with(|state| state.memory.world_at(rank, state.memory.layout().delegation()))?;
        let looked = match self.fabric().remote_word::<u64>(at) {
            Ok(word) => self.fabric().get_word(&word).await.map(drop),
            Err(error) => Err(error),
        };
        looked.map_err(|error| self.named(error))
    }
}
