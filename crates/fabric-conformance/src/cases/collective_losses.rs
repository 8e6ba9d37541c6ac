//! Collective operations that end with the loss of a member.

use super::loss_point::{LossPoint, ended, is_gone, lost, meet, others, victim};
use crate::{Loss, ensure, ensure_eq};
use rdma_fabric::{Fabric, Group, ProgramResult};

pub(super) async fn barriers_end(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let others = others(&mut world).await?;
    for _ in 0..3 {
        world.barrier().await?;
    }
    point.reached(loss).await?;
    for turn in 0..2 {
        let end = ended(&fabric, "G1: a barrier without a lost rank", world.barrier()).await?;
        ensure!(is_gone(&fabric, loss, &end), "W3, G1: barrier {turn}: {end:?}");
    }
    meet(others).await
}

pub(super) async fn broadcasts_and_allgathers_end(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    world.allgather(me.number()).await?;
    world.broadcast(last.index(), 1u8).await?;
    point.reached(loss).await?;
    let end = ended(&fabric, "G2: a broadcast", world.broadcast(last.index(), 1u64)).await?;
    ensure!(is_gone(&fabric, loss, &end), "W3, G2: a broadcast by a lost rank: {end:?}");
    let end = ended(&fabric, "G2: a broadcast", world.broadcast(0, 1u64)).await?;
    ensure!(is_gone(&fabric, loss, &end), "W3, G2: a broadcast to a lost rank: {end:?}");
    let end = ended(&fabric, "G2: an allgather", world.allgather(1u64)).await?;
    ensure!(is_gone(&fabric, loss, &end), "W3, G2: an allgather: {end:?}");
    let end = ended(&fabric, "G2: a split", world.split(Some(1), 0)).await?;
    ensure!(is_gone(&fabric, loss, &end), "W3, G2: a split: {end:?}");
    meet(others).await
}

pub(super) async fn symmetric_allocation_ends(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let kept = fabric.alloc_symmetric(64).await?;
    let last = victim(&fabric);
    point.reached(loss).await?;
    // A provider that accesses all parts without involving their owners need not notice.
    for turn in 0..2 {
        match ended(&fabric, "M2: a symmetric allocation", fabric.alloc_symmetric(64)).await? {
            Ok(region) => drop(region),
            Err(error) => ensure_eq!(Err(error), lost::<()>(last), "W3, M2: allocation {turn}"),
        }
    }
    // Memory from before the loss is still usable.
    let own = kept.word::<u64>(&fabric, 0)?;
    fabric.store(&own, 1)?;
    ensure_eq!(fabric.load(&own)?, 1, "M2: own memory after a loss");
    Ok(())
}
