//! Regions that are dropped while peers use them.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{
    Amo, Deps, Fabric, FabricError, Group, ProgramResult, Rank, Refused, Region, RegionKey, RemoteAddr, op,
};
use std::time::Duration;

/// A rank that has resolved a key knows of the drop before the owner's next operation arrives.
pub(super) async fn a_drop_is_known_before_the_owners_next_put(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, flags) = world_and_region(&fabric, 8).await?;
    let owner = Rank::new(0);
    for round in 1..=20u64 {
        let mine = (fabric.rank() == owner).then(|| fabric.alloc(256)).transpose()?;
        let key = world.broadcast(0, mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, Region::key)).await?;
        let addr = RemoteAddr { rank: owner, region: key, offset: 0 };
        let resolved = (fabric.remote_word::<u64>(addr)?, fabric.remote_span::<u8>(addr, 256)?);
        fabric.put_word(&resolved.0, round).await?;
        fabric.get(&resolved.1, vec![0u8; 256]).await?;
        fabric.flush(owner).await?;
        world.barrier().await?;
        if let Some(mine) = mine {
            drop(mine);
            for rank in (1..fabric.ranks() as u32).map(Rank::new) {
                fabric.put_word(&fabric.remote_word::<u64>(flags.at(rank, 0))?, round).await?;
            }
            continue;
        }
        fabric.wait_until(&flags.word::<u64>(&fabric, 0)?, Deps::One(owner), |word| word == round).await?;
        let stale = Some(FabricError::StaleRegion { rank: owner, region: key });
        let got = [
            fabric.get_word(&resolved.0).await.err(),
            fabric.get(&resolved.1, vec![0u8; 256]).await.err(),
            fabric.remote_word::<u64>(addr).err(),
        ];
        ensure!(got.iter().all(|error| *error == stale), "M3: after the owner's next put: {got:?}");
    }
    Ok(world.barrier().await?)
}

/// Puts that are too late for a dropped region, of any length, do not write to a later one.
pub(super) async fn late_puts_land_nowhere(fabric: Fabric) -> ProgramResult<()> {
    const LEN: usize = 30_000;
    let mut world = Group::world(&fabric).await?;
    let owner = Rank::new(0);
    for round in 0..5u64 {
        let mine = (fabric.rank() == owner).then(|| fabric.alloc(LEN)).transpose()?;
        let key = world.broadcast(0, mine.as_ref().map_or(RegionKey { index: 0, generation: 0 }, Region::key)).await?;
        if let Some(mine) = mine {
            fabric.sleep(Duration::from_micros(100 * round)).await;
            drop(mine);
            for _ in 0..20 {
                let later = fabric.alloc(LEN)?;
                let span = later.span::<u8>(&fabric, 0, LEN)?;
                let mut bytes = vec![1u8; LEN];
                fabric.read(&span, &mut bytes)?;
                ensure!(bytes.iter().all(|byte| *byte == 0), "M3, O4: bytes of a put that was too late");
                fabric.sleep(Duration::from_micros(50)).await;
                fabric.read(&span, &mut bytes)?;
                ensure!(bytes.iter().all(|byte| *byte == 0), "M3, O4: bytes of a put that was later still");
            }
        } else {
            let addr = RemoteAddr { rank: owner, region: key, offset: 0 };
            let error = loop {
                let outcome = match fabric.remote_span::<u8>(addr, LEN) {
                    Ok(span) => match fabric.put(&span, vec![7u8; LEN]).await {
                        Ok(_) => fabric.flush(owner).await,
                        Err(error) => Err(error),
                    },
                    Err(error) => Err(error),
                };
                if let Err(error) = outcome {
                    break error;
                }
            };
            ensure_eq!(error, FabricError::StaleRegion { rank: owner, region: key }, "M3: a put after the drop");
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn a_dropped_region_is_stale(fabric: Fabric) -> ProgramResult<()> {
    let mut world = Group::world(&fabric).await?;
    let owner = Rank::new(1);
    let beside = fabric.alloc_symmetric(8).await?;
    let region = fabric.alloc(64)?;
    let key = world.broadcast(1, region.key()).await?;
    let addr = RemoteAddr { rank: owner, region: key, offset: 0 };
    let (word, span) = (fabric.remote_word::<u64>(addr)?, fabric.remote_span::<u8>(addr, 5)?);
    fabric.put_word(&word, 3).await?;
    fabric.flush(owner).await?;
    world.barrier().await?;
    let (own, part) = (region.word::<u64>(&fabric, 0)?, region.span::<u8>(&fabric, 8, 5)?);
    drop(region);
    world.barrier().await?;
    // The memory may have been reused, which must not revive the key.
    let again = fabric.alloc(64)?;
    world.barrier().await?;
    let stale = FabricError::StaleRegion { rank: owner, region: key };
    let stale_now = stale.clone();
    ensure_eq!(fabric.remote_word::<u64>(addr).err(), Some(stale.clone()), "M3: resolving");
    ensure_eq!(fabric.get_word(&word).await.err(), Some(stale.clone()), "M3: a get");
    ensure_eq!(fabric.fetch_add(&word, 1).await.err(), Some(stale.clone()), "M3: an atomic");
    match fabric.try_post(op::Put { to: &span, from: vec![1u8; 5], notice: None }) {
        // A put's error may also come with its handle, or with the next flush.
        Ok(handle) => {
            let outcome = match handle.await {
                Ok(_) => fabric.flush(owner).await.err(),
                Err(error) => Some(error),
            };
            ensure_eq!(outcome, Some(stale), "M3: a put");
        }
        Err(Refused::Failed(error, put)) => {
            ensure_eq!((error, put.from), (stale, vec![1u8; 5]), "M3: a put");
        }
        Err(Refused::Full(_)) => return Err("O1: full without anything posted".into()),
    }
    let mut gone = vec![fabric.put_word(&word, 1).await.err(), fabric.put_notify(&span, [1u8; 5], 1).await.err()];
    gone.push(fabric.get(&span, [0u8; 5]).await.err());
    gone.push(fabric.get(&span.slice(1..2)?, [0u8]).await.err());
    for amo in [Amo::Swap(1), Amo::CompareSwap { expected: 3, new: 1 }, Amo::Or(1), Amo::And(1), Amo::Xor(1)] {
        gone.push(fabric.atomic(&word, amo).await.err());
    }
    ensure!(gone.iter().all(|e| *e == Some(stale_now.clone())), "M3: {gone:?}");
    // Local memory, also as the local end of an operation on remote memory that still exists.
    let there = fabric.remote_span::<u8>(beside.at(owner, 0), 5)?;
    let mut bytes = [0u8; 5];
    let gone = [
        ("a read", fabric.read(&part, &mut bytes).err()),
        ("a write", fabric.write(&part, &bytes).err()),
        ("a put's source", fabric.put(&there, part.clone()).await.err()),
        ("a get's sink", fabric.get(&there, part.clone()).await.err()),
        ("a load", fabric.load(&own).err()),
        ("a store", fabric.store(&own, 1).err()),
        ("a wait", fabric.wait_until(&own, Deps::All, |_| true).await.err()),
    ];
    for (what, end) in gone {
        ensure!(matches!(end, Some(FabricError::StaleRegion { .. })), "M3: {what} of own memory: {end:?}");
    }
    let mut bytes = [1u8; 64];
    fabric.read(&again.span(&fabric, 0, 64)?, &mut bytes)?;
    ensure_eq!(bytes, [0; 64], "M3: memory that took the place");
    Ok(world.barrier().await?)
}

pub(super) async fn symmetric_parts_end_alone(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let key = region.key();
    let at = |rank| RemoteAddr { rank: Rank::new(rank), region: key, offset: 0 };
    let words = (0..fabric.ranks() as u32).map(|rank| fabric.remote_word::<u64>(at(rank)));
    let words = words.collect::<Result<Vec<_>, _>>()?;
    world.barrier().await?;
    let region = (fabric.rank() != Rank::new(1)).then_some(region);
    world.barrier().await?;
    for (rank, word) in words.iter().enumerate() {
        let added = fabric.fetch_add(word, 1).await;
        if rank == 1 {
            let stale = FabricError::StaleRegion { rank: Rank::new(1), region: key };
            ensure_eq!(added, Err(stale), "M3: the part that was dropped");
        } else {
            ensure!(added.is_ok(), "M8: the part of rank {rank}: {added:?}");
        }
    }
    world.barrier().await?;
    drop(region);
    // Once all parts are dropped, the memory may be reused, under a different key.
    world.barrier().await?;
    let again = fabric.alloc_symmetric(8).await?;
    ensure!(again.key() != key, "M3: a key came to life again");
    ensure_eq!(fabric.load(&again.word::<u64>(&fabric, 0)?)?, 0, "M2: zeroed");
    Ok(world.barrier().await?)
}
