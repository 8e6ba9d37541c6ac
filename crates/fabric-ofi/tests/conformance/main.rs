//! The contract's cases on a cluster whose nodes are threads of this process: all between them goes
//! through libfabric, over `lo`.

mod commands;
mod hall;
mod matrix;
#[path = "../../../../tests/it/page.rs"]
#[allow(dead_code)]
mod page;
mod torture;

use fabric_conformance::{CaseProgram, JobReport, TestBed, suite};
use hall::Hall;

/// So many ranks on each node.
struct Nodes<const RANKS: usize>;

impl<const RANKS: usize> TestBed for Nodes<RANKS> {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _turn: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| Hall::run(&network(), ranks, RANKS, program, test)))
    }
}

/// Returns the provider of libfabric to use.
fn network() -> String {
    std::env::var("ONESIDED_TEST_PROVIDER").unwrap_or("tcp;ofi_rxm".to_owned())
}

suite!(far, Nodes<1>);
suite!(mixed, Nodes<2>);
