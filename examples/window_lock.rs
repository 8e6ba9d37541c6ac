//! A record in one rank's memory, kept consistent by a lock in another's.
//!
//! Writers read the record, check that it is not torn, and put a new version; readers check that
//! all its words belong to one version. Run it between real processes, and in virtual time:
//!
//! ```text
//! cargo example window_lock --release -- --ranks 4
//! cargo example window_lock --release -- --ranks 4 --fabric virt
//! ```

use onesided::{Group, ProgramResult, Rank, lock::RwLock};
use rdma_fabric::Fabric;

/// The number of words in the record.
const WORDS: usize = 32;

/// Each rank writes `rounds` versions and reads as often.
async fn window_lock(fabric: Fabric, rounds: u64) -> ProgramResult<()> {
    let ranks = fabric.ranks() as u32;
    let (lock_home, data_home) = (Rank::new(0), Rank::new(1 % ranks));
    let mut world = Group::world(&fabric).await?;
    let window = fabric.alloc_symmetric(WORDS * 8).await?;
    let record = fabric.remote_span::<u64>(window.at(data_home, 0), WORDS)?;
    let lock = RwLock::symmetric(&fabric, lock_home).await?;
    world.barrier().await?;

    let start = fabric.now();
    let mut buffer = vec![0; WORDS];
    for _ in 0..rounds {
        let guard = lock.write().await?;
        buffer = fabric.get(&record, buffer).await?;
        let version = whole(&buffer)?;
        buffer.fill(version + 1);
        buffer = fabric.put(&record, buffer).await?;
        guard.release().await?;

        let guard = lock.read().await?;
        buffer = fabric.get(&record, buffer).await?;
        let seen = whole(&buffer)?;
        guard.release().await?;
        if seen <= version {
            return Err(format!("read version {seen} after writing {}", version + 1).into());
        }
    }
    let took = fabric.now() - start;

    world.barrier().await?;
    buffer = fabric.get(&record, buffer).await?;
    let last = whole(&buffer)?;
    if last != rounds * u64::from(ranks) {
        return Err(format!("{last} versions instead of {}", rounds * u64::from(ranks)).into());
    }
    if fabric.rank() == Rank::new(0) {
        println!("{ranks} ranks wrote {last} versions, none torn; {took:?} on rank 0");
    }
    Ok(world.barrier().await?)
}

/// Returns the version, which all words of the record must have in common.
fn whole(record: &[u64]) -> Result<u64, String> {
    match record.iter().find(|&&word| word != record[0]) {
        None => Ok(record[0]),
        Some(word) => Err(format!("torn record: versions {} and {word}", record[0])),
    }
}

fn main() -> std::process::ExitCode {
    onesided::launch(async move |fabric| window_lock(fabric, 1000).await)
}
