//! The locks with 16 ranks.

use crate::which::{ALL, Which, with_lock};
use crate::{
    provider::Shuttle,
    suite::{
        provider::Provider,
        verdict::{ensure, ensure_eq},
    },
};
use rdma_fabric::{Deps, Fabric, Group, ProgramResult, Rank, Region, RegionAccess, program};
use rma_lock::{Guard, LockError, RmaLock};
use std::time::Duration;

program! {
    /// Two words that writers change together, and readers must find equal; a third counts who is inside.
    async fn pairs<F>(fabric: F, which: Which, rounds: u64) -> () {
        with_lock!(which, change::<F>(fabric, rounds))
    }
}

async fn change<F: Fabric, L: RmaLock<F>>(fabric: F, rounds: u64) -> ProgramResult<()> {
    let home = Rank::new(0);
    let lock = L::symmetric(&fabric, home).await?;
    let region = fabric.alloc_symmetric(24).await?;
    let mut world = Group::world(&fabric).await?;
    let at = |i: u64| fabric.remote_word::<u64>(region.at(home, 8 * i));
    let (a, b, inside) = (at(0)?, at(1)?, at(2)?);
    let mut wrote = 0u64;
    for round in 0..rounds {
        match (fabric.rank().number() as u64 + round) % 3 {
            0 => {
                let guard = lock.write().await?;
                ensure_eq!(fabric.fetch_add(&inside, 1000).await?, 0, "a writer is not alone");
                let value = fabric.get_word(&a).await?;
                fabric.put_word(&a, value + 1).await?;
                fabric.put_word(&b, value + 1).await?;
                fabric.fetch_add(&inside, 1000u64.wrapping_neg()).await?;
                guard.release().await?;
                wrote += 1;
            }
            1 => {
                let guard = lock.read().await?;
                ensure!(fabric.fetch_add(&inside, 1).await? < 1000, "a reader met a writer");
                let pair = (fabric.get_word(&a).await?, fabric.get_word(&b).await?);
                ensure_eq!(pair.0, pair.1, "a reader saw half of what a writer wrote");
                fabric.fetch_add(&inside, 1u64.wrapping_neg()).await?;
                guard.release().await?;
            }
            _ => match lock.write_before(fabric.now() + Duration::from_micros(1)).await {
                Err(LockError::TimedOut) => {}
                Err(error) => return Err(error.into()),
                Ok(guard) => {
                    ensure_eq!(fabric.fetch_add(&inside, 1000).await?, 0, "a writer is not alone");
                    let value = fabric.get_word(&b).await?;
                    fabric.put_word(&b, value + 1).await?;
                    fabric.put_word(&a, value + 1).await?;
                    fabric.fetch_add(&inside, 1000u64.wrapping_neg()).await?;
                    guard.release().await?;
                    wrote += 1;
                }
            },
        }
    }
    let wrote: u64 = world.allgather(wrote).await?.into_iter().sum();
    ensure_eq!(fabric.get_word(&a).await?, wrote, "writes that were not lost");
    // The home's words live until all have looked.
    let done = fabric.remote_word::<u64>(region.at(home, 16))?;
    fabric.fetch_add(&done, 1).await?;
    if fabric.rank() == home {
        let all = fabric.ranks() as u64;
        fabric.wait_until(&region.word::<u64>(&fabric, 16)?, Deps::All, |count| count == all).await?;
    }
    world.barrier().await?;
    Ok(())
}

#[test]
fn sixteen_ranks_read_and_write() {
    for which in ALL {
        Shuttle::check(&[2], "lock::sixteen_ranks_read_and_write", &pairs { which, rounds: 3 });
    }
}
