//! The locks over thread ranks: real memory, real interleavings, and Miri's weak memory
//! (`cargo xtask miri`).

use checks::jobs::threads;
use rdma_fabric::{Fabric, Group, Program, ProgramResult, Rank};
use rma_lock::{Guard, RmaLock, locks::LockKind, with_lock};
use std::fmt::Display;

const ROUNDS: u64 = if cfg!(miri) { 2 } else { 300 };
const RANKS: usize = 4;
/// The number of ranks per node, so that there appears to be more than one node.
const RANKS_PER_NODE: usize = 2;

/// Writers change two words together; readers must never see them differ. Returns the first word.
pub(crate) async fn move_words<L: RmaLock>(fabric: Fabric, options: L::Options) -> ProgramResult<u64> {
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(16).await?;
    let home = Rank::new(0);
    let lock = L::symmetric_with(&fabric, home, options).await?;
    let (a, b) = (fabric.remote_word::<u64>(window.at(home, 0))?, fabric.remote_word::<u64>(window.at(home, 8))?);
    for round in 0..ROUNDS {
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

/// Runs a job of a program that is [`move_words`] with some lock. Panics with the name of the
/// `lock` if a rank fails or a write is lost.
pub(crate) fn check_words(lock: impl Display, program: &impl Program<Out = u64>) {
    let turns = (0..RANKS as u64).flat_map(|rank| (0..ROUNDS).map(move |round| rank + round));
    let writes = turns.filter(|turn| turn.is_multiple_of(2)).count() as u64;
    let sums = threads(RANKS).ranks_per_node(RANKS_PER_NODE).segment_bytes(1 << 16).run(program);
    let sums = sums.unwrap_or_else(|error| panic!("{lock}: {error}"));
    assert_eq!(sums, vec![writes; RANKS], "{lock}");
}

#[test]
fn readers_and_writers_exclude_each_other() {
    for lock in LockKind::ALL {
        check_words(lock, &async |fabric| with_lock!(lock, L, options => move_words::<L>(fabric, options).await));
    }
}
