//! Atomics.

use super::world_and_region;
use crate::{ensure, ensure_eq};
use rdma_fabric::{Amo, AtomicWord, Atomics, Fabric, FabricError, ProgramResult, Rank, Region, Result, op};

/// Checks every operation on one word against the arithmetic of [`Amo::apply`]; neighbours keep
/// their values.
async fn on_word<W: AtomicWord>(
    fabric: &Fabric,
    region: &Region,
    target: Rank,
    values: [W; 4],
) -> Result<Result<(), String>> {
    let at = |i: usize| fabric.remote_word::<W>(region.at(target, (64 + i * W::BYTES) as u64));
    let (word, guard) = (at(1)?, W::from_bits(0x5a5a_5a5a_5a5a_5a5a));
    for beside in [at(0)?, at(2)?] {
        fabric.swap(&beside, guard).await?;
    }
    let mut expected = fabric.get_word(&word).await?;
    for v in values {
        let mut amos = vec![Amo::Add(v), Amo::Swap(v), Amo::Or(v), Amo::And(v), Amo::Xor(v)];
        amos.push(Amo::CompareSwap { expected: v, new: values[0] });
        for amo in amos {
            // Compare-and-swap runs again with an expectation that holds.
            let matching = match amo {
                Amo::CompareSwap { new, .. } => Some(Amo::CompareSwap { expected: amo.apply(expected), new }),
                _ => None,
            };
            for amo in [Some(amo), matching].into_iter().flatten() {
                let old = fabric.post(op::Atomic { word: &word, amo }).await?.await?;
                let new = amo.apply(expected);
                let now = fabric.get_word(&word).await?;
                if old != expected || now != new {
                    return Ok(Err(format!("{amo:?} on {expected:?} returned {old:?} and left {now:?}")));
                }
                expected = new;
            }
        }
    }
    for beside in [at(0)?, at(2)?] {
        let value = fabric.get_word(&beside).await?;
        if value != guard {
            return Ok(Err(format!("a neighbour changed to {value:?}")));
        }
    }
    fabric.swap(&word, W::from_bits(0)).await?;
    Ok(Ok(()))
}

pub(super) async fn arithmetic_at_every_width(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 128).await?;
    for turn in 0..fabric.ranks() {
        if fabric.rank().index() == turn {
            let target = Rank::new(((turn + 1) % fabric.ranks()) as u32);
            on_word::<u32>(&fabric, &region, target, [u32::MAX, 1, 1 << 31 | 1, 7]).await??;
            on_word::<u64>(&fabric, &region, target, [u64::MAX, 1, 1 << 63 | 1, 7]).await??;
        }
        world.barrier().await?;
    }
    Ok(())
}

pub(super) async fn nothing_is_lost(fabric: Fabric) -> ProgramResult<()> {
    const EACH: u64 = 200;
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let home = Rank::new(1);
    let (counter, bits) =
        (fabric.remote_word::<u64>(region.at(home, 0))?, fabric.remote_word::<u32>(region.at(home, 8))?);
    let mut last = None;
    for _ in 0..EACH {
        let old = fabric.fetch_add(&counter, 1).await?;
        ensure!(last.is_none_or(|last| last < old), "O6: {old} after {last:?}");
        last = Some(old);
        // Every rank toggles only its own bit, twice.
        let mine = 1u32 << fabric.rank().index();
        for _ in 0..2 {
            fabric.post(op::Atomic { word: &bits, amo: Amo::Xor(mine) }).await?.await?;
        }
    }
    world.barrier().await?;
    let total = EACH * fabric.ranks() as u64;
    ensure_eq!(fabric.get_word(&counter).await?, total, "O6: additions");
    ensure_eq!(fabric.get_word(&bits).await?, 0, "O6: toggles");
    if fabric.rank() == home {
        ensure_eq!(fabric.load(&region.word::<u64>(&fabric, 0)?)?, total, "O6: seen by the target's CPU");
    }
    Ok(world.barrier().await?)
}

pub(super) async fn one_winner(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let word = fabric.remote_word::<u64>(region.at(Rank::new(0), 0))?;
    for round in 0..20u64 {
        let me = (round + 1) << 8 | fabric.rank().number() as u64;
        let before = if round == 0 { 0 } else { round << 8 | 0xff };
        let won = fabric.compare_swap(&word, before, me).await? == before;
        let winners = world.allgather([u64::from(won), me]).await?;
        ensure_eq!(winners.iter().filter(|card| card[0] == 1).count(), 1, "O6: winners of round {round}");
        if won {
            ensure_eq!(fabric.swap(&word, (round + 1) << 8 | 0xff).await?, me, "O6: what the winner left");
        }
        world.barrier().await?;
    }
    Ok(())
}

/// Returns whether this network lacks atomics; checks that such a network refuses them.
pub(super) async fn are_missing(fabric: &Fabric) -> ProgramResult<bool> {
    if fabric.caps().atomics != Atomics::None {
        return Ok(false);
    }
    let region = fabric.alloc(8)?;
    let word = fabric.remote_word::<u64>(region.at(fabric.rank(), 0))?;
    let refused = fabric.fetch_add(&word, 1).await;
    ensure_eq!(refused, Err(FabricError::no_atomics_at_all(word.addr())), "O18: caps() deny atomics");
    Ok(true)
}

pub(super) async fn are_there_as_told(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 16).await?;
    let next = Rank::new((fabric.rank().number() + 1) % fabric.ranks() as u32);
    let (wide, narrow) =
        (fabric.remote_word::<u64>(region.at(next, 0))?, fabric.remote_word::<u32>(region.at(next, 8))?);
    fabric.put_word(&wide, 5).await?;
    fabric.flush(next).await?;
    let none = fabric.caps().atomics == Atomics::None;
    let want = |addr, value| if none { Err(FabricError::no_atomics_at_all(addr)) } else { Ok(value) };
    ensure_eq!(fabric.fetch_add(&wide, 2).await, want(wide.addr(), 5), "O18: an atomic awaited");
    ensure_eq!(fabric.fetch_or(&narrow, 3).await.map(u64::from), want(narrow.addr(), 0), "O18: a narrow one");
    let amo = Amo::CompareSwap { expected: 7, new: 9 };
    let posted = match fabric.post(op::Atomic { word: &wide, amo }).await {
        Ok(handle) => handle.await,
        Err(error) => Err(error),
    };
    ensure_eq!(posted, want(wide.addr(), 7), "O18: an atomic posted");
    ensure_eq!(fabric.get_word(&wide).await?, if none { 5 } else { 9 }, "O18: what was refused changes nothing");
    // No rank leaves and drops its memory while others use it.
    Ok(world.barrier().await?)
}
