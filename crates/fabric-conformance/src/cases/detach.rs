//! Dropped futures: sentences D1–D3.

use super::world_and_region;
use crate::ensure_eq;
use rdma_fabric::{Deps, Fabric, ProgramResult, Rank};

const HOME: Rank = Rank::new(0);

/// Every other rank detaches a chain of operations, each of which needs the one before, and returns
/// at once. Rank 0 sees all of them happen, though the ranks it depends on have nothing else to do.
pub(super) async fn is_run_to_its_end(fabric: Fabric) -> ProgramResult<()> {
    let region = fabric.alloc_symmetric(32).await?;
    let others = fabric.ranks() as u64 - 1;
    if fabric.rank() == HOME {
        let flags = region.word::<u64>(&fabric, 16)?;
        let met = fabric.wait_until(&flags, Deps::All, |count| count == others).await;
        ensure_eq!(met, Ok(others), "D2: a rank left before what it had detached was over");
        let tickets = fabric.load(&region.word::<u64>(&fabric, 0)?)?;
        ensure_eq!(tickets, others, "D1: operations that were never posted");
        let sum = fabric.load(&region.word::<u64>(&fabric, 8)?)?;
        ensure_eq!(sum, others * (others + 1) / 2, "D1: results awaited by a detached future");
        return Ok(());
    }
    let rank = fabric.clone();
    fabric.detach(async move {
        let chain = async {
            let word = |offset| rank.remote_word::<u64>(region.at(HOME, offset));
            let mine = rank.remote_word::<u64>(region.at(rank.rank(), 24))?;
            let ticket = rank.fetch_add(&word(0)?, 1).await?;
            rank.put_word(&mine, ticket + 1).await?;
            rank.flush(rank.rank()).await?;
            let number = rank.get_word(&mine).await?;
            rank.fetch_add(&word(8)?, number).await?;
            rank.fetch_add(&word(16)?, 1).await
        };
        chain.await.expect("rank 0 waits for this");
    });
    Ok(())
}

/// A future that a detached future detaches runs as well, and the program continues alongside both.
pub(super) async fn may_detach_in_turn(fabric: Fabric) -> ProgramResult<()> {
    let (mut world, region) = world_and_region(&fabric, 8).await?;
    let key = region.key();
    let word = move |fabric: &Fabric| {
        fabric.remote_word::<u64>(rdma_fabric::RemoteAddr { rank: HOME, region: key, offset: 0 })
    };
    world.barrier().await?;
    let outer = fabric.clone();
    fabric.detach(async move {
        outer.fetch_add(&word(&outer).expect("registered"), 1).await.expect("registered");
        let inner = outer.clone();
        outer.detach(async move {
            inner.fetch_add(&word(&inner).expect("registered"), 1).await.expect("registered");
        });
    });
    fabric.fetch_add(&word(&fabric)?, 1).await?;
    if fabric.rank() == HOME {
        let all = 3 * fabric.ranks() as u64;
        let own = region.word::<u64>(&fabric, 0)?;
        let met = fabric.wait_until(&own, Deps::All, |count| count == all).await;
        ensure_eq!(met, Ok(all), "D1: not everything detached was done");
    }
    // The region outlives all of these operations.
    Ok(world.barrier().await?)
}
