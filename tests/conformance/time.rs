//! Time.

use super::verdict::{ensure, ensure_eq};
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank};
use std::time::Duration;

pub(crate) async fn never_goes_back(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?;
    let mut last = fabric.now();
    for round in 0..20 {
        match round % 4 {
            0 => drop(fabric.fetch_add(&word, 1).await?),
            1 => fabric.compute(Duration::from_micros(1)).await,
            2 => fabric.charge("a layer nobody knows").await,
            _ => {
                let until = last + Duration::from_micros(50);
                fabric.sleep_until(until).await;
                ensure!(fabric.now() >= until, "T2: woken {} before its time", until.picos_since(fabric.now()));
            }
        }
        let now = fabric.now();
        ensure!(now >= last, "T1: {now} after {last}");
        last = now;
    }
    // A time that has passed is no wait.
    fabric.sleep_until(rdma_fabric::Time::ZERO).await;
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn deadlines(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let region = fabric.alloc_symmetric(8).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    world.barrier().await?;
    if fabric.rank() == Rank::new(0) {
        let soon = fabric.now() + Duration::from_millis(2);
        let missed = fabric.before(soon, fabric.wait_until(&word, Deps::All, |v| v == 1)).await;
        ensure_eq!(missed, None, "T2: a wait that nobody ended");
        ensure!(fabric.now() >= soon, "T2: given up too early");
        world.barrier().await?;
        let late = fabric.now() + Duration::from_secs(60);
        let met = fabric.before(late, fabric.wait_until(&word, Deps::All, |v| v == 1)).await;
        ensure_eq!(met, Some(Ok(1)), "T2: a wait that ended in time");
        ensure!(fabric.now() < late, "T2: the deadline was waited for all the same");
        let past = fabric.before(rdma_fabric::Time::ZERO, core::future::ready(3)).await;
        ensure_eq!(past, Some(3), "T2: ready in spite of a deadline that has passed");
    } else {
        world.barrier().await?;
        fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?, 1).await?;
    }
    world.barrier().await?;
    Ok(())
}

pub(crate) async fn computing(fabric: Fabric) -> ProgramResult<()> {
    const LONG: Duration = Duration::from_secs(3600);
    let mut world = Group::world(&fabric).await?;
    let (real, before) = (std::time::Instant::now(), fabric.now());
    fabric.compute(LONG).await;
    let virtual_time = fabric.now() >= before + LONG;
    ensure!(virtual_time || fabric.now() < before + LONG / 60, "T3: neither that long nor free");
    fabric.charge("a layer nobody knows").await;
    ensure!(real.elapsed() < LONG / 60, "T3: computing took real time");
    // All ranks computed at the same time: an hour has passed and not one for each of them.
    world.barrier().await?;
    ensure!(fabric.now() < before + LONG + LONG / 2, "T3: another rank's computing was charged to this one");
    let all = world.allgather(u64::from(virtual_time)).await?;
    ensure!(all.iter().all(|theirs| *theirs == all[0]), "T3: ranks live in different kinds of time");
    Ok(())
}
