//! How long a wave of readers takes: all ranks take the lock shared and release it, in virtual time
//! on FX100 with latencies only.
//!
//! `node_waves NODES RANKS_PER_NODE [flat|nodes|tree RADIX]`; without arguments, 128 nodes of 8
//! ranks with each.

use rdma_fabric::{Fabric, Group, ProgramResult, Rank};
use rma_lock::{
    Guard, RmaLock,
    locks::{Aggregated, AggregatedOptions, Levels, RpLock},
};
use std::{env, error::Error, time::Instant};
use tofu2_sim::virt::{Job, Platform};

const HOME: Rank = Rank::new(0);

/// Takes and releases the lock once, together with all others. Returns how long that took this
/// rank, in picoseconds.
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

/// Runs a wave over a lock with these levels; with none, over the flat lock.
async fn once(fabric: Fabric, levels: Option<Levels>) -> ProgramResult<u64> {
    match levels {
        None => wave::<RpLock>(fabric, ()).await,
        Some(levels) => wave::<Aggregated<RpLock>>(fabric, AggregatedOptions { levels, lock: () }).await,
    }
}

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let number = |place: usize, default: u32| arguments.get(place).map_or(Ok(default), |text| text.parse());
    let (nodes, ranks_per_node, radix) = (number(0, 128)?, number(1, 8)?, number(3, 64)?);
    let tree = Some(Levels::Tree { radix });
    let wanted = match arguments.get(2).map(String::as_str) {
        None => vec![None, Some(Levels::Nodes), tree],
        Some("flat") => vec![None],
        Some("nodes") => vec![Some(Levels::Nodes)],
        Some("tree") => vec![tree],
        Some(other) => return Err(format!("{other} is no lock: flat, nodes or tree").into()),
    };
    for levels in wanted {
        let start = Instant::now();
        let job = Job::new(&Platform::fx100(), (nodes * ranks_per_node) as usize).ranks_per_node(ranks_per_node);
        let run = job.run(&async |fabric| once(fabric, levels).await)?;
        let slowest = run.outs.iter().max().copied().unwrap_or(0);
        println!(
            "{nodes} x {ranks_per_node}, {levels:?}: slowest rank {:.3} ms ({:.1} s to simulate)",
            slowest as f64 / 1e9,
            start.elapsed().as_secs_f64()
        );
    }
    Ok(())
}
