//! No key leads to memory under a lock, except through the lock.

use super::{HOME, RANKS, everywhere};
use rdma_fabric::{AtomicWord, Deps, Fabric, FabricError, Group, ProgramResult, Rank, RegionKey, RemoteAddr};
use rma_lock::Locked;

/// Returns whether `outcome` is the refusal of a locked region.
fn locked_out<T>(outcome: rdma_fabric::Result<T>) -> bool {
    matches!(outcome, Err(FabricError::Locked { .. }))
}

/// Returns whether every form of access to the bytes at `addr` is refused.
fn is_shut(fabric: &Fabric, addr: RemoteAddr) -> bool {
    let own = addr.rank == fabric.rank();
    locked_out(fabric.remote_word::<u64>(addr))
        && locked_out(fabric.remote_word::<u32>(addr))
        && locked_out(fabric.remote_span::<u8>(addr, 8))
        && locked_out(fabric.provider().resolve(addr, 8, 1, 1))
        && locked_out(fabric.provider().resolve(addr, 0, 1, 1))
        && (!own || locked_out(fabric.local_word::<u64>(addr)) && locked_out(fabric.local_span::<u64>(addr, 1)))
}

/// Guesses all keys; returns the number of keys that belong to locked regions.
async fn guess(fabric: Fabric) -> ProgramResult<usize> {
    let mut world = Group::world(&fabric).await?;
    let locked = Locked::<u64>::symmetric(&fabric, HOME, 8).await?;
    let mut guard = locked.write().await?;
    if fabric.rank() == HOME {
        for rank in 0..fabric.ranks() as u32 {
            guard.put(Rank::new(rank), 0, vec![7; 8]).await?;
        }
    }
    guard.release().await?;
    world.barrier().await?;
    let mut shut = 0;
    let indices = (0..if cfg!(miri) { 8 } else { 4200 }).flat_map(|index| [index, index | 1 << 31]);
    for (index, generation) in indices.flat_map(|index| (0..6).map(move |generation| (index, generation))) {
        for rank in 0..fabric.ranks() as u32 {
            let at = |offset| RemoteAddr { rank: Rank::new(rank), region: RegionKey { index, generation }, offset };
            if locked_out(fabric.remote_word::<u64>(at(0))) {
                shut += 1;
                for offset in [0, 64, 72, 120, 1 << 20, u64::MAX] {
                    assert!(is_shut(&fabric, at(offset)), "{:?}", at(offset));
                }
            }
        }
    }
    let guard = locked.read().await?;
    for rank in 0..fabric.ranks() as u32 {
        assert_eq!(guard.get(Rank::new(rank), 0..8).await?, [7; 8]);
    }
    guard.release().await?;
    world.barrier().await?;
    // A wait on a word of this rank's own memory must also resolve the word first, so it does not
    // grant access either.
    let word = fabric.alloc(8)?;
    let word = word.word::<u64>(&fabric, 0)?;
    fabric.wait_until(&word, Deps::All, |value| value == u64::from_bits(0)).await?;
    Ok(shut)
}

#[test]
fn keys_that_are_guessed_lead_nowhere() {
    for outs in everywhere(&guess) {
        // Each rank's memory and its lock words.
        assert_eq!(outs, [2 * RANKS; RANKS]);
    }
}
