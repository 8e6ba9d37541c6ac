//! Topologies: local properties, and collectives over threads and in virtual time against sequential oracles.

mod agreement;
mod edges;
mod grids;
mod renumbered;

use prdma_offload::{Topology, TopologyError};
use rdma_fabric::Program;
use std::time::Duration;
use tofu2_sim::{
    shm::Threads,
    virt::{Job, Platform},
};

/// Sources and destinations of each member.
pub type Lists = Vec<(Vec<usize>, Vec<usize>)>;

/// The destinations of each member, and the sources that belong to them.
pub fn consistent(destinations: &[&[usize]]) -> Lists {
    let sources = |me: usize| {
        let named = |(member, list): (usize, &&[usize])| list.iter().filter(|to| **to == me).map(|_| member).collect();
        destinations.iter().enumerate().flat_map(|all| -> Vec<usize> { named(all) }).collect()
    };
    destinations.iter().enumerate().map(|(me, to)| (sources(me), to.to_vec())).collect()
}

/// What one member has of it.
pub fn graph(lists: &Lists, me: usize) -> Result<Topology, TopologyError> {
    Topology::graph(lists.len(), me, &lists[me].0, &lists[me].1)
}

/// On threads and in virtual time: the same.
pub fn both<P: Program>(ranks: usize, program: &P) -> Vec<P::Out>
where
    P::Out: PartialEq + std::fmt::Debug,
{
    let real = Threads::new(ranks).run(program).expect("threads");
    assert_eq!(real, simulated(ranks, program), "threads and virtual time differ");
    real
}

/// In virtual time, with operations that take up to 30 µs longer than they need.
pub fn simulated<P: Program>(ranks: usize, program: &P) -> Vec<P::Out> {
    let job = Job::new(&Platform::fx100(), ranks).shuffle_ties(true).jitter(Duration::from_micros(30));
    job.run(program).expect("virtual time").outs
}
