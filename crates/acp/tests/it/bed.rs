//! The fabrics that a test runs over.

use rdma_fabric::Program;
use std::{fmt::Debug, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Runs a program as threads and in virtual time, where operations may take up to 30 µs longer than
/// they need and events at one time come in any order; returns what it yields, which must be the
/// same.
pub(crate) fn everywhere<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + Debug,
{
    let real = Threads::new(ranks).run(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    assert_eq!(real, in_virtual_time(ranks, program), "threads and virtual time differ");
    real
}

pub(crate) fn in_virtual_time<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    let job = Job::new(&Platform::fx100(), ranks).jitter(Duration::from_micros(30)).shuffle_ties(true);
    job.run(program).unwrap_or_else(|error| panic!("in virtual time: {error}")).outs
}

/// Runs a program that loses ranks on purpose, in both ways; returns what each rank yields that
/// ends well.
pub(crate) fn survivors<P: Program>(ranks: usize, program: &P) -> Vec<Option<P::Out>>
where
    P::Out: PartialEq + Debug,
{
    let (real, _) = Threads::new(ranks).run_through(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    let real: Vec<_> = real.into_iter().map(Result::ok).collect();
    let job = Job::new(&Platform::fx100(), ranks).jitter(Duration::from_micros(30)).shuffle_ties(true);
    let (virt, _) = job.run_through(program).unwrap_or_else(|error| panic!("in virtual time: {error}"));
    assert_eq!(real, virt.outs, "threads and virtual time differ");
    real
}
