//! Does code like that in the lock paper's Figure 5 scale to tens of thousands of nodes? Both forms
//! of the stencil on the modelled FX100, 8 ranks on each node, latency-only network: `cargo example
//! stencil_scale --release -- [RANKS…]`.

use rdma_fabric::Program;
use repro::workloads::{Stencil, Tile, stencil_fence, stencil_lock_all};
use std::time::Instant;
use tofu2_sim::virt::{Job, Platform};

const STEPS: u32 = 4;

fn run<P: Program<Out = Tile>>(form: &str, ranks: u32, program: &P) -> Result<(), tofu2_sim::JobError> {
    let (platform, begun) = (Platform::fx100(), Instant::now());
    let run = Job::new(&platform, ranks as usize).ranks_per_node(8).run(program)?;
    let greatest = |of: fn(&Tile) -> u64| run.outs.iter().map(of).max().unwrap_or(0) as f64 * 1e-6;
    let (steps, lock) = (greatest(|tile| tile.steps), greatest(|tile| tile.lock));
    println!(
        "{ranks:8} {form:24} {:10.2} {lock:12.2} {:12} {:8} {:8.1}",
        steps / f64::from(STEPS),
        run.stats.events,
        run.stats.bytes_per_rank,
        begun.elapsed().as_secs_f64(),
    );
    Ok(())
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut sizes = std::env::args().skip(1).map(|ranks| ranks.parse()).collect::<Result<Vec<u32>, _>>()?;
    if sizes.is_empty() {
        sizes = vec![1024, 8192, 65_536, 663_552];
    }
    println!("   ranks form                      step, µs     lock, µs       events   B/rank        s");
    for ranks in sizes {
        let stencil = Stencil::of_ranks(ranks, 2, STEPS);
        run("fence, put, fence", ranks, &async |fabric| stencil_fence(fabric, stencil).await)?;
        run("lock_all, get, flush_all", ranks, &async |fabric| stencil_lock_all(fabric, stencil).await)?;
    }
    Ok(())
}
