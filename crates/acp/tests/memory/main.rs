//! The memory of a rank: a constant, and a little for each peer that it has used.
//!
//! Jobs run in virtual time, in a process of their own, whose resident memory is compared before
//! and after. It holds what a real rank would hold, and beside that only the pages of the simulated
//! machine that were written. Numbers are of all ranks together, divided by the ranks.
#![cfg(target_os = "linux")]

use acp::{Acp, GlobalAddress, Options};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::fs;
use tofu2_sim::virt::{Job, Platform};

/// Returns the bytes that this process has resident.
fn resident() -> u64 {
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    line.trim().trim_end_matches(" kB").parse::<u64>().expect("a number") * 1024
}

/// Uses the regions of `peers` others; returns at rank 0 what the process had before there was
/// anything, after the beginning, and after the use.
async fn use_peers(fabric: Fabric, peers: usize) -> ProgramResult<[u64; 3]> {
    let before = resident();
    let options = Options::default().starter_bytes(64).heap_bytes(0).channel_bytes(0).regions(1);
    let acp = Acp::init_with(&fabric, options).await?;
    // The only region of each rank: all have the same tag.
    let key = acp.allocate(64, 0)?;
    let own = acp.address(key, 0)?;
    acp.sync().await?;
    let begun = resident();
    acp.sync().await?;
    let (me, ranks) = (acp.rank().index(), acp.ranks());
    for peer in 1..=peers {
        let peer = Rank::new(((me + peer) % ranks) as u32);
        // Addresses in the two ranks differ as those of their starter memories do.
        let there = acp.starter(peer)?.to_bits().wrapping_sub(acp.starter(acp.rank())?.to_bits());
        let there = GlobalAddress::from_bits(own.to_bits().wrapping_add(there)).ok_or("no address")?;
        acp.load::<u64>(there).await?;
    }
    acp.sync().await?;
    Ok([before, begun, resident()])
}

/// Measures a job. The first job of a process pays for what the process itself needs.
fn measured(ranks: usize, peers: usize) -> (f64, f64) {
    let job = Job::new(&Platform::fx100(), ranks);
    let run = job.run(&async |fabric| use_peers(fabric, peers).await).unwrap_or_else(|error| panic!("{error}"));
    let at_0: [u64; 3] = run.outs[0];
    let [begun, used] = [at_0[1] - at_0[0], at_0[2] - at_0[1]].map(|bytes| bytes as f64 / ranks as f64);
    println!("{ranks} ranks: {begun:.0} bytes of each from the start, {used:.0} more for {peers} peers");
    (begun, used)
}

/// What a rank may have from the start, with the pages that the simulated machine has written.
const CONSTANT: f64 = 16_384.0;
/// What a rank may keep for a peer.
const PER_PEER: f64 = 64.0;
/// Spans are kept of the 64 regions used last, and no more.
const SPANS: f64 = 64.0 * 128.0;

fn check(ranks: usize, peers: &[usize]) {
    for peers in peers {
        let (begun, used) = measured(ranks, *peers);
        assert!(begun <= CONSTANT, "{begun} bytes of each of {ranks} ranks");
        assert!(used <= SPANS + PER_PEER * *peers as f64, "{used} bytes of each of {ranks} ranks for {peers} peers");
    }
}

#[test]
fn memory_is_a_constant_and_a_little_for_each_peer_used() {
    // What is small is lost in what the process has anyhow.
    measured(16, 15);
    check(4096, &[0, 8, 64, 256]);
}

#[test]
#[ignore = "minutes, and gigabytes"]
fn memory_of_a_whole_machine() {
    check(663_552, &[0, 4]);
}
