//! Our providers as test beds: real shared memory and virtual time, bare, observed, and under something in between.

#[cfg(target_os = "linux")]
mod processes;

use fabric_conformance::{CaseProgram, JobReport, TestBed};
use onesided::observe::{Detail, Gathering};
#[cfg(target_os = "linux")]
pub(crate) use processes::{DIRECTORY, KILL, OUTCOME, Processes, TOOK, outcome_in, run as run_processes};
use rdma_fabric::{Fabric, Program, ProgramResult, forward, provider};
use std::{ops::Range, time::Duration};
use tofu2_sim::{
    shm,
    virt::{Job, Platform},
};

/// Ranks as threads over shared memory.
pub(crate) struct Threads;

impl TestBed for Threads {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| shm::Threads::new(ranks).run(program)))
    }
}

/// Virtual time, undisturbed.
pub(crate) struct Virtual;

impl TestBed for Virtual {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| Job::new(&Platform::fx100(), ranks).run(program)))
    }
}

/// Virtual time with random latencies and ties, for the seeds `FROM..TO`.
pub(crate) struct Jittered<const FROM: u64, const TO: u64>;

impl<const FROM: u64, const TO: u64> TestBed for Jittered<FROM, TO> {
    fn turns() -> Range<u64> {
        FROM..TO
    }

    fn run(program: &CaseProgram, ranks: usize, _: &str, turn: u64) -> Option<JobReport> {
        let job = Job::new(&Platform::fx100(), ranks).seed(turn).jitter(Duration::from_micros(3));
        let job = job.shuffle_ties(true).ranks_per_node(2);
        Some(JobReport::of_one_process(program, ranks, |program| job.run(program)))
    }
}

/// [`Jittered`] virtual time with 4 and 16 ranks, for the seeds from 100 + `FROM`.
pub(crate) struct ManyRanks<const FROM: u64, const TO: u64>;

impl<const FROM: u64, const TO: u64> TestBed for ManyRanks<FROM, TO> {
    fn turns() -> Range<u64> {
        100 + FROM..100 + TO
    }

    fn run(program: &CaseProgram, ranks: usize, test: &str, turn: u64) -> Option<JobReport> {
        Jittered::<0, 0>::run(program, ranks, test, turn)
    }

    fn sizes(listed: &[usize]) -> Vec<usize> {
        if listed == [1] { vec![1] } else { vec![4, 16] }
    }
}

/// Ranks as threads whose fabric is wrapped to be observed.
pub(crate) struct ObservedThreads;

impl TestBed for ObservedThreads {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _: u64) -> Option<JobReport> {
        let gathering = Gathering::new(Detail::Trace, ranks);
        let report = JobReport::of_one_process(program, ranks, |program| {
            shm::Threads::new(ranks).run(&gathering.watch(program))
        });
        assert_eq!(gathering.records().len(), ranks, "{test}");
        Some(report)
    }
}

/// Virtual time, observed.
pub(crate) struct ObservedVirtual;

impl TestBed for ObservedVirtual {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _: u64) -> Option<JobReport> {
        let gathering = Gathering::new(Detail::Trace, ranks);
        let report = JobReport::of_one_process(program, ranks, |program| {
            Job::new(&Platform::fx100(), ranks).run(&gathering.watch(program))
        });
        assert_eq!(gathering.records().len(), ranks, "{test}");
        Some(report)
    }
}

/// Ranks as threads under something in between that changes nothing.
pub(crate) struct LayeredThreads;

impl TestBed for LayeredThreads {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| shm::Threads::new(ranks).run(&Under(program))))
    }
}

/// Virtual time under something in between that changes nothing: it keeps the contract by what `forward` writes.
pub(crate) struct LayeredVirtual;

impl TestBed for LayeredVirtual {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        let job = Job::new(&Platform::fx100(), ranks);
        Some(JobReport::of_one_process(program, ranks, |program| job.run(&Under(program))))
    }
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

/// A program whose fabric is [`Between`] over its provider's.
struct Under<'a, P>(&'a P);

impl<P: Program> Program for Under<'_, P> {
    type Out = P::Out;

    async fn run(&self, fabric: Fabric) -> ProgramResult<P::Out> {
        self.0.run(fabric.under(Between { below: fabric.clone() })).await
    }
}
