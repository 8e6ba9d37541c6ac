//! Waiting, and time.

use super::{neighbour, world_and_region};
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Deps, Fabric, FabricError, Group, ProgramResult, Rank, Time,
    join::{Either, join, race},
};
use std::time::Duration;

pub(super) async fn every_writer_wakes(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    let peer = neighbour(&fabric);
    let theirs = fabric.remote_word::<u64>(region.at(peer, 0))?;
    for round in 0..30u64 {
        let base = 10 * round;
        if fabric.rank().index().is_multiple_of(2) {
            // Occasionally lets the peer fall asleep.
            if round % 3 == 0 {
                fabric.sleep(Duration::from_micros(200)).await;
            }
            fabric.put_word(&theirs, base + 1).await?;
            fabric.wait_until(&word, Deps::One(peer), |v| v == base + 1).await?;
            fabric.fetch_add(&theirs, 1).await?;
            fabric.wait_until(&word, Deps::One(peer), |v| v == base + 2).await?;
            fabric.put(&theirs.as_span(), vec![base + 3]).await?;
            fabric.wait_until(&word, Deps::One(peer), |v| v == base + 3).await?;
        } else {
            for step in 1..=3 {
                let seen = fabric.wait_until(&word, Deps::All, |v| v == base + step).await?;
                ensure_eq!(seen, base + step, "W2: what the wait returns");
                fabric.swap(&theirs, base + step).await?;
            }
        }
        // Woken by the rank's own store, from another of its tasks.
        let own = async {
            fabric.sleep(Duration::from_micros(5)).await;
            fabric.store(&word, base + 9)
        };
        let (waited, stored) = join(fabric.wait_until(&word, Deps::All, |v| v == base + 9), own).await;
        stored?;
        ensure_eq!(waited?, base + 9, "W2: woken by an own store");
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn two_waits_of_one_rank(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let peer = neighbour(&fabric);
    let (a, b) = (region.word::<u64>(&fabric, 0)?, region.word::<u32>(&fabric, 8)?);
    if fabric.rank().index().is_multiple_of(2) {
        // The second wait's word is written first.
        let waits = join(fabric.wait_until(&a, Deps::All, |v| v == 7), fabric.wait_until(&b, Deps::All, |v| v == 8));
        let (first, second) = waits.await;
        ensure_eq!((first?, second?), (7, 8), "W2: both waits");
    } else {
        fabric.put_word(&fabric.remote_word::<u32>(region.at(peer, 8))?, 8).await?;
        fabric.flush_all().await?;
        fabric.sleep(Duration::from_micros(100)).await;
        fabric.put_word(&fabric.remote_word::<u64>(region.at(peer, 0))?, 7).await?;
    }
    Ok(world.barrier().await?)
}

pub(super) async fn a_dropped_wait_leaves_nothing(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let peer = neighbour(&fabric);
    let (a, b) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 8)?);
    if fabric.rank().index().is_multiple_of(2) {
        for round in 1..=20u64 {
            let never = fabric.wait_until(&a, Deps::All, |v| v == u64::MAX);
            match race(never, fabric.wait_until(&b, Deps::All, |v| v >= round)).await {
                Either::First(value) => return Err(format!("W2: a wait for nothing ended with {value:?}").into()),
                Either::Second(seen) => ensure!(seen? >= round, "W5: round {round}"),
            }
        }
    } else {
        for round in 1..=20u64 {
            // Both words, so that the word of the dropped waits is written as well.
            fabric.put_word(&fabric.remote_word::<u64>(region.at(peer, 0))?, round).await?;
            fabric.flush_all().await?;
            fabric.fetch_add(&fabric.remote_word::<u64>(region.at(peer, 8))?, 1).await?;
        }
    }
    Ok(world.barrier().await?)
}

pub(super) async fn a_satisfied_wait_ends_at_once(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    if fabric.rank() == Rank::new(1) {
        return Ok(());
    }
    let word = region.word::<u64>(&fabric, 0)?;
    fabric.store(&word, 5)?;
    // Long enough for the other rank to have left.
    fabric.sleep(Duration::from_millis(20)).await;
    for deps in [Deps::All, Deps::One(Rank::new(1)), Deps::Ranks(&[])] {
        ensure_eq!(fabric.wait_until(&word, deps, |v| v == 5).await?, 5, "W4 with {deps:?}");
    }
    Ok(())
}

pub(super) async fn nobody_is_left(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    world.barrier().await?;
    // Ranks 1 and 2 leave; rank 0 waits for a word that only they could write.
    if fabric.rank() == Rank::new(0) {
        let word = region.word::<u64>(&fabric, 0)?;
        let others = [Rank::new(1), Rank::new(2)];
        for deps in [Deps::One(others[0]), Deps::Ranks(&others), Deps::All] {
            let end = fabric.wait_until(&word, deps, |v| v == 1).await;
            ensure_eq!(end, Err(FabricError::PeersLeft), "W6: waiting for {deps:?}");
        }
        let end = fabric.next_notice(Deps::All).await;
        ensure_eq!(end, Err(FabricError::PeersLeft), "W6: waiting for a notice");
    }
    Ok(())
}

pub(super) async fn the_writer_has_left(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    let [first, writer, stays] = [0, 1, 2].map(Rank::new);
    if fabric.rank() == first {
        let group = [first, writer, stays];
        for group in [None, Some(&group[..])] {
            let deps = Deps::Step { writer, group };
            let end = fabric.wait_until(&word, deps, |v| v == 1).await;
            ensure_eq!(end, Err(FabricError::PeersLeft), "W8: waiting for {deps:?}");
            let deps = Deps::Step { writer: stays, group };
            let soon = fabric.now() + Duration::from_micros(300);
            let end = fabric.before(soon, fabric.wait_until(&word, deps, |v| v == 1)).await;
            ensure_eq!(end, None, "W8: the writer is here, waiting for {deps:?}");
        }
        fabric.put_word(&fabric.remote_word::<u64>(region.at(stays, 0))?, 1).await?;
    } else if fabric.rank() == stays {
        fabric.wait_until(&word, Deps::One(first), |v| v == 1).await?;
    }
    Ok(())
}

pub(super) async fn nobody_depends_on_himself(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(8).await?;
    let word = region.word::<u64>(&fabric, 0)?;
    // Rank 0 is alone from the start, or once the others have left.
    if fabric.rank() == Rank::new(0) {
        let end = fabric.wait_until(&word, Deps::All, |v| v == 1).await;
        ensure_eq!(end, Err(FabricError::PeersLeft), "W7: a rank that only waits for itself");
        let end = fabric.wait_until(&word, Deps::Ranks(&[]), |v| v == 1).await;
        ensure_eq!(end, Err(FabricError::PeersLeft), "W7: a wait that depends on nobody");
        // The rank may still end its own wait.
        let own = async {
            fabric.sleep(Duration::from_micros(5)).await;
            fabric.store(&word, 1)
        };
        let me = [fabric.rank()];
        let (waited, stored) = join(fabric.wait_until(&word, Deps::Ranks(&me), |v| v == 1), own).await;
        stored?;
        ensure_eq!(waited, Ok(1), "W7: a wait that names its own rank");
    }
    Ok(())
}

pub(super) async fn never_goes_back(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
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
    // Sleeping until a time in the past returns immediately.
    fabric.sleep_until(Time::ZERO).await;
    Ok(world.barrier().await?)
}

pub(super) async fn deadlines(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
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
        let past = fabric.before(Time::ZERO, core::future::ready(3)).await;
        ensure_eq!(past, Some(3), "T2: ready in spite of a deadline that has passed");
    } else {
        world.barrier().await?;
        fabric.put_word(&fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?, 1).await?;
    }
    Ok(world.barrier().await?)
}

pub(super) async fn computing(fabric: Fabric) -> ProgramResult<()> {
    const LONG: Duration = Duration::from_secs(3600);
    let mut world = Group::world(&fabric).await?;
    let (real, before) = (std::time::Instant::now(), fabric.now());
    fabric.compute(LONG).await;
    let virtual_time = fabric.now() >= before + LONG;
    ensure!(virtual_time || fabric.now() < before + LONG / 60, "T3: neither that long nor free");
    fabric.charge("a layer nobody knows").await;
    fabric.charge_bytes("a layer nobody knows", usize::MAX).await;
    ensure!(real.elapsed() < LONG / 60, "T3: computing took real time");
    // All ranks computed at the same time, so one hour has passed, not one for each rank.
    world.barrier().await?;
    ensure!(fabric.now() < before + LONG + LONG / 2, "T3: another rank's computing was charged to this one");
    let all = world.allgather(u64::from(virtual_time)).await?;
    ensure!(all.iter().all(|theirs| *theirs == all[0]), "T3: ranks live in different kinds of time");
    Ok(())
}
