//! Guards that are dropped instead of released.

use checks::jobs::virtual_time;
use rdma_fabric::{Fabric, ProgramResult, Rank, RegionKey, RemoteAddr};
use rma_lock::{Guard, Lock, RmaLock, locks::RpLock};
use tofu2_sim::virt::Platform;

/// The simulator's key of a job's first symmetric region; the lock's first word counts readers.
const FIRST_SYMMETRIC: RegionKey = RegionKey { index: 1 << 31, generation: 0 };
/// The amount by which that word counts one reader.
const READER: u64 = 4;

async fn drop_guards(fabric: Fabric) -> ProgramResult<Vec<u64>> {
    let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
    let count = RemoteAddr { rank: Rank::new(0), region: FIRST_SYMMETRIC, offset: 0 };
    let count = fabric.remote_word::<u64>(count)?;
    let mut seen = Vec::new();
    let kept = lock.read().await?;
    drop(lock.read().await?);
    // Its departure is in flight, and others can enter in the meantime.
    let third = lock.read().await?;
    third.release().await?;
    seen.push(fabric.get_word(&count).await?);
    kept.release().await?;
    drop(lock.write().await?);
    drop(lock.write().await?);
    seen.push(fabric.get_word(&count).await? & !3);
    lock.write().await?.release().await?;
    seen.push(fabric.get_word(&count).await?);
    Ok(seen)
}

#[test]
fn a_dropped_guard_is_released_in_the_background() {
    let run = virtual_time(&Platform::fx100(), 1).run(&drop_guards).unwrap();
    assert_eq!(run.outs, [[READER, 0, 0]]);
}
