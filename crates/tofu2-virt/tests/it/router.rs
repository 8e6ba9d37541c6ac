//! Hop-by-hop routing: nothing is lost, nothing deadlocks, and contention is as unfair as
//! published.

use crate::{
    saturation::pairs,
    start::{add, at, fx100, meet},
};
use rdma_fabric::{Fabric, ProgramResult};
use tofu2_virt::{Arbiter, Folding, Job, NetworkModel, Path, Paths, Platform, TofuShape, Torus};

/// Random all-to-all traffic of puts, gets and atomics. Returns the numbers of adds that this rank
/// sent and received, packed into one number.
async fn storm(fabric: Fabric, seed: u64, each: usize) -> ProgramResult<u64> {
    let ranks = fabric.ranks();
    let home = fabric.alloc_symmetric(64 + 8 * 1024).await?;
    let me = fabric.rank().index();
    let mut state = seed ^ (me as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    let mut random = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state
    };
    let (mut handles, mut puts, mut gets) = (vec![], vec![], vec![]);
    for _ in 0..each {
        let to = random() as usize % ranks;
        match random() % 4 {
            0 | 1 => {
                let word = fabric.remote_word::<u64>(at(to, home.key(), 0))?;
                handles.push(fabric.post(add(&word, 1)).await?);
            }
            2 => {
                let len = random() as usize % 8192;
                let span = fabric.remote_span::<u8>(at(to, home.key(), 64), len)?;
                let put = rdma_fabric::op::Put { to: &span, from: vec![me as u8; len], notice: None };
                puts.push(fabric.post(put).await?);
            }
            _ => {
                let span = fabric.remote_span::<u8>(at(to, home.key(), 64), 100)?;
                gets.push(fabric.post(rdma_fabric::op::Get { from: &span, to: vec![0u8; 100] }).await?);
            }
        }
    }
    let adds = handles.len() as u64;
    for handle in handles {
        handle.await?;
    }
    for put in puts {
        put.await?;
    }
    for get in gets {
        get.await?;
    }
    fabric.flush_all().await?;
    meet(&fabric, &home, 16).await?;
    let received = fabric.load(&fabric.local_word::<u64>(at(me, home.key(), 0))?)?;
    Ok(adds << 32 | received)
}

/// Checks that, at the end, all ranks' adds have been received. Returns the trace hash.
pub(crate) fn nothing_is_lost(job: &Job<'_>, seed: u64, each: usize, case: &str) -> u64 {
    let run = job.run(&async |fabric| storm(fabric, seed, each).await).unwrap_or_else(|e| panic!("{case}: {e}"));
    let sent: u64 = run.outs.iter().map(|out| out >> 32).sum();
    let received: u64 = run.outs.iter().map(|out| out & 0xffff_ffff).sum();
    assert_eq!(sent, received, "{case}");
    run.stats.trace_hash
}

#[test]
fn nothing_is_lost_and_nothing_locks_up_with_one_credit() {
    let shapes: &[&[u32]] = &[&[3], &[5], &[8], &[4, 4], &[3, 5], &[2, 3, 2], &[3, 3, 3], &[2, 2, 2, 2, 2]];
    for (seed, lengths) in shapes.iter().enumerate() {
        for arbiter in [Arbiter::RoundRobin, Arbiter::OldestFirst] {
            let torus = Torus::new(lengths).unwrap();
            let ranks = torus.nodes() as usize * 2;
            let job = fx100(ranks).ranks_per_node(2).torus(torus).network(NetworkModel::Router);
            let job = job.credits(1).arbiter(arbiter).receive_tnis(1 + seed as u32 % 4);
            nothing_is_lost(&job, seed as u64 + 1, 60, &format!("{lengths:?}"));
        }
    }
}

#[test]
fn nothing_locks_up_on_tofus_routes_by_any_path() {
    let shape = TofuShape::new([4, 1, 2, 2, 3, 2], [true, false, false, false, true, false]).unwrap();
    let paths = [Paths::Default, Paths::Spread, Paths::Fixed(Path { a: 1, b: 2, c: 0 })];
    for (seed, paths) in paths.into_iter().enumerate() {
        for folding in [Folding::RowMajor, Folding::VirtualTorus] {
            let job = fx100(192).ranks_per_node(2).shape(shape).folding(folding).paths(paths);
            let job = job.network(NetworkModel::Router).credits(1).receive_tnis(4);
            let hash = || nothing_is_lost(&job, seed as u64 + 1, 30, &format!("{paths:?}"));
            assert_eq!(hash(), hash(), "{paths:?}");
        }
    }
}

/// All ranks send large puts half-way around the ring, so that every buffer fills.
async fn half_way(fabric: Fabric) -> ProgramResult<()> {
    let home = fabric.alloc_symmetric(64 + 100_000).await?;
    let (me, n) = (fabric.rank().index(), fabric.ranks());
    let span = fabric.remote_span::<u8>(at((me + n / 2) % n, home.key(), 64), 100_000)?;
    for _ in 0..10 {
        fabric.put(&span, vec![me as u8; 100_000]).await?;
    }
    fabric.flush_all().await?;
    meet(&fabric, &home, 16).await?;
    Ok(())
}

#[test]
fn full_rings_keep_moving() {
    for n in [4, 6, 7] {
        let job = fx100(n).torus(Torus::new(&[n as u32]).unwrap()).network(NetworkModel::Router).credits(1);
        job.run(&half_way).unwrap();
    }
}

/// Returns the time at which the last of many puts to rank 0 is known to have arrived.
async fn converge(fabric: Fabric, bytes: usize) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64 + bytes).await?;
    let me = fabric.rank().index();
    if me > 0 {
        let span = fabric.remote_span::<u8>(at(0, home.key(), 64), bytes)?;
        fabric.put(&span, vec![me as u8; bytes]).await?;
        fabric.flush_all().await?;
    }
    let end = fabric.now().as_picos();
    meet(&fabric, &home, 16).await?;
    Ok(end)
}

#[test]
fn two_flows_share_what_one_alone_has() {
    let bytes = 192_000;
    let slowest = |network, ranks| {
        let job = fx100(ranks).torus(Torus::line(ranks as u32)).network(network);
        job.run(&async |fabric| converge(fabric, bytes).await).unwrap().outs.into_iter().max().unwrap()
    };
    let one = slowest(NetworkModel::Router, 2);
    assert_eq!(one, slowest(NetworkModel::Latency, 2), "one flow is not slowed");
    let two = slowest(NetworkModel::Router, 3);
    // Both flows arrive at one receive engine, whose payload rate is the limit.
    let least = 2 * bytes as u64 * 100;
    assert!(two > least && two < least + least / 50 + 3_000_000, "{two} against {least}");
}

#[test]
fn near_ranks_finish_first_under_round_robin_but_not_by_age_or_latency_alone() {
    let spread = |network, arbiter| {
        let job =
            fx100(1024).ranks_per_node(8).torus(Torus::new(&[4, 4, 8]).unwrap()).network(network).arbiter(arbiter);
        let ends = job.run(&async |fabric| pairs(fabric, 30).await).unwrap().outs;
        (*ends.iter().min().unwrap() as f64 / *ends.iter().max().unwrap() as f64, ends)
    };
    let (latency, _) = spread(NetworkModel::Latency, Arbiter::RoundRobin);
    assert!(latency > 0.95, "first come, first served alone gives no spread: {latency}");
    let (by_age, _) = spread(NetworkModel::Router, Arbiter::OldestFirst);
    assert!(by_age > 0.5, "{by_age}");
    let (in_turn, ends) = spread(NetworkModel::Router, Arbiter::RoundRobin);
    assert!(in_turn < 0.15, "{in_turn}");
    // The mean finish time by distance: nearer is earlier.
    let torus = Torus::new(&[4, 4, 8]).unwrap();
    let mut by_hops = [(0u64, 0u64); 9];
    for (rank, end) in ends.iter().enumerate() {
        let entry = &mut by_hops[torus.hops(0, rank as u32 / 8) as usize];
        *entry = (entry.0 + end, entry.1 + 1);
    }
    let means: Vec<u64> = by_hops.iter().map(|(sum, n)| sum / n).collect();
    assert!(means[0] < means[2] && means[1] < means[4] && means[2] < means[6], "{means:?}");
}

#[test]
fn a_machine_with_a_single_engine_works() {
    let platform = Platform::fx100().with("engines", 1).unwrap();
    let job = checks::jobs::virtual_time(&platform, 8).ranks_per_node(2).network(NetworkModel::Router);
    job.run(&async |fabric| storm(fabric, 3, 50).await).unwrap();
}
