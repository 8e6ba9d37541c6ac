//! The time of packing blocks by CPUs in virtual time.

use checks::jobs::virtual_time;
use prdma_offload::{Buffer, Layout, Neighbourhood, Options, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::time::Duration;
use tofu2_virt::Platform;

/// A column of this many blocks, with gaps of the same length as the blocks.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 512;

/// Exchanges a column with one neighbour a few times; returns the duration of an iteration.
async fn exchange(fabric: Fabric, options: Options) -> ProgramResult<Duration> {
    const ITERATIONS: u32 = 4;
    let group = Group::world(&fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let mut hood = Neighbourhood::new(group, Topology::graph(2, me, &[other], &[other])?).await?;
    let buffer = || Buffer::<u8>::new(&fabric, (2 * BLOCKS * BLOCK) as usize);
    let (send, receive) = (buffer()?, buffer()?);
    let column = [Layout::strided(0, BLOCK, &[(BLOCKS, 2 * BLOCK)])?];
    let mut request = hood.alltoallw_init(&send, &column, &receive, &column, &options).await?;
    let began = fabric.now();
    for _ in 0..ITERATIONS {
        request.start().await?;
        request.wait().await?;
    }
    Ok((fabric.now() - began) / ITERATIONS)
}

fn taken(machine: &Platform, direct_blocks: u32, direct_bytes: u32) -> Duration {
    let options = Options { direct_blocks, direct_bytes, ..Options::default() };
    let outs =
        virtual_time(machine, 2).run(&async |fabric| exchange(fabric, options).await).expect("no rank fails").outs;
    outs.into_iter().max().expect("two ranks")
}

/// Each byte is copied once at either end, at the rate and by the number of threads of the
/// platform.
#[test]
fn packing_takes_the_time_of_its_bytes() {
    let with = |threads, pack| {
        let machine = Platform::fx100().with("copy_threads", threads).expect("a constant");
        machine.with("software.pack", pack).expect("a constant")
    };
    let free = taken(&with(1, 0), 1, u32::MAX);
    for (threads, femtos) in [(1, 125_000), (1, 250_000), (8, 125_000)] {
        let copies = Duration::from_nanos(2 * BLOCKS * BLOCK * femtos / threads / 1_000_000);
        let measured = taken(&with(threads, femtos), 1, u32::MAX) - free;
        let least = copies.mul_f64(0.99);
        assert!(measured >= least && measured <= copies.mul_f64(1.01), "{measured:?}, not {copies:?}");
    }
    // The network gathers and scatters blocks that are not packed.
    let (most, length) = (u32::MAX, BLOCK as u32);
    assert_eq!(taken(&with(1, 0), most, most), taken(&with(1, 250_000), most, most));
    // A few blocks, or long ones, are not packed.
    assert_eq!(taken(&with(1, 0), 1, length), taken(&with(1, 250_000), 1, length));
    assert!(taken(&with(1, 0), 1, length + 1) < taken(&with(1, 250_000), 1, length + 1), "shorter ones are");
}
