//! Helpers of the cases with a loss: the point at which the last rank is lost, and the observations
//! of the others.

use crate::{Loss, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region, Result};
use std::time::Duration;

/// Ten times the longest time within which a loss must be detected.
pub(super) const HANG: Duration = Duration::from_secs(20);

/// Returns the outcome of `wait`, or an error if it does not end.
pub(super) async fn ended<T>(fabric: &Fabric, what: &str, wait: impl Future<Output = T>) -> ProgramResult<T> {
    fabric.before(fabric.now() + HANG, wait).await.ok_or_else(|| format!("{what}: hangs").into())
}

pub(super) fn victim(fabric: &Fabric) -> Rank {
    Rank::new(fabric.ranks() as u32 - 1)
}

pub(super) fn lost<T>(rank: Rank) -> Result<T> {
    Err(FabricError::PeerLost { rank })
}

/// Waits until this rank knows that the last one is lost.
pub(super) async fn notice_the_loss(fabric: &Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(8)?;
    let word = region.word::<u64>(fabric, 0)?;
    let rank = victim(fabric);
    let end = ended(fabric, "W3", fabric.wait_until(&word, Deps::One(rank), |v| v == 1)).await?;
    ensure_eq!(end, lost(rank), "W3: waiting for the loss");
    Ok(())
}

/// Loses the last rank in a case that can check nothing else, because its subject is not supported.
pub(super) async fn only_the_loss(fabric: &Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(fabric).await?;
    point.reached(loss).await?;
    notice_the_loss(fabric).await
}

/// Returns the group of all ranks but the last, in which they synchronise after its loss.
/// Collective over all ranks.
pub(super) async fn others(world: &mut Group) -> Result<Option<Group>> {
    let stays = world.me() + 1 < world.len();
    world.split(stays.then_some(0), 0).await
}

/// Waits for all remaining ranks, so that none leaves and drops memory that others still use.
pub(super) async fn meet(others: Option<Group>) -> ProgramResult<()> {
    let mut others = others.ok_or("the lost rank is here")?;
    let fabric = others.fabric().clone();
    let end = ended(&fabric, "W3: a barrier of the others", others.barrier()).await?;
    ensure_eq!(end, Ok(()), "W3, G1: a barrier of the others");
    Ok(())
}

/// Returns whether `end` is a possible outcome of an operation on the lost rank. A rank that fails
/// or panics drops its memory first.
pub(super) fn is_gone<T>(fabric: &Fabric, loss: Loss, end: &Result<T>) -> bool {
    match end {
        Err(FabricError::PeerLost { rank }) => *rank == victim(fabric),
        Err(FabricError::StaleRegion { rank, .. }) => *rank == victim(fabric) && loss != Loss::Kill,
        _ => false,
    }
}

/// The point of a case at which the last rank is lost, once the others have reached the wait that
/// the loss is to end.
pub(super) struct LossPoint {
    fabric: Fabric,
    /// At the last rank, holds a word for each rank, which is 1 once that rank is ready.
    region: Region,
}

impl LossPoint {
    /// Creates the point. Collective.
    pub(super) async fn new(fabric: &Fabric) -> Result<Self> {
        Ok(LossPoint { fabric: fabric.clone(), region: fabric.alloc_symmetric(8 * fabric.ranks()).await? })
    }

    /// Reports that this rank is ready for the loss.
    pub(super) async fn ready(&self) -> Result<()> {
        let (victim, mine) = (victim(&self.fabric), 8 * self.fabric.rank().number() as u64);
        let word = self.fabric.remote_word::<u64>(self.region.at(victim, mine))?;
        self.fabric.put_word(&word, 1).await?;
        match self.fabric.flush(victim).await {
            // The rank was already lost.
            Err(error) if error.gone() == Some(victim) => Ok(()),
            end => end,
        }
    }

    /// Waits until the others are ready.
    pub(super) async fn others_ready(&self) -> ProgramResult<()> {
        let fabric = &self.fabric;
        for other in 0..fabric.ranks() - 1 {
            let word = self.region.word::<u64>(fabric, 8 * other)?;
            fabric.wait_until(&word, Deps::All, |ready| ready == 1).await?;
        }
        Ok(())
    }

    /// On the last rank: loses this rank once the others are ready, have received everything that
    /// was sent to them and, in some turns, have had time to start waiting. On any other rank:
    /// reports that it is ready.
    pub(super) async fn reached(&self, loss: Loss) -> ProgramResult<()> {
        let fabric = &self.fabric;
        if fabric.rank() != victim(fabric) {
            return Ok(self.ready().await?);
        }
        self.others_ready().await?;
        fabric.flush_all().await?;
        fabric.sleep(Duration::from_micros(700)).await;
        loss.happen()
    }
}
