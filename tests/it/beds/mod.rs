//! Our providers as test beds: real shared memory and virtual time, bare, observed, and under a
//! layer in between.

#[cfg(target_os = "linux")]
mod processes;

use fabric_conformance::{CaseProgram, JobReport, TestBed};
use onesided::observe::{Detail, Gathering};
#[cfg(target_os = "linux")]
pub(crate) use processes::{DIRECTORY, KILL, OUTCOME, Processes, TOOK, outcome_in};
use rdma_fabric::{Fabric, Program, ProgramResult, forward, provider};
use std::{marker::PhantomData, ops::Range, time::Duration};
use tofu2_sim::{
    JobError, shm,
    virt::{Job, NetworkModel, Platform},
};

/// A provider that runs all ranks of a job in this process.
pub(crate) trait InProcess {
    /// Runs a program to completion.
    fn start<P: Program>(program: &P, ranks: usize) -> Result<(), JobError>;
}

/// Ranks as threads over shared memory, all on one node or `ON_NODE` on each.
pub(crate) struct Threads<const ON_NODE: usize = 0>;

impl<const ON_NODE: usize> InProcess for Threads<ON_NODE> {
    fn start<P: Program>(program: &P, ranks: usize) -> Result<(), JobError> {
        let on_node = if ON_NODE == 0 { ranks } else { ON_NODE };
        shm::Threads::new(ranks).ranks_per_node(on_node).run(program).map(drop)
    }
}

/// Virtual time, undisturbed, with `ON_NODE` ranks on each node.
pub(crate) struct Virtual<const ON_NODE: u32 = 1>;

impl<const ON_NODE: u32> InProcess for Virtual<ON_NODE> {
    fn start<P: Program>(program: &P, ranks: usize) -> Result<(), JobError> {
        Job::new(&Platform::fx100(), ranks).ranks_per_node(ON_NODE).run(program).map(drop)
    }
}

/// Virtual time on a machine without atomics, gates and control queues, whose nodes are joined by
/// crossbars.
pub(crate) struct Crossbars;

impl InProcess for Crossbars {
    fn start<P: Program>(program: &P, ranks: usize) -> Result<(), JobError> {
        Job::new(&Platform::sr8000(), ranks).run(program).map(drop)
    }
}

/// Returns a machine whose interfaces copy between other ranks' memory, and whose network has
/// multicasts.
fn what_if() -> Platform {
    let platform = Platform::fx100().with("third_party_copy", 1);
    platform.and_then(|platform| platform.with("multicast", 300_000)).expect("there are such constants")
}

/// Virtual time on a machine that can do [more](what_if) than the real ones, with one or two ranks on
/// each node, with or without routers.
pub(crate) struct WhatIf<const ON_NODE: u32, const ROUTER: bool>;

impl<const ON_NODE: u32, const ROUTER: bool> InProcess for WhatIf<ON_NODE, ROUTER> {
    fn start<P: Program>(program: &P, ranks: usize) -> Result<(), JobError> {
        let network = if ROUTER { NetworkModel::Router } else { NetworkModel::Latency };
        Job::new(&what_if(), ranks).ranks_per_node(ON_NODE).network(network).run(program).map(drop)
    }
}

/// A provider without any wrapper.
pub(crate) struct Bare<I>(PhantomData<I>);

impl<I: InProcess> TestBed for Bare<I> {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| I::start(program, ranks)))
    }
}

/// A provider whose fabric is wrapped to be observed.
pub(crate) struct Observed<I>(PhantomData<I>);

impl<I: InProcess> TestBed for Observed<I> {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _: u64) -> Option<JobReport> {
        let gathering = Gathering::new(Detail::Trace, ranks);
        let report = JobReport::of_one_process(program, ranks, |program| I::start(&gathering.watch(program), ranks));
        assert_eq!(gathering.records().len(), ranks, "{test}");
        Some(report)
    }
}

/// A provider under a layer that changes nothing and keeps the contract by what `forward!`
/// generates.
pub(crate) struct Layered<I>(PhantomData<I>);

impl<I: InProcess> TestBed for Layered<I> {
    fn run(program: &CaseProgram, ranks: usize, _: &str, _: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| I::start(&Under(program), ranks)))
    }
}

/// Virtual time with random latencies and ties on a machine that can do [more](what_if) than the real
/// ones, for the seeds `FROM..TO`.
pub(crate) struct Jittered<const FROM: u64, const TO: u64>;

impl<const FROM: u64, const TO: u64> TestBed for Jittered<FROM, TO> {
    fn turns() -> Range<u64> {
        FROM..TO
    }

    fn run(program: &CaseProgram, ranks: usize, _: &str, turn: u64) -> Option<JobReport> {
        let job = Job::new(&what_if(), ranks).seed(turn).jitter(Duration::from_micros(3));
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

/// A layer that sees every access and changes nothing.
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
        copy,
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
