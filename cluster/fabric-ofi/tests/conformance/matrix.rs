//! The columns for clusters in `docs/evidence/capabilities.md`, one per libfabric provider between
//! nodes.

use crate::{
    page::Part,
    thread_job::{Network, ThreadJob, domain_of},
};
use fabric_conformance::{
    CaseProgram, Harness, JobReport,
    capabilities::{column, table},
};
use fabric_ofi::cluster::AtomicsBy;

const PART: Part = Part { page: "docs/evidence/capabilities.md", name: "clusters" };
const COMMAND: &str = "cargo xtask matrix";
const PROVIDERS: [&str; 4] = ["tcp;ofi_rxm", "shm", "sockets", "udp;ofi_rxd"];

/// Two nodes, connected by this provider.
struct Over<const PROVIDER: usize>;

impl<const PROVIDER: usize> Harness for Over<PROVIDER> {
    fn run(program: &CaseProgram, ranks: usize, test: &str, _turn: u64) -> Option<JobReport> {
        let run = |program: &_| ThreadJob::run(&network(PROVIDERS[PROVIDER]), ranks, 1, program, test);
        Some(JobReport::of_one_process(program, ranks, run))
    }
}

fn network(provider: &str) -> Network {
    Network {
        provider: provider.to_owned(),
        atomics: AtomicsBy::Cpu,
        provider_keys: false,
        data_bytes: 8,
        delivery: true,
        words: false,
    }
}

#[test]
fn is_what_was_found() {
    if let Some(missing) = PROVIDERS.iter().find(|name| domain_of(&network(name)).is_none()) {
        println!("SKIPPED: the capability matrix of clusters: {missing} can't be used here");
        return;
    }
    let cells = [column::<Over<0>>, column::<Over<1>>, column::<Over<2>>, column::<Over<3>>];
    let columns: Vec<_> = PROVIDERS.into_iter().zip(cells.map(|column| column("matrix"))).collect();
    PART.settle(&table(&columns), COMMAND);
}
