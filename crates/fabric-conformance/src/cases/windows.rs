//! Windows: the sentences of the contract that epochs stand on, as a system uses them.

use crate::{ensure, ensure_eq};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use rma_lock::{LockMode, Op, Window};

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
        // The greatest has no atomic of its own.
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
