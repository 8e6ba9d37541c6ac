//! Jobs of many ranks, in virtual time and on threads.

use crate::wrapped::{Watch, Wrapped, Wrapping};
use repro::{
    peers::{Competitor, Peer, contention},
    workloads::locks::{EXCLUSIVE, RankRecord, Run, RunLength, SHARED, Workload, WriterShare, contend},
};
use std::time::Duration;
use tofu2_sim::virt::Platform;

const RANKS: usize = 12;
const EACH: u32 = 25;
/// Longer than a put takes.
const JITTER: Duration = Duration::from_micros(5);

fn run(workload: Workload, writers: u32, seed: u64) -> Run {
    let length = RunLength::Operations { each: EACH, within: Duration::from_secs(1) };
    Run { workload, writers: WriterShare::per_mille(writers), length, timed: false, keys: 4, seed }
}

/// Watched peers, in every workload and with different shares of writers, each seed with different
/// delays. (Spinning is one of our own locks.)
#[test]
fn peers_exclude_and_all_enter() {
    for peer in [Peer::ShiftLock, Peer::DecLock, Peer::Mcs] {
        for workload in Workload::ALL {
            for (share, seed) in [(0, 1), (20, 2), (200, 3), (200, 4), (500, 5), (900, 6), (1000, 7)] {
                let case = format!("{}, {workload}, {share} of 1000, seed {seed}", peer.name());
                let (run, watch) = (run(workload, share, seed), Watch::default());
                let kind = Some(Competitor::Peer(peer));
                let wrapping = Wrapping { kind, broken: false, watch: Some(watch.clone()) };
                let program = async move |fabric| contend::<Wrapped>(&fabric, &run, wrapping.clone()).await;
                let job = checks::jobs::virtual_time(&Platform::fx100(), RANKS)
                    .ranks_per_node(4)
                    .seed(seed)
                    .shuffle_ties(true);
                let job = if seed % 2 == 0 { job.jitter(JITTER) } else { job };
                let records = job.run(&program).unwrap_or_else(|error| panic!("{case}: {error}")).outs;
                let seen = watch.seen();
                assert!(!seen.broken, "{case}");
                let completed = |kind: usize| records.iter().map(|record| record.completed[kind]).sum::<u64>();
                assert_eq!((completed(SHARED), completed(EXCLUSIVE)), (seen.read, seen.written), "{case}");
                assert_eq!(seen.read + seen.written, RANKS as u64 * u64::from(EACH), "{case}");
            }
        }
    }
}

/// Enough ranks for a queue that is longer than the part that DecLock reads at once.
#[test]
fn peers_exclude_where_queues_are_long() {
    for (peer, share) in [(Peer::ShiftLock, 20), (Peer::DecLock, 2), (Peer::DecLock, 300)] {
        let run = Run {
            length: RunLength::Operations { each: 2, within: Duration::from_secs(1) },
            ..run(Workload::Wcsb, share, 5)
        };
        let job = checks::jobs::virtual_time(&Platform::fx100(), 1500).ranks_per_node(32).seed(5).jitter(JITTER);
        let done = job.run(&async |fabric| contention(fabric, Competitor::Peer(peer), run).await);
        let records = done.unwrap_or_else(|error| panic!("{}, {share} of 1000: {error}", peer.name())).outs;
        assert_eq!(records.iter().map(RankRecord::all).sum::<u64>(), 3000, "{}, {share} of 1000", peer.name());
    }
}

#[test]
fn peers_contend_on_threads() {
    for peer in Peer::ALL {
        for workload in [Workload::Ecsb, Workload::Wcsb, Workload::Dht] {
            let length = RunLength::Lasting { warm_up: Duration::from_millis(1), length: Duration::from_millis(8) };
            let run = Run { length, ..run(workload, 250, 1) };
            let records = checks::jobs::threads(3)
                .segment_bytes(1 << 20)
                .run(&async |fabric| contention(fabric, Competitor::Peer(peer), run).await)
                .unwrap_or_else(|error| panic!("{}, {workload}: {error}", peer.name()));
            assert!(records.iter().map(RankRecord::all).sum::<u64>() > 0, "{}, {workload}", peer.name());
        }
    }
}
