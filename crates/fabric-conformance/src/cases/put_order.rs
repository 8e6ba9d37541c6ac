//! The order of puts among themselves.

use super::{neighbour, world_and_region};
use crate::ensure;
use rdma_fabric::{Deps, Fabric, ProgramResult};

/// A rank that sees any word of a later put sees all of an earlier one, if that is guaranteed.
pub(super) async fn puts_become_visible_in_order(fabric: Fabric) -> ProgramResult<()> {
    const ROUNDS: u64 = 150;
    /// The number of words of the earlier and the later put.
    const PAIRS: [(usize, usize); 9] =
        [(1, 1), (8, 1), (9, 1), (100, 1), (600, 1), (3_000, 1), (1, 600), (600, 9), (3_000, 3_000)];
    let (mut world, region) = world_and_region(&fabric, 2 * 24_000 + 64).await?;
    if !fabric.caps().puts_in_order {
        return Ok(world.barrier().await?);
    }
    let (peer, own) = (neighbour(&fabric), fabric.alloc_symmetric(24_000).await?);
    for (turn, (early, late)) in PAIRS.into_iter().enumerate() {
        let (first, from) = (turn as u64 * ROUNDS + 1, if turn.is_multiple_of(2) { (0, 24_032) } else { (24_032, 0) });
        let rounds = first..first + ROUNDS;
        if fabric.rank().index().is_multiple_of(2) {
            let earlier = fabric.remote_span::<u64>(region.at(peer, from.0), early)?;
            let later = fabric.remote_span::<u64>(region.at(peer, from.1), late)?;
            let copied = fabric.remote_span::<u64>(own.at(fabric.rank(), 0), late)?;
            for round in rounds {
                fabric.put(&earlier, vec![round; early]).await?;
                if round.is_multiple_of(3) {
                    fabric.write(&own.span(&fabric, 0, late)?, &vec![round; late])?;
                    fabric.copy(&later, &copied).await?;
                } else {
                    fabric.put(&later, vec![round; late]).await?;
                }
            }
        } else {
            let (earlier, later) = (from.0 as usize, from.1 as usize);
            let (mut all, mut any) = (vec![0; early], vec![0; late]);
            let last = region.word::<u64>(&fabric, later + 8 * (late - 1))?;
            let mut seen = first - 1;
            while seen + 1 < rounds.end {
                fabric.wait_until(&last, Deps::One(peer), |round| round > seen).await?;
                fabric.read(&region.span(&fabric, later, late)?, &mut any)?;
                seen = any.iter().copied().max().unwrap_or(0);
                fabric.read(&region.span(&fabric, earlier, early)?, &mut all)?;
                let oldest = all.iter().copied().min().unwrap_or(0);
                ensure!(oldest >= seen, "O17: {early} words of round {oldest} behind {late} of round {seen}");
            }
        }
        world.barrier().await?;
    }
    Ok(())
}
