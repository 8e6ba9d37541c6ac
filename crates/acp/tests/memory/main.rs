//! The memory of a rank: a constant amount, plus a small amount for each peer that it has used.
//!
//! Jobs run in virtual time, in a separate process, whose resident memory is measured while the job
//! runs. It includes the memory that real ranks would use, and the state of the simulated machine.
//! Numbers are those of all ranks together, divided by the number of ranks; freed memory is seldom
//! returned to the system, so each test is a separate process to be exact.
#![cfg(target_os = "linux")]

use acp::{Acp, GlobalAddress, Options};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::fs;
use tofu2_sim::virt::{Job, Platform};

/// Returns the resident bytes of this process.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Uses the regions of an increasing number of peers; returns the resident bytes before anything
/// was allocated, after initialization, and after each number of peers.
async fn use_peers(fabric: Fabric, steps: &[usize]) -> ProgramResult<Vec<u64>> {
    let mut looks = vec![resident()];
    let options = Options::default().starter_bytes(64).heap_bytes(0).regions(1);
    let acp = Acp::init_with(&fabric, options).await?;
    // The only region of each rank: all have the same tag.
    let own = acp.address(acp.allocate(64, 0)?, 0)?;
    acp.sync().await?;
    looks.push(resident());
    let (me, ranks, mut used) = (acp.rank().index(), acp.ranks(), 0);
    for peers in steps {
        for peer in used + 1..=*peers {
            let peer = Rank::new(((me + peer) % ranks) as u32);
            // Addresses on the two ranks differ in the same way as those of their starter memories.
            let there = acp.starter(peer)?.to_bits().wrapping_sub(acp.starter(acp.rank())?.to_bits());
            let there = GlobalAddress::from_bits(own.to_bits().wrapping_add(there)).ok_or("no address")?;
            acp.load::<u64>(there).await?;
        }
        used = *peers;
        acp.sync().await?;
        looks.push(resident());
    }
    Ok(looks)
}

/// Measures a job: the initial bytes of each rank, and the additional bytes per peer from each
/// number of peers to the next.
fn measured(ranks: usize, steps: &[usize]) -> (f64, Vec<f64>) {
    let run = Job::new(&Platform::fx100(), ranks).run(&async |fabric| use_peers(fabric, steps).await);
    let run = run.unwrap_or_else(|error| panic!("{error}"));
    // The last rank that measures sees the allocations of all.
    let looks: Vec<u64> =
        (0..steps.len() + 2).map(|at| run.outs.iter().map(|looks| looks[at]).max().unwrap_or(0)).collect();
    let before = run.outs.iter().map(|looks| looks[0]).min().unwrap_or(0);
    let of_each = |bytes: u64| bytes as f64 / ranks as f64;
    let begun = of_each(looks[1].saturating_sub(before));
    let mut used = 0;
    let more = steps.iter().zip(looks[1..].windows(2)).map(|(peers, looks)| {
        let of_peer = of_each(looks[1].saturating_sub(looks[0])) / (peers - used) as f64;
        println!("{ranks} ranks: from {used} to {peers} peers, {of_peer:.1} bytes more for each");
        used = *peers;
        of_peer
    });
    let more = more.collect();
    println!("{ranks} ranks: {begun:.0} bytes of each from the start; {} simulated", run.stats.bytes_per_rank);
    (begun, more)
}

/// The maximum memory of a rank from the start, including its share of the simulated machine.
const CONSTANT: f64 = 20_000.0;
/// The maximum memory per peer once the table of recently used regions is full.
const PER_PEER: f64 = 64.0;

#[test]
fn memory_is_a_constant_and_a_little_for_each_peer_used() {
    let (begun, more) = measured(1024, &[1, 64, 128, 256]);
    assert!(begun <= CONSTANT && more[2..].iter().all(|bytes| *bytes <= PER_PEER), "{begun} and {more:?}");
}

#[test]
#[ignore = "another process than the other tests, seconds"]
fn memory_of_16_ranks() {
    measured(16, &[1, 15]);
}

#[test]
#[ignore = "minutes in a release build, and 10 GB"]
fn memory_of_a_whole_machine() {
    let (begun, _) = measured(663_552, &[1, 4]);
    assert!(begun <= CONSTANT, "{begun}");
}
