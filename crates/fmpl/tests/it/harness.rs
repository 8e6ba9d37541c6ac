//! The fabrics that the tests run over, and helpers for most tests.

pub(crate) use checks::pattern;
use checks::watchdog::watch_test;
use fmpl::{Choice, Communicator, Options};
use rdma_fabric::{LocalSpan, Pod, Program};
use std::{fmt::Debug, time::Duration};
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Runs a program on threads, and in virtual time on machines with and without atomics and ordered
/// puts, where operations may take up to 30 µs longer than necessary and simultaneous events occur
/// in any order; returns the program's outputs, which must be the same everywhere.
#[track_caller]
pub(crate) fn everywhere<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + Debug,
{
    watch_test();
    let real = Threads::new(ranks).run(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    for (name, machine) in machines() {
        let job = Job::new(&machine, ranks).jitter(Duration::from_micros(30)).shuffle_ties(true);
        let outs = job.run(program).unwrap_or_else(|error| panic!("in virtual time, {name}: {error}")).outs;
        assert_eq!(real, outs, "threads and {name} differ");
    }
    real
}

/// Returns machines with and without atomics and ordered puts.
pub(crate) fn machines() -> [(&'static str, Platform); 3] {
    let without_atomics = Platform::fx100().with("atomics", 0).expect("a constant of the platform");
    [("FX100", Platform::fx100()), ("FX100 without atomics", without_atomics), ("SR8000", Platform::sr8000())]
}

/// Runs a program that loses ranks on purpose, on threads and in virtual time; returns the output
/// of each rank that ends normally.
#[track_caller]
pub(crate) fn survivors<P: Program>(ranks: usize, program: &P) -> Vec<Option<P::Out>>
where
    P::Out: PartialEq + Debug,
{
    watch_test();
    let (real, _) = Threads::new(ranks).run_through(program).unwrap_or_else(|error| panic!("on threads: {error}"));
    let real: Vec<_> = real.into_iter().map(Result::ok).collect();
    let job = Job::new(&Platform::fx100(), ranks).jitter(Duration::from_micros(30)).shuffle_ties(true);
    let (virt, _) = job.run_through(program).unwrap_or_else(|error| panic!("in virtual time: {error}"));
    assert_eq!(real, virt.outs, "threads and virtual time differ");
    real
}

/// Returns options that make all collectives use trees.
pub(crate) fn software() -> Options {
    Options::default().collectives(Choice::Software)
}

/// Returns a buffer's first elements.
pub(crate) fn read<T: Pod>(comm: &Communicator, buffer: &LocalSpan<T>, elements: usize) -> fmpl::Result<Vec<T>> {
    let mut values = vec![T::zeroed(); elements];
    comm.fabric().read(&buffer.slice(0..elements)?, &mut values)?;
    Ok(values)
}
