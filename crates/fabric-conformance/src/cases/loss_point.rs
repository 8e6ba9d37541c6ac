//! What cases with a loss share: where the last rank is lost, and what the others see of it.

use crate::{Loss, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region, Result};
use std::time::Duration;

/// Longer than any loss may go unnoticed, ten times over.
pub(super) const HANG: Duration = Duration::from_secs(20);

/// Returns what `wait` ends with; an error if it does not end.
pub(super) async fn ended<T>(fabric: &Fabric, what: &str, wait: impl Future<Output = T>) -> ProgramResult<T> {
    fabric.before(fabric.now() + HANG, wait).await.ok_or_else(|| format!("{what}: hangs").into())
}

pub(super) fn victim(fabric: &Fabric) -> Rank {
    Rank::new(fabric.ranks() as u32 - 1)
}

pub(super) fn lost<T>(rank: Rank) -> Result<T> {
    Err(FabricError::PeerLost { rank })
}

/// Waits until the last rank is known to be lost.
pub(super) async fn notice_the_loss(fabric: &Fabric) -> ProgramResult<()> {
    let region = fabric.alloc(8)?;
    let word = region.word::<u64>(fabric, 0)?;
    let rank = victim(fabric);
    let end = ended(fabric, "W3", fabric.wait_until(&word, Deps::One(rank), |v| v == 1)).await?;
    ensure_eq!(end, lost(rank), "W3: waiting for the loss");
    Ok(())
}

/// Returns the group of all but the last rank, to meet in when that is lost. Collective over all.
pub(super) async fn others(world: &mut Group) -> Result<Option<Group>> {
    let stays = world.me() + 1 < world.len();
    world.split(stays.then_some(0), 0).await
}

/// Waits for all that are left, so that nobody leaves, and its memory goes, while others still use
/// that.
pub(super) async fn meet(others: Option<Group>) -> ProgramResult<()> {
    let mut others = others.ok_or("the lost rank is here")?;
    let fabric = others.fabric().clone();
    let end = ended(&fabric, "W3: a barrier of the others", others.barrier()).await?;
    ensure_eq!(end, Ok(()), "W3, G1: a barrier of the others");
    Ok(())
}

/// Returns whether `end` is that of an operation on the last rank. One that fails or panics drops
/// its memory first.
pub(super) fn is_gone<T>(fabric: &Fabric, loss: Loss, end: &Result<T>) -> bool {
    match end {
        Err(FabricError::PeerLost { rank }) => *rank == victim(fabric),
        Err(FabricError::StaleRegion { rank, .. }) => *rank == victim(fabric) && loss != Loss::Kill,
        _ => false,
    }
}

/// The point of a case at which the last rank is lost, once the others have come to where that is
/// to meet them.
pub(super) struct LossPoint {
    fabric: Fabric,
    /// At the last rank: how many have come.
    region: Region,
}

impl LossPoint {
    /// Makes the point. Collective.
    pub(super) async fn new(fabric: &Fabric) -> Result<Self> {
        Ok(LossPoint { fabric: fabric.clone(), region: fabric.alloc_symmetric(8).await? })
    }

    /// Says that this rank is where the loss may meet it.
    pub(super) async fn ready(&self) -> Result<()> {
        let word = self.fabric.remote_word::<u64>(self.region.at(victim(&self.fabric), 0))?;
        self.fabric.fetch_add(&word, 1).await.map(drop)
    }

    /// Waits until the others are ready.
    pub(super) async fn others_ready(&self) -> ProgramResult<()> {
        let fabric = &self.fabric;
        let others = fabric.ranks() as u64 - 1;
        let word = self.region.word::<u64>(fabric, 0)?;
        fabric.wait_until(&word, Deps::All, |ready| ready == others).await?;
        Ok(())
    }

    /// Loses the last rank when the others are ready, have everything that was meant for them, and
    /// had time to wait, or not. Elsewhere says that this rank is ready.
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
