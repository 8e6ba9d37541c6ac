//! The cost of packing a column of blocks and unpacking it again: `cargo example packing_cost
//! --release`.
//!
//! One rank exchanges the column with itself over shared memory: it packs, puts the contiguous
//! data, and unpacks. Each figure is the smallest of many iterations (start and wait), in ns.

use prdma_offload::{Buffer, Form, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::{Duration, Instant};
use tofu2_sim::shm::Threads;

const ITERATIONS: usize = 300;
/// Numbers of blocks, and bytes of each.
const COLUMNS: [(u64, u64); 4] = [(256, 16), (64, 512), (256, 4096), (16_384, 16)];

fn main() -> ProgramResult<()> {
    let columns = Threads::new(1).segment_bytes(64 << 20).run(&measure)?.remove(0);
    println!("{:>8} {:>8} {:>12} {:>8}", "blocks", "bytes", "ns", "GB/s");
    for ((blocks, block), time) in COLUMNS.into_iter().zip(columns) {
        let ns = time.as_nanos();
        println!("{blocks:>8} {block:>8} {ns:>12} {:>8.1}", (blocks * block) as f64 / ns as f64);
    }
    Ok(())
}

async fn measure(fabric: Fabric) -> ProgramResult<Vec<Duration>> {
    let topology = Topology::graph(1, 0, &[0], &[0])?;
    let mut hood = Neighbourhood::new(Group::world(&fabric).await?, topology).await?;
    let mut least = Vec::new();
    for (blocks, block) in COLUMNS {
        let buffer = || Buffer::<u64>::new(&fabric, (2 * blocks * block / 8) as usize);
        let (send, receive) = (buffer()?, buffer()?);
        // The gap between two blocks is as long as a block.
        let column = [Layout::strided(0, block, &[(blocks, 2 * block)])?];
        let options = Options { direct_blocks: 1, ..Options::form(Form::Cpu) };
        let mut request = hood.alltoallw_init(&send, &column, &receive, &column, &options).await?;
        let mut times = Vec::new();
        for _ in 0..ITERATIONS {
            let began = Instant::now();
            request.start().await?;
            request.wait().await?;
            times.push(began.elapsed());
        }
        least.extend(times.into_iter().min());
    }
    Ok(least)
}
