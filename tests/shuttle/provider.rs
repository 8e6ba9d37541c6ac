//! Running a case under one schedule.

use crate::{
    fabric::{Job, Life, Mutation, ShuttleFabric, block_on, detached},
    suite::provider::{Case, Observed, On, Outcome, Provider, Report},
};
use rdma_fabric::{Fabric, Program};
use shuttle::{
    Config, FailurePersistence, MaxSteps, Runner,
    scheduler::{PctScheduler, RandomScheduler},
    thread,
};
use std::{
    any::Any,
    cell::Cell,
    env,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::{Duration, Instant, SystemTime},
};

/// More steps than any case takes.
const STEPS: usize = 50_000_000;
/// Stack of a rank, in bytes.
const STACK: usize = 1 << 20;
/// Points at which a PCT schedule changes its mind.
const DEPTH: usize = 3;

/// Where drawing begins.
pub(crate) fn first_seed() -> u64 {
    let by_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    number("SHUTTLE_SEED").unwrap_or_else(by_clock)
}

fn number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}

/// Which scheduler: even seeds draw at random, odd ones by PCT.
pub(crate) fn run<P: Case>(ranks: usize, seed: u64, mutation: Mutation, program: &P) -> Report {
    let program = Arc::new(Observed::new(On::<ShuttleFabric>::new(program), ranks));
    let mut config = Config::new();
    config.stack_size = STACK;
    config.max_steps = MaxSteps::FailAfter(STEPS);
    // The seed is enough.
    config.failure_persistence = FailurePersistence::None;
    let shared = program.clone();
    let body = move || job(ranks, mutation, &shared);
    let ended = catch_unwind(AssertUnwindSafe(|| {
        if seed.is_multiple_of(2) {
            Runner::new(RandomScheduler::new_from_seed(seed, 1), config).run(body);
        } else {
            Runner::new(PctScheduler::new_from_seed(seed, DEPTH, 1), config).run(body);
        }
    }));
    let report = program.report(Ok(()));
    let failed = report.outcomes.iter().any(|outcome| !matches!(outcome, Outcome::Ended(_)));
    let verdict = match ended {
        Err(panic) => Err(format!("seed {seed}: {}", message(&*panic))),
        Ok(()) if failed => Err(format!("seed {seed}")),
        Ok(()) => Ok(()),
    };
    Report { verdict, ..report }
}

fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_default()
}

/// All ranks and the network; on a shuttle thread.
fn job<P: Case>(ranks: usize, mutation: Mutation, program: &Arc<Observed<P>>) {
    detached::forget_all();
    let job = Arc::new(Job::new(ranks, mutation));
    let mut threads = Vec::new();
    for me in 0..ranks {
        let (job, program) = (job.clone(), program.clone());
        threads.push(thread::spawn(move || rank(&job, me, &*program)));
    }
    let network = {
        let job = job.clone();
        thread::spawn(move || job.carry())
    };
    for thread in threads {
        thread.join().expect("a rank's panic is caught");
    }
    network.join().expect("the network does not panic, or the run is over");
}

fn rank<P: Program>(job: &Arc<Job>, me: usize, program: &P) {
    let fabric = ShuttleFabric::new(job.clone(), me);
    debug_assert_eq!(fabric.rank().index(), me);
    let ended = catch_unwind(AssertUnwindSafe(|| block_on(job, me, detached::with_detached(me, program.run(fabric)))));
    job.end(me, if matches!(ended, Ok(Ok(_))) { Life::Left } else { Life::Lost });
}

/// 4 and 16 ranks, schedules of both kinds.
pub(crate) struct Shuttle;

thread_local! {
    /// When this test began to run schedules.
    static BEGUN: Cell<Option<Instant>> = const { Cell::new(None) };
}

/// Tests that share `SHUTTLE_SECONDS`, about.
const TESTS: u32 = 56;

impl Provider for Shuttle {
    fn turns() -> u64 {
        if number("SHUTTLE_SECONDS").is_some() { 1_000_000 } else { 2 }
    }

    fn run<P: Case>(ranks: usize, test: &str, turn: u64, program: &P) -> Option<Report> {
        let begun = BEGUN.get().unwrap_or_else(Instant::now);
        BEGUN.set(Some(begun));
        let budget = number("SHUTTLE_SECONDS").map(|seconds| Duration::from_secs(seconds) / TESTS);
        if turn >= 2 && budget.is_some_and(|budget| begun.elapsed() > budget) {
            return None;
        }
        let seed = first_seed().wrapping_add(turn);
        println!("{test}: {ranks} ranks, SHUTTLE_SEED={seed}");
        Some(run(ranks, seed, Mutation::None, program))
    }

    fn sizes(listed: &[usize]) -> Vec<usize> {
        if listed == [1] { vec![1] } else { vec![4, 16] }
    }
}
