//! Mappings and plans, compared with a serial oracle: all nodes are simulated one after another,
//! and every cell of every node is compared with the value that the specification requires.

mod arrays;
mod asynchronous;
mod calls;
mod delivery;
mod directives;
mod expected;
mod issue;
mod loops;
mod mutants;
mod on_nodes;
mod packing;
mod published;
mod random;
mod reduces;
mod reflects;
mod simulated;
mod splits;

use checks::jobs::{threads, virtual_time};
use rdma_fabric::{Fabric, ProgramResult};
use std::fmt::Debug;
use tofu2_virt::Platform;

/// Runs a program on threads and in virtual time.
fn both<T: PartialEq + Debug + Send + 'static>(
    ranks: usize,
    program: impl AsyncFn(Fabric) -> ProgramResult<T> + Send + Sync,
) {
    let real = threads(ranks).run(&async |fabric: Fabric| program(fabric).await).expect("threads");
    let job = virtual_time(&Platform::fx100(), ranks).shuffle_ties(true);
    let simulated = job.run(&async |fabric: Fabric| program(fabric).await).expect("virtual time").outs;
    assert_eq!(real, simulated);
}
