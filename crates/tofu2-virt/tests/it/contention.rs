//! Flows that share a link, and flows that don't.

use crate::start::{at, meet};
use rdma_fabric::{Fabric, ProgramResult, Rank};
use std::collections::BTreeSet;
use tofu2_virt::{Arbiter, Job, Link, NetworkModel, Paths, Platform, TofuShape};

const PACKET: usize = 1_920;

/// Each rank from which a flow (from, to) starts sends `packets` full packets, each as a separate
/// put. Returns the time at which all packets had arrived.
async fn flows(fabric: Fabric, flows: Vec<(usize, usize)>, packets: usize) -> ProgramResult<u64> {
    let home = fabric.alloc_symmetric(64 + PACKET).await?;
    let me = fabric.rank().index();
    let mut end = 0;
    if let Some(&(_, to)) = flows.iter().find(|(from, _)| *from == me) {
        let span = fabric.remote_span::<u8>(at(to, home.key(), 64), PACKET)?;
        let mut puts = vec![];
        for _ in 0..packets {
            let put = rdma_fabric::op::Put { to: &span, from: vec![me as u8; PACKET], notice: None };
            puts.push(fabric.post(put).await?);
        }
        for put in puts {
            put.await?;
        }
        fabric.flush_all().await?;
        end = fabric.now().as_picos();
    }
    meet(&fabric, &home, 16).await?;
    Ok(end)
}

const PACKETS: usize = 1_000;

fn ends(job: &Job<'_>, pairs: &[(usize, usize)]) -> Vec<u64> {
    let run = job.run(&async |fabric| flows(fabric, pairs.to_vec(), PACKETS).await).unwrap();
    pairs.iter().map(|&(from, _)| run.outs[from]).collect()
}

/// Returns a line of four nodes.
fn line() -> TofuShape {
    TofuShape::new([4, 1, 1, 1, 1, 1], [false; 6]).unwrap()
}

/// Returns a machine on which one flow fills a link: posting takes hardly any time, and engines are
/// as fast as links.
fn link_bound() -> Platform {
    Platform::fx100().with("payload_byte", 86_000).unwrap().with("post", 1_000).unwrap()
}

fn shared(job: &Job<'_>, a: (usize, usize), b: (usize, usize)) -> usize {
    let links = |(from, to): (usize, usize)| -> BTreeSet<Link> {
        job.route(Rank::new(from as u32), Rank::new(to as u32), None).unwrap().collect()
    };
    links(a).intersection(&links(b)).count()
}

#[track_caller]
fn ratio(value: u64, base: u64, expected: f64) {
    let ratio = value as f64 / base as f64;
    assert!((ratio / expected - 1.0).abs() < 0.02, "{value} / {base} = {ratio}, not {expected}");
}

/// A table of cases: the job, its flows, the number of links that two of the flows share, and how
/// much slower each is than the first alone.
#[test]
fn flows_are_slowed_by_those_that_share_a_link() {
    let routed =
        |platform: &Platform| checks::jobs::virtual_time(platform, 4).shape(line()).network(NetworkModel::Router);
    let of_fx100 = Platform::fx100();
    for (case, job, flows, links, slower) in [
        ("round robin", routed(&link_bound()).arbiter(Arbiter::RoundRobin), [(0, 2), (1, 3)], 1, 2.0),
        ("oldest first", routed(&link_bound()).arbiter(Arbiter::OldestFirst), [(0, 2), (1, 3)], 1, 2.0),
        // Each flow needs 10 GB/s, and the link carries 93 % of 12.5 GB/s. Posting takes 150 ns,
        // less than a packet's 192 ns.
        ("FX100", routed(&of_fx100), [(0, 2), (1, 3)], 1, 2.0 * 10.0 / (12.5 * 0.930)),
        ("side by side", routed(&link_bound()), [(0, 1), (2, 3)], 0, 1.0),
        ("in opposite directions", routed(&link_bound()), [(0, 1), (1, 0)], 0, 1.0),
    ] {
        let alone = ends(&job, &flows[..1])[0];
        assert_eq!(shared(&job, flows[0], flows[1]), links, "{case}");
        for end in ends(&job, &flows) {
            ratio(end, alone, slower);
        }
    }
}

#[test]
fn latency_only_has_no_contention() {
    let job = checks::jobs::virtual_time(&link_bound(), 4).shape(line());
    let alone = ends(&job, &[(0, 2)])[0];
    assert_eq!(ends(&job, &[(0, 2), (1, 3)]), [alone, alone]);
}

#[test]
fn other_paths_lead_round_a_full_link() {
    let shape = TofuShape::new([4, 1, 1, 2, 3, 2], [false, false, false, false, true, false]).unwrap();
    let job =
        |paths| checks::jobs::virtual_time(&link_bound(), 48).shape(shape).network(NetworkModel::Router).paths(paths);
    // From group 0 to 2 and from 1 to 3, at the same position in the group each time.
    let pairs = (0..12).map(|place| [(place, 24 + place), (12 + place, 36 + place)]);
    let apart = pairs.into_iter().find(|[a, b]| shared(&job(Paths::Spread), *a, *b) == 0).unwrap();
    assert_eq!(shared(&job(Paths::Default), apart[0], apart[1]), 1);
    let alone = ends(&job(Paths::Default), &apart[..1])[0];
    for end in ends(&job(Paths::Default), &apart) {
        ratio(end, alone, 2.0);
    }
    for end in ends(&job(Paths::Spread), &apart) {
        ratio(end, alone, 1.0);
    }
}

/// Three nodes of a line send to the fourth. The packets of the nearest one compete once, those of
/// the far ones two or three times.
fn parking_lot(arbiter: Arbiter) -> [u64; 3] {
    let job = checks::jobs::virtual_time(&link_bound(), 4).shape(line()).network(NetworkModel::Router).arbiter(arbiter);
    let alone = ends(&job, &[(2, 3)])[0];
    let ends = ends(&job, &[(0, 3), (1, 3), (2, 3)]);
    std::array::from_fn(|i| 100 * ends[i] / alone)
}

#[test]
fn round_robin_gives_the_nearest_half_of_a_shared_link_and_oldest_first_each_a_third() {
    // The nearest has half the link until its packets are through; then the others have it.
    let round_robin = (Arbiter::RoundRobin, [300, 300, 200]);
    for (arbiter, expected) in [round_robin, (Arbiter::OldestFirst, [300; 3])] {
        let ends = parking_lot(arbiter);
        assert!(ends.iter().zip(expected).all(|(end, expected)| end.abs_diff(expected) < 5), "{arbiter:?}: {ends:?}");
    }
}

#[test]
#[should_panic(expected = "a third")]
fn round_robin_does_not_give_each_a_third() {
    assert!(parking_lot(Arbiter::RoundRobin).iter().all(|end| end.abs_diff(300) < 5), "a third");
}
