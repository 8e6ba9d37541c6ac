//! Nodes of several ranks that stop at drawn moments, links that are slow or down meanwhile. A failure is replayed from its seed, or from the list it prints.

use super::program::{Tally, rounds};
use rdma_fabric::{Fabric, ProgramResult, Time};
use std::time::Duration;
use tofu2_sim::virt::{Fault, FaultKind, Faults, Job, Odds, Platform};

const RANKS: usize = 16;
const PER_NODE: u32 = 4;
/// All but those of the home's node.
const MORTAL: usize = 12;

async fn hammers(fabric: Fabric) -> ProgramResult<Result<Tally, String>> {
    let ended = rounds(fabric, MORTAL, 4, Duration::from_nanos(300), Duration::from_millis(20)).await;
    Ok(ended.map_err(|error| error.to_string()))
}

/// Run the job with these faults: how many ranks stopped, how often others found torn data, and when the last of them ended. The home's node lives.
fn run(what: &str, faults: &Faults) -> (usize, u64, Time) {
    let stopped = |rank: usize| {
        let node = rank as u32 / PER_NODE;
        faults.as_slice().iter().any(|fault| fault.kind == FaultKind::NodeStop { node })
    };
    let job = Job::new(&Platform::fx100(), RANKS).ranks_per_node(PER_NODE).faults(faults.clone());
    let (run, _) = job.run_through(&hammers).unwrap_or_else(|error| panic!("{what}: {error}\n{faults}"));
    let mut all = Tally::default();
    for (rank, out) in run.outs.into_iter().enumerate() {
        match out {
            Some(Ok(tally)) => {
                all.wrote += tally.wrote;
                all.torn += tally.torn;
                all.version = all.version.max(tally.version);
            }
            None if stopped(rank) => {}
            other => panic!("{what}: rank {rank} ended with {other:?}\n{faults}"),
        }
    }
    assert!(all.version >= all.wrote, "{what}: {all:?}\n{faults}");
    let lasted = run.finish_times.iter().skip(1).max().copied().unwrap_or(Time::ZERO);
    ((0..RANKS).filter(|rank| stopped(*rank)).count(), all.torn, lasted)
}

#[test]
fn nodes_stop_at_drawn_moments() {
    const SEEDS: u64 = 120;
    let (_, _, lasted) = run("nobody stops", &Faults::default());
    let within = Duration::from_nanos(lasted.as_picos() / 1000);
    let odds = Odds {
        faults: 24,
        within,
        longest: Duration::from_micros(5),
        node_stops: 3,
        ..Odds::new(RANKS as u32, PER_NODE)
    };
    let (mut lost, mut torn, mut most) = (0, 0, 0);
    for seed in 0..SEEDS {
        let drawn = Faults::drawn(seed, &odds);
        let lives = |fault: &&Fault| fault.kind != FaultKind::NodeStop { node: 0 };
        let faults = Faults::new(drawn.as_slice().iter().filter(lives).copied().collect());
        let (stopped, tore, _) = run(&format!("seed {seed}"), &faults);
        lost += stopped;
        torn += tore;
        most = most.max(stopped);
    }
    println!("{SEEDS} seeds, {lost} ranks lost, at most {most} in a run, torn data {torn} times");
    assert!(most == MORTAL && torn > 0);
}

/// One node after the other, the later ones soon after the first: while somebody opens an epoch.
#[test]
fn nodes_stop_during_a_recovery() {
    let stop = |node: u32, at: u64| Fault { at: Time::from_picos(at), kind: FaultKind::NodeStop { node } };
    let (mut runs, mut torn) = (0, 0);
    let (_, _, lasted) = run("nobody stops", &Faults::default());
    for first in [1, 2, 3].map(|quarter| lasted.as_picos() * quarter / 4) {
        for after in (0..12_000_000).step_by(311_003) {
            let faults = Faults::new(vec![stop(1, first), stop(2, first + after), stop(3, first + 2 * after)]);
            torn += run(&format!("{first}, {after} ps later"), &faults).1;
            runs += 1;
        }
    }
    println!("{runs} runs, torn data {torn} times");
    assert!(torn > 0);
}
