//! In virtual time every moment of a run can be the last of a rank.

use super::program::{Tally, rounds};
use rdma_fabric::{Fabric, ProgramResult, Time};
use std::time::Duration;
use tofu2_sim::virt::{Fault, FaultKind, Faults, Job, Platform};

async fn recovers(fabric: Fabric, n: u64) -> ProgramResult<Result<Tally, String>> {
    let ended = rounds(fabric, 3, n, Duration::from_nanos(300), Duration::from_millis(1)).await;
    Ok(ended.map_err(|error| error.to_string()))
}

fn job(ranks: usize) -> Job<'static> {
    Job::new(&Platform::fx100(), ranks).ranks_per_node(1)
}

/// How a run ended: how often survivors found the record torn, and how long it took.
struct End {
    torn: u64,
    lasted: Time,
}

/// Each of `victims` stops at its time, in picoseconds; the others must not notice more than that.
fn run(ranks: usize, n: u64, victims: &[(u32, u64)]) -> End {
    let stop = |(node, at): &(u32, u64)| Fault { at: Time::from_picos(*at), kind: FaultKind::NodeStop { node: *node } };
    let faults = Faults::new(victims.iter().map(stop).collect());
    let (run, _) = job(ranks)
        .faults(faults)
        .run_through(&async |fabric| recovers(fabric, n).await)
        .unwrap_or_else(|error| panic!("{victims:?}: {error}"));
    let (mut wrote, mut version, mut torn) = (0, 0, 0);
    for (rank, out) in run.outs.into_iter().enumerate() {
        let dies = victims.iter().any(|(victim, _)| *victim as usize == rank);
        match out {
            Some(Ok(tally)) => {
                wrote += tally.wrote;
                torn += tally.torn;
                version = version.max(tally.version);
            }
            // Killed after its end, or before.
            None if dies => {}
            other => panic!("{victims:?}: rank {rank} ended with {other:?}"),
        }
    }
    assert!(version >= wrote, "{victims:?}: {version} versions, {wrote} written");
    let lasted = run.finish_times.iter().skip(1).max().copied().unwrap_or(Time::ZERO);
    End { torn, lasted }
}

#[test]
fn nobody_dies() {
    for ranks in [1, 2, 4] {
        let tallies = job(ranks).run(&async |fabric| recovers(fabric, 6).await).expect("a run").outs;
        let tallies: Vec<_> = tallies.into_iter().map(|tally| tally.expect("no error")).collect();
        assert_eq!(tallies[0].version, tallies.iter().map(|tally| tally.wrote).sum::<u64>(), "{ranks} ranks");
        assert!(tallies.iter().all(|tally| tally.torn == 0), "{ranks} ranks");
    }
}

/// One of three ranks stops, at one time after the other.
#[test]
fn one_dies_at_any_moment() {
    let lasted = run(3, 4, &[]).lasted.as_picos();
    let (mut runs, mut torn) = (0, 0);
    for victim in [1, 2] {
        for at in (0..lasted).step_by(37_003) {
            torn += u64::from(run(3, 4, &[(victim, at)]).torn > 0);
            runs += 1;
        }
    }
    println!("{runs} runs of {lasted} ps, {torn} with torn data");
    assert!(torn > 0 && torn < runs);
}
