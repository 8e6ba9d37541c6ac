//! Runs the programs that documentation shows.

use rdma_fabric::Program;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Rounds between threads: a missing barrier makes about every second run fail.
const ROUNDS: usize = 10;
/// Seeds in virtual time, each for a different order of simultaneous events.
const SEEDS: u64 = 5;

/// Runs `program` with `ranks` ranks, repeatedly: as threads that share memory, and in virtual time.
///
/// # Panics
/// If a run fails.
pub fn run(ranks: usize, program: &impl Program) {
    for round in 0..ROUNDS {
        if let Err(error) = Threads::new(ranks).run(program) {
            panic!("threads, round {round}: {error}");
        }
    }
    for seed in 0..SEEDS {
        if let Err(error) = Job::new(&Platform::fx100(), ranks).seed(seed).shuffle_ties(true).run(program) {
            panic!("virtual time, seed {seed}: {error}");
        }
    }
}
