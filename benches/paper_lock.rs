//! The lock paper: its published figures in virtual time, and reader pairs between threads of this machine.
//!
//! Run with `cargo bench --bench paper_lock`.

mod paper;

use paper::Reproduced;
use repro::{
    ReproError,
    figures::Paper,
    lock_paper::{self, LockPlan, Shapes},
    progress::Progress,
};
use std::thread;

fn main() {
    paper::published(Paper::Lock, reproduce);
    #[cfg(target_os = "linux")]
    threads::bench();
}

fn reproduce(smoke: bool) -> Result<Reproduced, ReproError> {
    let plan = if smoke { LockPlan::quick(Shapes::One, 0) } else { LockPlan::paper(Shapes::One, 0) }.published();
    // The largest job takes as long as all others together. A plan always has the jobs of figures 9, 11 and 12: one pair
    // is enough where they are not needed.
    let largest = LockPlan { scaling: Vec::new(), ranks_per_node: Vec::new(), pairs: 1, ..plan.clone() };
    let others = LockPlan { k_ranks: 0, ..plan };
    let (largest, others) = thread::scope(|scope| {
        let largest = scope.spawn(|| lock_paper::run(&largest, &mut Progress::silent()));
        let others = lock_paper::run(&others, &mut paper::progress());
        (largest.join().expect("no panic"), others)
    });
    let mut runs = others?;
    runs.k = largest?.k;
    Ok(Reproduced { rows: lock_paper::compare(&runs), jobs: runs.jobs().cloned().collect() })
}

#[cfg(target_os = "linux")]
mod threads {
    use super::paper::threads::{Operations, criterion, in_jobs, run};
    use repro::{
        figures::Paper,
        workloads::{Together, reader_pairs},
    };
    use std::time::Duration;

    pub(super) fn bench() {
        let mut criterion = criterion();
        let mut operations = Operations::new(&mut criterion, Paper::Lock);
        let pairs = |ranks| (String::new(), move |times| reader_pairs_of(ranks, times));
        operations.beside("reader pair, 1 rank", ("2 atomics", |machine, n| machine.count_reader(n)), [pairs(1)]);
        operations.beside(
            "reader pair, 2 ranks",
            ("2 atomics each", |machine, n| machine.count_readers(n)),
            [pairs(2)],
        );
    }

    /// Returns the time of the slowest rank.
    fn reader_pairs_of(ranks: usize, times: u64) -> Duration {
        in_jobs(times, u32::MAX, |pairs| {
            let outs = run(ranks, &reader_pairs(pairs, Together::Barrier));
            outs.into_iter().max().unwrap_or(0)
        })
    }
}
