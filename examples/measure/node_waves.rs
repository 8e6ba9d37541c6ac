//! The time of a wave of readers: all ranks take the lock shared and release it, in virtual time on
//! FX100 with latencies only.
//!
//! `node_waves NODES RANKS_PER_NODE LOCK`, where `LOCK` is a [`LockKind`], such as `by-node`
//! or `tree-64`; without arguments, 128 nodes of 8 ranks with a flat lock, one by node and one in a
//! tree.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{Guard, RmaLock, locks::LockKind, with_lock};
use std::{env, error::Error, time::Instant};
use tofu2_sim::virt::{Job, Platform};

const HOME: Rank = Rank::new(0);

/// Takes and releases the lock once, together with all others. Returns the time taken by this rank,
/// in picoseconds.
async fn wave<L: RmaLock>(fabric: Fabric, options: L::Options) -> ProgramResult<u64> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let mut world = Group::world(&fabric).await?;
    world.barrier().await?;
    let begun = fabric.now();
    let guard = lock.read().await?;
    guard.release().await?;
    let took = fabric.now().picos_since(begun);
    world.barrier().await?;
    Ok(took)
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, default: u32| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let (nodes, ranks_per_node) = (number(0, 128)?, number(1, 8)?);
    let kinds = match arguments.get(2) {
        None => vec![LockKind::ReaderPreference, LockKind::ByNode, LockKind::Tree { radix: 64 }],
        Some(name) => vec![name.parse()?],
    };
    for kind in kinds {
        let start = Instant::now();
        let job = Job::new(&Platform::fx100(), (nodes * ranks_per_node) as usize).ranks_per_node(ranks_per_node);
        let run = job.run(&async |fabric| with_lock!(kind, L, options => wave::<L>(fabric, options).await))?;
        let slowest = run.outs.iter().max().copied().unwrap_or(0);
        println!(
            "{nodes} x {ranks_per_node}, {kind}: slowest rank {:.3} ms ({:.1} s to simulate)",
            slowest as f64 / 1e9,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
