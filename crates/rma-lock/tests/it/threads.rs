//! The locks over thread ranks: real memory, real interleavings, and Miri's weak memory
//! (`cargo xtask miri`).

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Guard, RmaLock, locks::LockKind, with_lock};
use tofu2_sim::shm::Threads;

const ROUNDS: u64 = if cfg!(miri) { 2 } else { 300 };
const RANKS: usize = 4;
/// Ranks per node, so that there appears to be more than one node.
const RANKS_PER_NODE: usize = 2;

/// Writers move two words at a time; readers must never see them apart.
async fn two_words(fabric: Fabric, lock: LockKind, rounds: u64) -> ProgramResult<u64> {
    with_lock!(lock, L => move_words::<L>(fabric, rounds).await)
}

async fn move_words<L: RmaLock>(fabric: Fabric, rounds: u64) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(16).await?;
    let home = Rank::new(0);
    let lock = L::symmetric(&fabric, home).await?;
    let (a, b) = (fabric.remote_word::<u64>(window.at(home, 0))?, fabric.remote_word::<u64>(window.at(home, 8))?);
    for round in 0..rounds {
        if (round + u64::from(fabric.rank().number())).is_multiple_of(2) {
            let guard = lock.write().await?;
            let (old_a, old_b) = (fabric.get_word(&a).await?, fabric.get_word(&b).await?);
            assert_eq!(old_a, old_b, "two writers");
            fabric.put_word(&a, old_a + 1).await?;
            fabric.put_word(&b, old_b + 1).await?;
            guard.release().await?;
        } else {
            let guard = lock.read().await?;
            assert_eq!(fabric.get_word(&a).await?, fabric.get_word(&b).await?, "a writer beside a reader");
            guard.release().await?;
        }
    }
    world.barrier().await?;
    let sum = fabric.get_word(&a).await?;
    world.barrier().await?;
    Ok(sum)
}

#[test]
fn readers_and_writers_exclude_each_other() {
    let writes =
        (0..RANKS as u64).map(|rank| (0..ROUNDS).filter(|round| (round + rank).is_multiple_of(2)).count() as u64);
    let writes: u64 = writes.sum();
    for lock in LockKind::ALL {
        let sums = Threads::new(RANKS)
            .ranks_per_node(RANKS_PER_NODE)
            .segment_bytes(1 << 16)
            .run(&async |fabric| two_words(fabric, lock, ROUNDS).await)
            .unwrap();
        assert_eq!(sums, vec![writes; RANKS], "{lock}");
    }
}
