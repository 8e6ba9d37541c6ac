//! Equal jobs run equally; seeds explore schedules.

use crate::{
    saturation::pairs,
    start::{NETWORKS, all_differ, fx100},
};
use std::time::Duration;
use tofu2_virt::{Arbiter, Job, NetworkModel, QueueKind, Stats};

fn run(job: Job<'_>) -> Stats {
    job.run(&async |fabric| pairs(fabric, 5).await).unwrap().stats
}

fn base<'a>(network: NetworkModel) -> Job<'a> {
    fx100(96).ranks_per_node(8).network(network)
}

#[test]
fn the_same_job_gives_the_same_hash_twice_and_with_another_queue() {
    for network in NETWORKS {
        let first = run(base(network));
        assert_eq!(first, run(base(network)));
        let other = run(base(network).queue(QueueKind::Binary));
        assert_eq!((first.trace_hash, first.events, first.end), (other.trace_hash, other.events, other.end));
        assert_eq!(first.trace_hash, run(base(network).seed(7)).trace_hash, "without chance a seed changes nothing");
    }
}

#[test]
fn seeds_change_the_run_and_repeat_it() {
    for network in NETWORKS {
        let jitter = |seed| run(base(network).jitter(Duration::from_nanos(50)).seed(seed));
        let ties = |seed| run(base(network).shuffle_ties(true).seed(seed));
        let with_binary = run(base(network).shuffle_ties(true).seed(1).queue(QueueKind::Binary));
        assert_eq!(jitter(1), jitter(1));
        assert_eq!(ties(1).trace_hash, with_binary.trace_hash);
        let hashes = [run(base(network)), jitter(1), jitter(2), ties(1), ties(2)].map(|stats| stats.trace_hash);
        assert!(all_differ(&hashes), "{network:?}: {hashes:x?}");
    }
}

#[test]
fn arbiters_differ() {
    let hash = |arbiter| run(base(NetworkModel::Router).arbiter(arbiter)).trace_hash;
    assert_ne!(hash(Arbiter::RoundRobin), hash(Arbiter::OldestFirst));
}

/// Recorded hashes, which fix the model's arithmetic and order of events. A deliberate change of
/// the model changes them.
#[test]
fn the_hash_is_the_recorded_one() {
    let hashes = NETWORKS.map(|network| run(base(network)).trace_hash);
    assert_eq!(hashes, RECORDED, "latency, router");
}

const RECORDED: [u64; 2] = [2_882_854_382_656_610_196, 17_671_174_970_720_358_625];

#[test]
fn progress_is_reported() {
    let mut reports = vec![];
    fx100(8)
        .progress(10, |events, time| reports.push((events, time)))
        .run(&async |fabric| pairs(fabric, 5).await)
        .unwrap();
    assert!(reports.len() > 10);
    assert!(reports.windows(2).all(|w| w[0].0 < w[1].0 && w[0].1 <= w[1].1));
}
