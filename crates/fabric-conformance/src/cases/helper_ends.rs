//! Helpers that end or fail.

pub(super) use super::helpers::is_missing;
use super::helpers::until;
use super::{
    loss_point::{LossPoint, ended, meet, notice_the_loss, others, victim},
    world_and_region,
};
use crate::{Loss, ensure_eq};
use rdma_fabric::{Deps, Fabric, FabricError, Group, ProgramResult, Rank, Region, op::Put};
use std::{sync::Arc, time::Duration};

/// Posts a put when dropped.
struct PutsOnDrop {
    fabric: Fabric,
    region: Arc<Region>,
    to: Rank,
}

impl Drop for PutsOnDrop {
    fn drop(&mut self) {
        if let Ok(span) = self.fabric.remote_span::<u64>(self.region.at(self.to, 8), 1) {
            drop(self.fabric.try_post(Put { to: &span, from: vec![5u64], notice: None }));
        }
    }
}

pub(super) async fn helpers_end_with_their_rank(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 24).await?;
    let (me, region) = (fabric.rank(), Arc::new(region));
    let last = victim(&fabric);
    world.barrier().await?;
    if me != last {
        let never = region.word::<u64>(&fabric, 0)?;
        let wait = fabric.wait_until(&never, Deps::One(last), |it| it == 1);
        let end = ended(&fabric, "H5: a rank with helpers that wait", wait).await?;
        ensure_eq!(end, Err(FabricError::PeersLeft), "H5: a rank with helpers that wait");
        let parted = fabric.load(&region.word::<u64>(&fabric, 8)?)?;
        ensure_eq!(parted, u64::from(me.number() == 0) * 5, "H5: its helper was not dropped before");
        return Ok(());
    }
    // One helper has already ended, one waits for a word, one for time, and one for a future that
    // does not belong to a fabric.
    fabric.helper("over", |_| async { Ok(()) })?;
    let shared = Arc::clone(&region);
    fabric.helper("waits", move |fabric| async move {
        let _parting = PutsOnDrop { fabric: fabric.clone(), region: Arc::clone(&shared), to: Rank::new(0) };
        fabric.store(&shared.word::<u64>(&fabric, 16)?, 1)?;
        let never = shared.word::<u64>(&fabric, 0)?;
        fabric.wait_until(&never, Deps::One(fabric.rank()), |it| it == 1).await?;
        Err("H5: a wait for nothing ended".into())
    })?;
    fabric.helper("sleeps", |fabric| async move {
        fabric.sleep(Duration::from_secs(100_000)).await;
        Err("H5: it slept on".into())
    })?;
    fabric.helper("pends", |_| std::future::pending())?;
    until(&fabric, "H5: the helper that waits", &region, 16, 1).await?;
    fabric.sleep(Duration::from_millis(2)).await;
    Ok(())
}

pub(super) async fn a_failed_helper_is_the_ranks_loss(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let others = others(&mut world).await?;
    if fabric.rank() != victim(&fabric) {
        point.ready().await?;
        notice_the_loss(&fabric).await?;
        return meet(others).await;
    }
    point.others_ready().await?;
    if is_missing(&fabric)? {
        // The rank is lost in any case, because this case is about a loss.
        return loss.happen();
    }
    let (me, region) = (fabric.rank(), fabric.alloc(8)?);
    let never = region.word::<u64>(&fabric, 0)?;
    fabric.helper("waits as well", move |fabric| async move {
        let region = fabric.alloc(8)?;
        let never = region.word::<u64>(&fabric, 0)?;
        let end = fabric.wait_until(&never, Deps::All, |it| it == 1).await;
        ensure_eq!(end, Err(FabricError::HelperFailed { rank: me }), "H6: another helper's wait");
        Ok(())
    })?;
    fabric.helper("fails", move |fabric| async move {
        fabric.sleep(Duration::from_micros(700)).await;
        loss.happen()
    })?;
    let failed = FabricError::HelperFailed { rank: me };
    let end = ended(&fabric, "H6", fabric.wait_until(&never, Deps::One(me), |it| it == 1)).await?;
    ensure_eq!(end, Err(failed.clone()), "H6: the program's wait");
    let end = ended(&fabric, "H6", fabric.next_notice(Deps::All)).await?.map(drop);
    ensure_eq!(end, Err(failed), "H6: the program's next wait");
    loss.happen()
}
