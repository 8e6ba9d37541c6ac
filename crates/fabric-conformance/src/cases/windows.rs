//! Windows and locks: the sentences of the contract that they depend on, as used by real systems.

use super::loss_point::{LossPoint, ended, is_gone, meet, others, victim};
use crate::{Loss, ensure, ensure_eq};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Lock, LockError, LockMode, Op, RmaLock, Window, WindowError, locks::RpLock};

pub(super) async fn windows_between_fences(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<f64>::allocate(&fabric, 3).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    let mut epoch = window.fence().await?;
    for round in 0..10 {
        let mine = f64::from(100 * round + me);
        epoch.at(Rank::new((me + 1) % ranks))?.put(0, [mine]).await?;
        epoch.at(Rank::new((me + ranks / 2) % ranks))?.put(1, [-mine]).await?;
        epoch.at(Rank::new(0))?.accumulate(2, Op::Sum, &[0.5]).await?;
        epoch.fence().await?;
        let mut seen = [0.0; 3];
        window.read(0, &mut seen)?;
        let from = |rank: u32| f64::from(100 * round + rank % ranks);
        ensure_eq!(seen[..2], [from(me + ranks - 1), -from(me + ranks - ranks / 2)], "O5 G1: puts of round {round}");
        let sum = if me == 0 { 0.5 * f64::from(ranks * (round + 1)) } else { 0.0 };
        ensure_eq!(seen[2], sum, "O6: additions of round {round}");
        epoch.fence().await?;
    }
    epoch.end().await?;
    Ok(window.free().await?)
}

pub(super) async fn windows_posted_and_started(fabric: Fabric) -> ProgramResult<()> {
    let ranks = fabric.ranks();
    let window = Window::<u64>::allocate(&fabric, ranks).await?;
    let me = fabric.rank();
    let others: Vec<_> = (0..ranks as u32).map(Rank::new).filter(|rank| *rank != me).collect();
    for round in 1..=10 {
        window.write(0, &vec![u64::MAX; ranks])?;
        let exposure = window.post(&others).await?;
        let epoch = window.start(&others).await?;
        for rank in &others {
            epoch.at(*rank)?.put(me.index(), [round]).await?;
        }
        epoch.complete().await?;
        exposure.wait().await?;
        for rank in &others {
            ensure_eq!(window.load(rank.index())?, round, "O5 O7 W2: the put of {rank}");
        }
    }
    Ok(window.free().await?)
}

pub(super) async fn windows_locked(fabric: Fabric) -> ProgramResult<()> {
    let window = Window::<u64>::allocate(&fabric, 3).await?;
    let (me, ranks) = (fabric.rank().number(), fabric.ranks() as u32);
    for round in 0..10 {
        let target = Rank::new((me + round) % ranks);
        let epoch = window.lock(LockMode::Exclusive, target).await?;
        let old = epoch.get_one(0).await?;
        epoch.put(0, [old + 1]).await?;
        epoch.unlock().await?;
        let epoch = window.lock_all().await?;
        let target = epoch.at(target)?;
        // `Op::Max` is not a single atomic.
        let seen = target.fetch_and_op(1, Op::Max, u64::from(round) + 1).await?;
        ensure!(seen <= 10, "O6: {seen}");
        let seen = target.get(0, vec![0; 2]).await?;
        ensure!(seen[1] > u64::from(round), "O8: {seen:?} after {}", round + 1);
        drop(target.raccumulate(2, Op::Sum, &[1])?);
        epoch.unlock().await?;
    }
    window.barrier().await?;
    let mut mine = [0; 3];
    window.read(0, &mut mine)?;
    ensure_eq!(mine, [10; 3], "O6 O8: counted, greatest, added");
    Ok(window.free().await?)
}

pub(super) async fn a_window_and_its_member(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let mut world = Group::world(&fabric).await?;
    let window = Window::<u64>::in_group(&mut world, 1).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    world.barrier().await?;
    point.reached(loss).await?;
    // Each rank is in a different one of these waits when the loss happens; it begins the others
    // afterwards.
    for turn in 0..3 {
        let end = match (turn + me.index()) % 3 {
            0 => ended(&fabric, "W3: a fence", window.fence()).await?.map(drop),
            1 => ended(&fabric, "W3: a start", window.start(&[last])).await?.map(drop),
            _ => ended(&fabric, "W3: an exposure", async { window.post(&[last]).await?.wait().await }).await?,
        };
        let end = match end {
            Err(WindowError::Fabric(error)) => Err(error),
            other => return Err(format!("W3: a window whose member was lost: {other:?}").into()),
        };
        ensure!(is_gone::<()>(&fabric, loss, &end), "W3: a window whose member was lost: {end:?}");
    }
    meet(others).await
}

pub(super) async fn a_lock_and_its_holder(fabric: Fabric, loss: Loss) -> ProgramResult<()> {
    let point = LossPoint::new(&fabric).await?;
    let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
    let mut world = Group::world(&fabric).await?;
    let (me, last) = (fabric.rank(), victim(&fabric));
    let others = others(&mut world).await?;
    let held = if me == last { Some(lock.write().await?) } else { None };
    world.barrier().await?;
    if let Some(held) = held {
        // Never released, as if the rank had died.
        std::mem::forget(held);
    }
    point.reached(loss).await?;
    let end = if me.index() % 2 == 0 {
        ended(&fabric, "W3: a writer behind a lost one", lock.write()).await?.map(drop)
    } else {
        ended(&fabric, "W3: a reader behind a lost writer", lock.read()).await?.map(drop)
    };
    let end = match end {
        Err(LockError::Fabric(error)) => Err(error),
        other => return Err(format!("W3: a lock whose holder was lost: {other:?}").into()),
    };
    ensure!(is_gone::<()>(&fabric, loss, &end), "W3: a lock whose holder was lost: {end:?}");
    meet(others).await
}
