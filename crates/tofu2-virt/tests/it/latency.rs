//! Unloaded latencies: the calibrated sums, to the picosecond, over both networks.

use crate::start::{NETWORKS, add, at, fx100, meet};
use rdma_fabric::{
    Deps, Fabric, ProgramResult, Rank,
    join::{join, join_all},
    op,
};
use std::time::Duration;
use tofu2_virt::{NetworkModel, Path, Paths, Platform, System, Torus};

/// Rank 0 measures a fetch-add, a get and a flushed put on the last rank's memory; the last rank
/// measures a put's one-way time. Returns, in picoseconds: atomic, put handle, flush after the put,
/// get, and the time from posting a put to its arrival.
async fn measure(fabric: Fabric, bytes: usize) -> ProgramResult<[u64; 5]> {
    let home = fabric.alloc_symmetric(64 + bytes + 64).await?;
    let (me, last) = (fabric.rank().index(), fabric.ranks() - 1);
    let mut out = [0; 5];
    if me == 0 {
        let word = fabric.remote_word::<u64>(at(last, home.key(), 0))?;
        let t = fabric.now();
        assert_eq!(fabric.fetch_add(&word, 3).await?, 0);
        out[0] = fabric.now().picos_since(t);
        assert_eq!(fabric.fetch_add(&word, u64::MAX - 2).await?, 3);

        let data = fabric.remote_span::<u8>(at(last, home.key(), 64), bytes)?;
        let t = fabric.now();
        let sent = fabric.put(&data, vec![7u8; bytes]).await?;
        out[1] = fabric.now().picos_since(t);
        fabric.flush(Rank::new(last as u32)).await?;
        out[2] = fabric.now().picos_since(t);

        let t = fabric.now();
        assert_eq!(fabric.get(&data, vec![0u8; bytes]).await?, sent);
        out[3] = fabric.now().picos_since(t);

        let flag = fabric.remote_word::<u64>(at(last, home.key(), 8))?;
        let at = fabric.now();
        fabric.put_word(&flag, at.as_picos() + 1).await?;
    }
    if me == last {
        let flag = home.word::<u64>(&fabric, 8)?;
        let posted = fabric.wait_until(&flag, Deps::One(Rank::new(0)), |flag| flag != 0).await?;
        out[4] = fabric.now().as_picos() + 1 - posted;
    }
    meet(&fabric, &home, 48).await?;
    Ok(out)
}

fn figures(network: NetworkModel, nodes: u32, ppn: u32, bytes: usize) -> [u64; 5] {
    let ranks = if ppn > 1 { ppn as usize } else { nodes as usize };
    let job = fx100(ranks).ranks_per_node(ppn).torus(Torus::line(nodes)).network(network);
    let run = job.run(&async |fabric| measure(fabric, bytes).await).unwrap();
    let (first, last) = (run.outs[0], run.outs[ranks - 1]);
    [first[0], first[1], first[2], first[3], last[4]]
}

#[test]
fn unloaded_latencies_are_the_calibrated_sums() {
    for (nodes, ppn, expected) in [
        // Inside a node, to a neighbour, and two further hops of 100 ns each.
        (1, 2, [1_169_500, 300_000, 900_000, 900_000, 450_000]),
        (2, 1, [1_689_500, 300_000, 1_420_000, 1_420_000, 710_000]),
        (4, 1, [2_089_500, 300_000, 1_820_000, 1_820_000, 910_000]),
    ] {
        for network in NETWORKS {
            assert_eq!(figures(network, nodes, ppn, 8), expected, "{nodes} nodes, {network:?}");
        }
    }
}

#[test]
fn a_detour_costs_its_hops_on_the_way_there() {
    // To the neighbour along C by a path that differs in A and B: B, A, then A, C, B. The answer
    // takes the direct route.
    let detour = Paths::Fixed(Path { a: 1, b: 1, c: 0 });
    for network in NETWORKS {
        let job = fx100(2).shape(System::FX100_36.shape()).paths(detour).network(network);
        let outs = job.run(&async |fabric| measure(fabric, 8).await).unwrap().outs;
        assert_eq!(outs[0][..4], [2_089_500, 300_000, 1_820_000, 1_820_000], "{network:?}");
        assert_eq!(outs[1][4], 1_110_000, "{network:?}");
    }
}

#[test]
fn payload_goes_at_10_gb_per_second() {
    let more = (1_000_000 - 8) * 100;
    for network in NETWORKS {
        let figures = figures(network, 2, 1, 1_000_000);
        assert_eq!(figures[..4], [1_689_500, 300_000 + more, 1_420_000 + more, 1_420_000 + more], "{network:?}");
    }
}

async fn clockwork(fabric: Fabric) -> ProgramResult<[u64; 7]> {
    let ns = Duration::from_nanos;
    let now = || fabric.now().as_picos();
    fabric.compute(ns(5)).await;
    let computed = now();
    fabric.charge("fjmpi").await;
    let charged = now();
    fabric.charge("no such layer").await;
    let uncharged = now();
    fabric.sleep(Duration::from_micros(1)).await;
    let slept = now();
    // Two computations on one CPU take the sum of their times, two sleeps only the longer time.
    join(fabric.compute(ns(10)), fabric.compute(ns(20))).await;
    let computed_both = now();
    join(fabric.sleep(ns(10)), fabric.sleep(ns(20))).await;
    let slept_both = now();
    // Dropping a timer early has no effect.
    let early = fabric.now() + Duration::from_secs(1);
    assert_eq!(fabric.before(fabric.now() + ns(1), fabric.sleep_until(early)).await, None);
    assert_eq!(fabric.before(early, async { 5 }).await, Some(5));
    let never = fabric.sleep_until(rdma_fabric::Time::MAX);
    assert_eq!(fabric.before(fabric.now() + ns(1), never).await, None);
    Ok([computed, charged, uncharged, slept, computed_both, slept_both, now()])
}

#[test]
fn time_passes_as_told() {
    let run = fx100(1).run(&clockwork).unwrap();
    let base = 5_000 + 570_000;
    assert_eq!(
        run.outs[0],
        [5_000, base, base, base + 1_000_000, base + 1_030_000, base + 1_050_000, base + 1_052_000]
    );
    assert_eq!(run.stats.end.as_picos(), base + 1_052_000, "a dropped timer doesn't prolong the run");
}

/// Posting keeps the CPU busy; handles complete out of order and can be tested.
async fn pipeline(fabric: Fabric) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64).await?;
    let me = fabric.rank().index();
    if me == 0 {
        let word = fabric.remote_word::<u64>(at(1, home.key(), 0))?;
        let mut handles = vec![];
        for _ in 0..4 {
            handles.push(fabric.post(add(&word, 1)).await?);
        }
        assert_eq!(fabric.now().as_picos(), 600_000);
        assert!(handles.iter_mut().all(|h| !h.test()));
        let blocked = fabric.post(op::Nop).await?;
        assert!(blocked.wait().is_err(), "blocking is impossible in virtual time");
        let old = join_all(handles).await;
        assert_eq!(old.into_iter().collect::<Result<Vec<_>, _>>()?, [0, 1, 2, 3]);
    }
    let end = fabric.now().as_picos();
    meet(&fabric, &home, 16).await?;
    Ok(end)
}

#[test]
fn operations_overlap() {
    let run = fx100(2).run(&pipeline).unwrap();
    // The atomic unit is the bottleneck: first arrival, four services, return leg.
    assert_eq!(run.outs[0], 710_000 + 4 * 269_500 + 710_000);
}

async fn one_atomic(fabric: Fabric) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(8).await?;
    let word = fabric.remote_word::<u64>(at(0, home.key(), 0))?;
    fabric.fetch_add(&word, 1).await?;
    Ok(fabric.now().as_picos())
}

#[test]
fn fx10_has_a_software_service() {
    let run = checks::jobs::virtual_time(&Platform::fx10(), 1).run(&one_atomic).unwrap();
    assert_eq!(run.outs[0], 222_656_250 + 2 * (910_000 - 260_000));
}

#[test]
fn what_if_a_hop_were_free() {
    let platform = Platform::fx100().with("hop", 0).unwrap();
    for network in NETWORKS {
        let job = checks::jobs::virtual_time(&platform, 4).torus(Torus::line(4)).network(network);
        assert_eq!(job.run(&async |fabric| measure(fabric, 8).await).unwrap().outs[0][0], 1_689_500, "{network:?}");
    }
}
