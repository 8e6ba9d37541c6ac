//! What a forgotten guard does to the others of its rank.

use rdma_fabric::{Rank, RegionKey, RemoteAddr};
use rma_lock::{LockError, RpLock};
use tofu2_sim::virt::{Job, Platform};

/// The simulator's key of a job's first symmetric region; the lock's first word counts readers.
const FIRST_SYMMETRIC: RegionKey = RegionKey { index: 1 << 31, generation: 0 };
/// One reader, as it counts them.
const READER: u64 = 4;

rdma_fabric::program! {
    async fn leak_one_of_two<F>(fabric: F) -> u64 {
        let lock = RpLock::symmetric(&fabric, Rank::new(0)).await?;
        let kept = lock.read().await?;
        drop(lock.read().await?);
        assert_eq!(lock.read().await.unwrap_err(), LockError::GuardLeaked);
        assert_eq!(lock.try_write().await.unwrap_err(), LockError::GuardLeaked);
        kept.release().await?;
        let count = RemoteAddr { rank: Rank::new(0), region: FIRST_SYMMETRIC, offset: 0 };
        Ok(fabric.get_word(&fabric.remote_word::<u64>(count)?).await?)
    }
}

#[test]
fn a_leak_is_reported_and_other_guards_can_still_be_released() {
    let run = Job::new(&Platform::fx100(), 1).run(&leak_one_of_two {}).unwrap();
    assert_eq!(run.outs, [READER], "only the forgotten guard's reader is left");
}
