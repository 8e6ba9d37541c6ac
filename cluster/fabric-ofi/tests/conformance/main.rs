//! The cases of the contract on a cluster whose nodes are threads of this process, and communicate
//! only by libfabric, over `lo`.

mod commands;
mod matrix;
#[path = "../../../../tests/it/page.rs"]
#[allow(dead_code)]
mod page;
mod thread_job;
mod torture;

use fabric_conformance::{CaseProgram, Harness, JobReport, suite};
use fabric_ofi::cluster::AtomicsBy;
use thread_job::{Network, ThreadJob};

/// `RANKS` ranks on each node.
struct Nodes<const RANKS: usize>;

impl<const RANKS: usize> Harness for Nodes<RANKS> {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _turn: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| {
            ThreadJob::run(&network(RANKS), ranks, RANKS, program, test)
        }))
    }
}

/// One rank per node, with network atomics.
struct ByNic;

impl Harness for ByNic {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _turn: u64) -> Option<JobReport> {
        Some(JobReport::of_one_process(program, ranks, |program| ThreadJob::run(&by_nic(), ranks, 1, program, test)))
    }
}

/// Returns the network for nodes of `per_node` ranks. `ONESIDED_TEST_PROVIDER` selects libfabric's
/// provider, `ONESIDED_TEST_ATOMICS=nic` its atomics where possible, `ONESIDED_TEST_KEYS=provider`
/// its keys, `ONESIDED_TEST_DATA` the number of bytes that a put delivers to its target, and
/// `ONESIDED_TEST_DELIVERY` whether a put completes when its bytes are visible;
/// `ONESIDED_TEST_WORDS=true` makes loads and stores of words gets and puts. By default 4 bytes,
/// and acknowledged puts, as over InfiniBand; with several ranks on a node 8, and visible ones.
fn network(per_node: usize) -> Network {
    let variable = |name| std::env::var(name).ok();
    let provider = variable("ONESIDED_TEST_PROVIDER").unwrap_or("tcp;ofi_rxm".to_owned());
    let atomics = match variable("ONESIDED_TEST_ATOMICS").as_deref() {
        Some("nic") if per_node == 1 => AtomicsBy::Nic,
        None | Some("cpu" | "nic") => AtomicsBy::Cpu,
        Some(other) => panic!("ONESIDED_TEST_ATOMICS is {other}, not cpu or nic"),
    };
    let provider_keys = variable("ONESIDED_TEST_KEYS").as_deref() == Some("provider");
    let (default, delivery) = if per_node == 1 { (4, false) } else { (8, true) };
    let switch = |name, default| variable(name).map_or(default, |text| text.parse().expect("true or false"));
    let (delivery, words) = (switch("ONESIDED_TEST_DELIVERY", delivery), switch("ONESIDED_TEST_WORDS", false));
    Network { provider, atomics, provider_keys, data_bytes: data_bytes(default), delivery, words }
}

fn data_bytes(default: usize) -> usize {
    std::env::var("ONESIDED_TEST_DATA").map_or(default, |text| text.parse().expect("a number of bytes"))
}

/// By default without data.
fn by_nic() -> Network {
    Network { atomics: AtomicsBy::Nic, data_bytes: data_bytes(0), ..network(1) }
}

suite!(far, Nodes<1>);
// What `.ci/run` runs of them.
suite!(near, Nodes<1>, wraps);
suite!(mixed, Nodes<2>);
// With ONESIDED_TEST_ATOMICS=nic, all cases run with network atomics.
suite!(nic, ByNic, wraps);
