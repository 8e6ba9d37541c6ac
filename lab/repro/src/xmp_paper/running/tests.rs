//! The assumptions behind the runs.

use super::*;
use crate::{
    progress::Progress,
    xmp_paper::{Ordering, XmpRuns, ranges::SWEPT, run},
};

/// A plan without jobs.
fn nothing() -> XmpPlan {
    XmpPlan { nodes: Vec::new(), flat: Vec::new(), ranges: Vec::new(), ..XmpPlan::paper(0) }
}

/// Returns the time of `stages` stages of a version without the computation, with the blocks of
/// 1024 nodes on another number of nodes.
fn exchanging_for(stages: u32, version: Version, shape: Shape, network: NetworkModel) -> f64 {
    let (plan, mut progress) = (XmpPlan { stages, ..nothing() }, Progress::silent());
    let mut running = Running::new(&plan, Runner::new(&mut progress, 1, None));
    let what = small(running.of(version, sides(shape)), shape);
    let setting = Setting { network, ..running.setting(version.machine(&plan.platform), shape, 1) };
    let (took, _) = running.job(version.to_string(), setting, what).expect("it runs");
    took.exchanging as f64
}

fn exchanging(version: Version, shape: Shape, network: NetworkModel) -> f64 {
    exchanging_for(1, version, shape, network)
}

const NEIGHBOURS: [Version; 4] = [Version::Datatypes, Version::Pack, Version::RdmaByHand, Version::Blocks];

#[test]
fn neighbours_take_as_long_on_16_nodes_as_on_more() {
    for version in NEIGHBOURS {
        let [few, more] = [SMALL, Shape::new(&[8, 8])].map(|shape| exchanging(version, shape, NetworkModel::Latency));
        assert_eq!(few, more, "{version}");
    }
    let [few, more] = [SMALL, Shape::new(&[8, 8])].map(|shape| exchanging(Version::Rdma, shape, NetworkModel::Latency));
    assert!(more > few, "barriers take longer with more nodes: {few}, {more}");
}

#[test]
fn routers_change_little() {
    for version in NEIGHBOURS {
        let [without, with] =
            [NetworkModel::Latency, NetworkModel::Router].map(|network| exchanging(version, SMALL, network));
        assert!((with / without - 1.0).abs() < 0.03, "{version}: {without} without, {with} with");
    }
}

#[test]
fn stages_take_equally_long() {
    for version in Version::ALL {
        let [one, three] = [1, 3].map(|stages| exchanging_for(stages, version, SMALL, NetworkModel::Latency));
        assert!((3.0 * one / three - 1.0).abs() < 0.02, "{version}: {one} by one, {three} by three");
    }
}

/// Returns the margin of an ordering on a machine, between versions that synchronize only with
/// neighbours.
fn margin(ordering: Ordering, platform: &Platform) -> f64 {
    let (plan, mut progress) = (XmpPlan { platform: platform.clone(), ..nothing() }, Progress::silent());
    let runner = Runner::new(&mut progress, 1, None);
    let mut running = Running::new(&plan, runner);
    let versions = SWEPT.into_iter().filter(|version| !version.has_barriers());
    let times: Vec<_> = versions.map(|version| (version, running.swept(version, None).expect("it runs").0)).collect();
    let time = |version| times.iter().find(|(of, _)| *of == version).map(|(_, time)| *time);
    ordering.margin(&time).expect("all were run")
}

#[test]
fn orderings_hold_on_some_machines_and_not_on_others() {
    let changed = |name, value| Platform::k().with(name, value).expect(name);
    let k = Platform::k();
    for (ordering, holds, fails) in [
        (Ordering::Pack, k.clone(), changed("software.mpi.setup", 0)),
        (Ordering::Datatypes, changed("software.pack", 1_000_000), k.clone()),
        (Ordering::Scattered, changed("send_gap", 1_600_000), k.clone()),
        (Ordering::ScatteredOverlap, changed("send_gap", 1_600_000), changed("software.xmp.act", 0)),
    ] {
        assert!(margin(ordering, &holds) > 0.0, "{ordering} does not hold");
        assert!(margin(ordering, &fails) <= 0.0, "{ordering} holds");
    }
}

#[test]
fn overlap_hides_little_of_what_the_core_gathers() {
    let gain = |slow| margin(Ordering::Overlap, &Platform::k().with("software.pack", slow).expect("pack"));
    let [quickly, slowly] = [1_000, 1_000_000].map(gain);
    assert!(quickly > slowly, "{quickly} where gathering is fast, {slowly} where it is slow");
    assert!(slowly < 0.0, "{slowly}");
}

#[test]
fn equal_plans_give_equal_runs_with_as_many_jobs_as_said() {
    let few = XmpPlan { nodes: Nodes::ALL[..1].to_vec(), flat: Nodes::ALL[..1].to_vec(), seed: 7, ..nothing() };
    let more = XmpPlan { nodes: Nodes::ALL[..2].to_vec(), ..few.clone() };
    let [one, other, more_runs] = [&few, &few, &more].map(|plan| run(plan, &mut Progress::silent()).expect("it runs"));
    let hashes = |runs: &XmpRuns| runs.jobs().map(|job| job.trace_hash).collect::<Vec<_>>();
    assert_eq!(hashes(&one), hashes(&other));
    assert_eq!((hashes(&one).len(), hashes(&more_runs).len()), (few.jobs(), more.jobs()));
    for version in Version::ALL {
        let speed_up = more_runs.speed_up(version, 4).expect("it was run");
        assert!((3.9..4.1).contains(&speed_up), "{version}: {speed_up}");
    }
}
