//! Windows over virtual time and thread ranks.

mod active;
mod attached;
mod errors;
mod oracle;
mod passive;
mod tasks;

use checks::jobs::{threads, virtual_time};
use rdma_fabric::Program;
use tofu2_sim::virt::Platform;

/// Returns the result of each rank of `program`, in virtual time with several orders of
/// simultaneous events, and on threads.
fn everywhere<P: Program<Out: PartialEq + std::fmt::Debug>>(ranks: usize, program: &P) -> Vec<P::Out> {
    let mut runs = Vec::new();
    for seed in 0..4 {
        let platform = Platform::fx100();
        let job = virtual_time(&platform, ranks).ranks_per_node(2).seed(seed).shuffle_ties(seed != 0);
        let job = job.jitter(std::time::Duration::from_micros(seed));
        runs.push(job.run(program).expect("all ranks end well").outs);
    }
    runs.push(threads(ranks).segment_bytes(1 << 17).run(program).expect("all ranks end well"));
    let last = runs.pop().expect("there are some");
    runs.iter().for_each(|run| assert_eq!(run, &last, "fabrics differ"));
    last
}
