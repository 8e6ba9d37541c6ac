//! A counter and a histogram in one rank's memory, under a lock that cannot be bypassed.
//!
//! If the ranks share memory, a holder counts in place; otherwise it gets and puts copies. Run it
//! between real processes, and in virtual time:
//!
//! ```text
//! cargo example shared_counter --release -- --ranks 4
//! cargo example shared_counter --release -- --ranks 4 --fabric virt
//! ```

use onesided::{
    Group, ProgramResult, Rank,
    lock::{Locked, LockedWriteGuard},
};
use rdma_fabric::Fabric;

/// The number of values. The first shared element counts all samples, the others the occurrences of
/// each value.
const BINS: usize = 16;

/// Returns the samples that a rank counts, which differ from rank to rank.
fn samples(rank: Rank) -> impl Iterator<Item = usize> {
    let mut random = fastrand::Rng::with_seed(u64::from(rank.number()));
    std::iter::repeat_with(move || random.usize(..BINS))
}

/// Counts one sample in `home`'s memory.
async fn count(guard: &mut LockedWriteGuard<'_, u64>, home: Rank, bin: usize) -> Result<(), onesided::lock::LockError> {
    if guard.locked().maps() {
        let counts = guard.part_mut(home)?;
        counts[0] += 1;
        counts[1 + bin] += 1;
    } else {
        let mut counts = guard.get(home, 0..1 + BINS).await?;
        counts[0] += 1;
        counts[1 + bin] += 1;
        guard.put(home, 0, counts).await?;
    }
    Ok(())
}

/// Each rank counts `rounds` samples.
async fn shared_counter(fabric: Fabric, rounds: usize) -> ProgramResult<()> {
    let (lock_home, home) = (Rank::new(0), Rank::new(fabric.ranks() as u32 - 1));
    let mut world = Group::world(&fabric).await?;
    let counts = Locked::<u64>::symmetric(&fabric, lock_home, 1 + BINS).await?;
    world.barrier().await?;

    let start = fabric.now();
    for bin in samples(fabric.rank()).take(rounds) {
        let mut guard = counts.write().await?;
        count(&mut guard, home, bin).await?;
        guard.release().await?;
    }
    let took = fabric.now() - start;
    world.barrier().await?;

    // The expected counts, computed by this rank alone.
    let mut want = vec![0; 1 + BINS];
    for bin in (0..fabric.ranks() as u32).flat_map(|rank| samples(Rank::new(rank)).take(rounds)) {
        want[0] += 1;
        want[1 + bin] += 1;
    }
    let guard = counts.read().await?;
    let got = guard.get(home, 0..1 + BINS).await?;
    guard.release().await?;
    if got != want {
        return Err(format!("counted {got:?} instead of {want:?}").into());
    }
    if fabric.rank() == home {
        let way = if counts.maps() { "by reference" } else { "by copies" };
        println!("{} samples counted {way}, none lost; {took:?} on {home}: {:?}", got[0], &got[1..]);
    }
    Ok(world.barrier().await?)
}

fn main() -> std::process::ExitCode {
    onesided::launch(async move |fabric| shared_counter(fabric, 300).await)
}
