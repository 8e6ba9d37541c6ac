//! Exchanges without control queues against a network that delivers in any order, and against ranks
//! that die at any moment.
//!
//! `onesided-explore` delays puts as long as the contract allows and delivers them in any order,
//! and schedules each rank's next action at any time. Small jobs are explored to the last state,
//! larger ones at random; `cargo xtask explore` explores those in between.

mod forms;
mod tasks;

use checks::exchange::{
    self,
    Call::{Partitions, Points},
    Case, MUTANTS, called, case, explorer, job,
};
use rdma_fabric::PutOrder;
use std::{env, time::SystemTime};

#[test]
fn small_jobs_in_every_order() {
    for case in exchange::small() {
        let report = explorer(case).run(job(*case));
        println!("{}: {report}", case.name);
        report.expect_exhausted();
        assert!(report.states >= case.at_least, "{}: {} states", case.name, report.states);
    }
}

#[test]
fn every_wrong_step_is_found() {
    for mutant in MUTANTS {
        let report = explorer(&mutant.case).run(mutant.job());
        let found = report.violation().unwrap_or_else(|| panic!("{} is not noticed: {report}", mutant.name()));
        println!("{}: {} moves, {}", mutant.name(), found.moves, found.what);
        assert!(found.what.starts_with(mutant.found), "{}: {found}", mutant.name());
    }
}

const RING: &[&[usize]] = &[&[1, 3], &[2, 0], &[3, 1], &[0, 2]];
/// Several edges between two members, loops, edges in one direction, a member that only receives.
const MIXED: &[&[usize]] = &[&[1, 1, 0, 4], &[0, 2], &[3, 2, 2], &[0, 4, 1], &[]];

/// The first seed of the random samples.
fn first_seed() -> u64 {
    let clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = env::var("PERSISTENT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    println!("PERSISTENT_SEED={seed}");
    seed
}

#[test]
fn larger_jobs_in_random_orders() {
    sample(1);
}

#[test]
#[ignore = "long: weekly"]
fn larger_jobs_in_more_random_orders() {
    sample(2);
}

fn sample(runs: u64) {
    let seed = first_seed();
    for order in [PutOrder::None, PutOrder::SameTarget] {
        let cases = [
            case("a ring of four x3", RING, 3, order),
            Case { words: 3, looks: true, ..case("mixed x3", MIXED, 3, order) },
            called(case("points: mixed x2", MIXED, 2, order), Points),
            Case { words: 4, looks: true, ..called(case("parts: mixed x2", MIXED, 2, order), Partitions(2)) },
        ];
        for case in cases {
            let sample = explorer(&case).sample(seed, runs, job(case));
            println!("{}, {order:?}: {} runs of {} events", case.name, sample.runs, sample.events / sample.runs.max(1));
            assert!(sample.failure.is_none(), "{}, {order:?}: {sample}", case.name);
        }
    }
}
