//! Ranks that stop at each moment of a run, at random moments while links are slow or down, or
//! during a recovery; the survivors' use of the lock must stay correct. A failure is reproduced
//! from its seed, or from the list of faults that it prints.

use checks::jobs::virtual_time;
use checks::lock::Record;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, Recovery},
};
use std::time::Duration;
use tofu2_sim::virt::{Fault, FaultKind, Faults, Odds, Platform};

const HOME: Rank = Rank::new(0);
/// The duration of a write.
const BUSY: Duration = Duration::from_nanos(300);

/// The observations of a survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Tally {
    /// The number of versions it wrote and released.
    wrote: u64,
    /// The number of times it found torn data.
    torn: u64,
    /// The version at the end; at the home only.
    version: u64,
}

/// Reads and writes in turn, `rounds` times. A rank that dies may leave the record torn; the rank
/// that finds it mends it.
async fn rounds(fabric: Fabric, deaths: usize, rounds: u64, end: Duration) -> ProgramResult<Tally> {
    let lock = RecoverableLock::symmetric_with(&fabric, HOME, Recovery::of_deaths(deaths)).await?;
    let region = fabric.alloc_symmetric(16).await?;
    let record = Record::new(&fabric, &region)?;
    let mut tally = Tally::default();
    for round in 0..rounds {
        if (round + u64::from(fabric.rank().number())).is_multiple_of(2) {
            let (guard, torn) = record.write(&lock).await?;
            tally.torn += u64::from(torn);
            let version = record.version("a writer").await? + 1;
            record.set_half(0, version).await?;
            fabric.compute(BUSY).await;
            record.set_half(1, version).await?;
            guard.release().await?;
            tally.wrote += 1;
        } else {
            match lock.read().await {
                Err(LockError::Torn { .. }) => continue,
                guard => {
                    let guard = guard?;
                    record.version("a reader").await?;
                    guard.release().await?;
                }
            }
        }
    }
    if fabric.rank() == HOME {
        // The home's memory is still needed.
        fabric.sleep(end).await;
        let [a, b] = record.halves().await?;
        tally.version = a.max(b);
    }
    Ok(tally)
}

/// A job of these ranks.
#[derive(Clone, Copy)]
struct StoppingJob {
    ranks: usize,
    per_node: u32,
    deaths: usize,
    rounds: u64,
    /// The time until which the home stays alive.
    end: Duration,
}

/// The result of a run.
struct RunEnd {
    /// The number of ranks on nodes that stopped.
    stopped: usize,
    /// The number of times that survivors found the record torn.
    torn: u64,
    /// The time at which the last rank except the home ended.
    lasted: Time,
}

fn stop(node: u32, at: u64) -> Fault {
    Fault { at: Time::from_picos(at), kind: FaultKind::NodeStop { node } }
}

impl StoppingJob {
    const fn of(ranks: usize, rounds: u64) -> Self {
        StoppingJob { ranks, per_node: 1, deaths: 3, rounds, end: Duration::from_millis(1) }
    }

    async fn part(self, fabric: Fabric) -> ProgramResult<Result<Tally, String>> {
        Ok(rounds(fabric, self.deaths, self.rounds, self.end).await.map_err(|error| error.to_string()))
    }

    /// Runs the job with these faults; survivors must not notice any other effect.
    fn run(self, what: &str, faults: &Faults) -> RunEnd {
        let stopped = |rank: usize| {
            let node = rank as u32 / self.per_node;
            faults.as_slice().iter().any(|fault| fault.kind == FaultKind::NodeStop { node })
        };
        let job = virtual_time(&Platform::fx100(), self.ranks).ranks_per_node(self.per_node).faults(faults.clone());
        let run = job.run_through(&async |fabric| self.part(fabric).await);
        let (run, _) = run.unwrap_or_else(|error| panic!("{what}: {error}\n{faults}"));
        let mut all = Tally::default();
        for (rank, out) in run.outs.into_iter().enumerate() {
            match out {
                Some(Ok(tally)) => {
                    all.wrote += tally.wrote;
                    all.torn += tally.torn;
                    all.version = all.version.max(tally.version);
                }
                // Its node stopped, before or after the rank had ended.
                None if stopped(rank) => {}
                other => panic!("{what}: rank {rank} ended with {other:?}\n{faults}"),
            }
        }
        assert!(all.version >= all.wrote, "{what}: {all:?}\n{faults}");
        let lasted = run.finish_times.iter().skip(1).max().copied().unwrap_or(Time::ZERO);
        RunEnd { stopped: (0..self.ranks).filter(|rank| stopped(*rank)).count(), torn: all.torn, lasted }
    }
}

#[test]
fn nobody_dies() {
    for ranks in [1, 2, 4] {
        let job = StoppingJob::of(ranks, 6);
        let tallies = virtual_time(&Platform::fx100(), ranks).ranks_per_node(1);
        let tallies = tallies.run(&async |fabric| job.part(fabric).await).expect("a run").outs;
        let tallies: Vec<_> = tallies.into_iter().map(|tally| tally.expect("no error")).collect();
        assert_eq!(tallies[0].version, tallies.iter().map(|tally| tally.wrote).sum::<u64>(), "{ranks} ranks");
        assert!(tallies.iter().all(|tally| tally.torn == 0), "{ranks} ranks");
    }
}

#[test]
fn one_dies_at_any_moment() {
    one_dies(148_003);
}

#[test]
#[ignore = "long: weekly"]
fn one_dies_at_more_moments() {
    one_dies(37_003);
}

/// One of three ranks stops, at each of a series of times.
fn one_dies(step: usize) {
    let job = StoppingJob::of(3, 4);
    let lasted = job.run("nobody stops", &Faults::default()).lasted.as_picos();
    let (mut runs, mut torn) = (0, 0);
    for victim in [1, 2] {
        for at in (0..lasted).step_by(step) {
            let end = job.run(&format!("rank {victim} at {at} ps"), &Faults::new(vec![stop(victim, at)]));
            torn += u64::from(end.torn > 0);
            runs += 1;
        }
    }
    println!("{runs} runs of {lasted} ps, {torn} with torn data");
    assert!(torn > 0 && torn < runs);
}

/// Four ranks per node; those of the home's node stay alive.
const NODES: StoppingJob =
    StoppingJob { ranks: 16, per_node: 4, deaths: 12, rounds: 4, end: Duration::from_millis(20) };

#[test]
fn nodes_stop_at_drawn_moments() {
    const SEEDS: u64 = 120;
    let lasted = NODES.run("nobody stops", &Faults::default()).lasted;
    let odds = Odds {
        faults: 24,
        within: Duration::from_nanos(lasted.as_picos() / 1000),
        longest: Duration::from_micros(5),
        node_stops: 3,
        ..Odds::new(NODES.ranks as u32, NODES.per_node)
    };
    let (mut lost, mut torn, mut most) = (0, 0, 0);
    for seed in 0..SEEDS {
        let drawn = Faults::drawn(seed, &odds);
        let lives = |fault: &&Fault| fault.kind != FaultKind::NodeStop { node: 0 };
        let faults = Faults::new(drawn.as_slice().iter().filter(lives).copied().collect());
        let end = NODES.run(&format!("seed {seed}"), &faults);
        lost += end.stopped;
        torn += end.torn;
        most = most.max(end.stopped);
    }
    println!("{SEEDS} seeds, {lost} ranks lost, at most {most} in a run, torn data {torn} times");
    assert!(most == NODES.deaths && torn > 0);
}

/// Nodes stop one after the other, the later ones soon after the first, while a rank opens an
/// epoch.
#[test]
fn nodes_stop_during_a_recovery() {
    let (mut runs, mut torn) = (0, 0);
    let lasted = NODES.run("nobody stops", &Faults::default()).lasted;
    for first in [1, 2, 3].map(|quarter| lasted.as_picos() * quarter / 4) {
        for after in (0..12_000_000).step_by(311_003) {
            let faults = Faults::new(vec![stop(1, first), stop(2, first + after), stop(3, first + 2 * after)]);
            torn += NODES.run(&format!("{first}, {after} ps later"), &faults).torn;
            runs += 1;
        }
    }
    println!("{runs} runs, torn data {torn} times");
    assert!(torn > 0);
}
