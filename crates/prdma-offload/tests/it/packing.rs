//! Packing of blocks by CPUs: its time in virtual time, and its division among threads.

use checks::jobs::{threads, virtual_time};
use prdma_offload::{Buffer, Layout, Neighbourhood, Options, Packer, Packing, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{sync::Arc, thread, time::Duration};
use tofu2_virt::Platform;

/// A column of this many blocks, with gaps of the same length as the blocks.
const BLOCKS: u64 = 64;
const BLOCK: u64 = 512;

/// Exchanges a column with one neighbour a few times; returns the duration of an iteration.
async fn exchange(fabric: Fabric, options: Options, packing: Packing) -> ProgramResult<Duration> {
    const ITERATIONS: u32 = 4;
    let group = Group::world(&fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let mut hood = Neighbourhood::new(group, Topology::graph(2, me, &[other], &[other])?).await?;
    let buffer = || Buffer::<u8>::new(&fabric, (2 * BLOCKS * BLOCK) as usize);
    let (send, receive) = (buffer()?, buffer()?);
    let column = [Layout::strided(0, BLOCK, &[(BLOCKS, 2 * BLOCK)])?];
    let mut request = hood.alltoallw_init(&send, &column, &receive, &column, &options).await?;
    request.pack_by(packing);
    let began = fabric.now();
    for _ in 0..ITERATIONS {
        request.start().await?;
        request.wait().await?;
    }
    Ok((fabric.now() - began) / ITERATIONS)
}

fn taken(machine: &Platform, direct_blocks: u32, direct_bytes: u32) -> Duration {
    taken_by(machine, Options { direct_blocks, direct_bytes, ..Options::default() }, Packing::serial())
}

fn taken_by(machine: &Platform, options: Options, packing: Packing) -> Duration {
    let job = virtual_time(machine, 2);
    let outs = job.run(&async |fabric| exchange(fabric, options, packing.clone()).await).expect("no rank fails").outs;
    outs.into_iter().max().expect("two ranks")
}

/// Each thread copies its share, after the threads have been started for each copy.
#[test]
fn threads_take_the_time_of_the_largest_share() {
    const FEMTOS: u64 = 250_000;
    const FORK: u64 = 500_000;
    let machine = |fork| {
        let machine = Platform::k().with("copy_threads", 1).expect("a constant");
        machine
            .with("software.pack", FEMTOS)
            .and_then(|machine| machine.with("software.fork", fork))
            .expect("constants")
    };
    let options = Options { direct_blocks: 1, direct_bytes: u32::MAX, ..Options::default() };
    let by = |threads, above, fork| taken_by(&machine(fork), options, Packing::modelled(threads, above));
    let one = by(1, 0, FORK);
    // Threads, blocks of the largest share, and the starts of threads.
    for (threads, blocks, forks) in [(8, 8, 1), (5, 13, 1), (64, 1, 1), (100, 1, 1)] {
        let wanted =
            Duration::from_nanos(2 * ((BLOCKS - blocks) * BLOCK * FEMTOS / 1_000_000) - 2 * forks * FORK / 1000);
        let saved = one - by(threads, 0, FORK);
        assert!(saved.abs_diff(wanted) <= Duration::from_nanos(20), "{threads} threads: {saved:?}, not {wanted:?}");
    }
    assert_eq!(by(8, BLOCKS * BLOCK, FORK), one, "not above the threshold");
    assert!(by(8, BLOCKS * BLOCK - 1, FORK) < one, "above the threshold");
    assert!(by(8, 0, 0) < by(8, 0, FORK), "starting threads takes time");
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

/// Starts a thread for each share.
#[derive(Debug)]
struct Scoped(usize);

impl Packer for Scoped {
    fn threads(&self) -> usize {
        self.0
    }

    fn run(&self, shares: usize, share: &(dyn Fn(usize) + Sync)) {
        thread::scope(|scope| (0..shares).for_each(|number| drop(scope.spawn(move || share(number)))));
    }
}

/// Rank 0 sends and receives runs of 3 bytes, rank 1 columns of 8, both packed by `packing`.
async fn runs_and_columns(fabric: Fabric, packing: Packing) -> ProgramResult<()> {
    let group = Group::world(&fabric).await?;
    let (me, other) = (group.me(), 1 - group.me());
    let mut hood = Neighbourhood::new(group, Topology::graph(2, me, &[other], &[other])?).await?;
    let (send, receive) = (Buffer::<u8>::new(&fabric, 1024)?, Buffer::<u8>::new(&fabric, 1024)?);
    let layouts = [Layout::strided(1, 3, &[(8, 61), (5, 7)])?, Layout::strided(8, 8, &[(15, 64)])?];
    let options = Options { direct_blocks: 1, direct_bytes: u32::MAX, ..Options::default() };
    let mine = [layouts[me]];
    let mut request = hood.alltoallw_init(&send, &mine, &receive, &mine, &options).await?;
    request.pack_by(packing);
    let [from, to] =
        [other, me].map(|of| layouts[of].runs().flat_map(|(start, len)| start..start + len).collect::<Vec<_>>());
    let value = |round: u64, at: u64| ((at + 7 * round) % 251) as u8 + 1;
    for round in 0..3 {
        send.write(0, &(0..1024).map(|at| value(round, at)).collect::<Vec<_>>())?;
        request.start().await?;
        request.wait().await?;
        let mut wanted = vec![0; 1024];
        from.iter().zip(&to).for_each(|(from, to)| wanted[*to as usize] = value(round, *from));
        assert_eq!(receive.to_vec()?, wanted, "round {round}");
    }
    Ok(())
}

#[test]
fn threads_pack_what_one_thread_packs() {
    let packings = [
        Packing::serial(),
        Packing::modelled(3, 0),
        Packing::by(Arc::new(Scoped(2)), 0),
        Packing::by(Arc::new(Scoped(7)), 0),
    ];
    for packing in packings {
        threads(2).run(&async |fabric| runs_and_columns(fabric, packing.clone()).await).expect("threads");
    }
    let job = virtual_time(&Platform::k(), 2);
    job.run(&async |fabric| runs_and_columns(fabric, Packing::modelled(5, 0)).await).expect("virtual time");
}
