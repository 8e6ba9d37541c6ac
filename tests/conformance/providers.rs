//! Real shared memory and virtual time, as the suite runs them. Ranks as processes: [`crate::launched`].

use crate::suite::provider::{Case, Observed, On, Provider, Report};
use onesided::observe::{Detail, Gathering};
use rdma_fabric::{Fabric, Program, ProgramResult, forward, provider};
use std::time::Duration;
use tofu2_sim::{
    shm,
    virt::{Job, Platform},
};

/// Ranks as threads over shared memory.
pub(crate) struct Threads;

impl Provider for Threads {
    fn run<P: Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        Some(spawn(&shm::Threads::new(ranks), ranks, On::new(program)))
    }
}

/// Virtual time, undisturbed.
pub(crate) struct Virtual;

impl Provider for Virtual {
    fn run<P: Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        Some(simulate(&Job::new(&Platform::fx100(), ranks), ranks, On::new(program)))
    }
}

/// Ranks as threads whose fabric is wrapped to be observed: it keeps the contract that it passes on.
pub(crate) struct ObservedThreads;

impl Provider for ObservedThreads {
    fn run<P: Case>(ranks: usize, test: &str, _: u64, program: &P) -> Option<Report> {
        Some(spawn_observed(ranks, test, On::new(program)))
    }
}

/// Virtual time, observed.
pub(crate) struct ObservedVirtual;

impl Provider for ObservedVirtual {
    fn run<P: Case>(ranks: usize, test: &str, _: u64, program: &P) -> Option<Report> {
        Some(simulate_observed(ranks, test, On::new(program)))
    }
}

/// Ranks as threads under something in between that changes nothing.
pub(crate) struct LayeredThreads;

impl Provider for LayeredThreads {
    fn run<P: Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        Some(spawn_layered(ranks, On::new(program)))
    }
}

/// Virtual time under something in between that changes nothing: it keeps the contract by what `forward` writes.
pub(crate) struct LayeredVirtual;

impl Provider for LayeredVirtual {
    fn run<P: Case>(ranks: usize, _: &str, _: u64, program: &P) -> Option<Report> {
        Some(simulate_layered(ranks, On::new(program)))
    }
}

/// Virtual time with random latencies and ties, the turn being the seed.
pub(crate) struct Jittered;

impl Provider for Jittered {
    fn turns() -> u64 {
        8
    }

    fn run<P: Case>(ranks: usize, _: &str, turn: u64, program: &P) -> Option<Report> {
        let job = Job::new(&Platform::fx100(), ranks).seed(turn).jitter(Duration::from_micros(3));
        Some(simulate(&job.shuffle_ties(true).ranks_per_node(2), ranks, On::new(program)))
    }
}

/// The same with more ranks.
pub(crate) struct Crowded;

impl Provider for Crowded {
    fn turns() -> u64 {
        2
    }

    fn run<P: Case>(ranks: usize, test: &str, turn: u64, program: &P) -> Option<Report> {
        Jittered::run(ranks, test, 100 + turn, program)
    }

    fn sizes(listed: &[usize]) -> Vec<usize> {
        if listed == [1] { vec![1] } else { vec![4, 16] }
    }
}

pub(crate) fn spawn(threads: &shm::Threads, ranks: usize, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let ended = threads.run(&program);
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

pub(crate) fn simulate(job: &Job<'_>, ranks: usize, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let ended = job.run(&program);
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

fn spawn_observed(ranks: usize, test: &str, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let gathering = Gathering::new(Detail::Trace, ranks);
    let ended = shm::Threads::new(ranks).run(&gathering.watch(&program));
    assert_eq!(gathering.records().len(), ranks, "{test}");
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

fn simulate_observed(ranks: usize, test: &str, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let gathering = Gathering::new(Detail::Trace, ranks);
    let ended = Job::new(&Platform::fx100(), ranks).run(&gathering.watch(&program));
    assert_eq!(gathering.records().len(), ranks, "{test}");
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

fn spawn_layered(ranks: usize, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let ended = shm::Threads::new(ranks).run(&Under(&program));
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

fn simulate_layered(ranks: usize, program: On) -> Report {
    let program = Observed::new(program, ranks);
    let ended = Job::new(&Platform::fx100(), ranks).run(&Under(&program));
    program.report(ended.map(drop).map_err(|error| error.to_string()))
}

/// Stands in between, sees every access, and changes nothing.
#[derive(Debug)]
struct Between {
    below: Fabric,
}

impl provider::Provider for Between {
    forward!(
        alloc,
        alloc_symmetric,
        adopt,
        release,
        resolve_hidden,
        read,
        write,
        ring,
        put,
        get,
        atomic,
        nop,
        poll,
        test
    );
    forward!(forget, try_notice, poll_wait, end_wait, now, detach, optional);
}

/// A program under that.
struct Under<'a, P>(&'a P);

impl<P: Program> Program for Under<'_, P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        self.0.run(fabric.under(Between { below: fabric.clone() })).await
    }
}
