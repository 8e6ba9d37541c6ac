//! The providers that are held to the contract.

use rdma_fabric::{Fabric, Program};
use std::{ffi::OsString, sync::OnceLock, time::Duration};
use tofu2_sim::{
    shm::{self, Endpoint, Launcher},
    virt::{Job, Platform},
};

/// Runs a case and panics with what it says if it fails. `test` is the name of the test that calls.
pub(crate) trait Provider {
    fn check<P: Program>(ranks: usize, test: &str, program: &P);
}

/// Ranks as threads over shared memory.
pub(crate) struct Threads;

impl Provider for Threads {
    fn check<P: Program>(ranks: usize, test: &str, program: &P) {
        if let Err(error) = shm::Threads::new(ranks).run(program) {
            panic!("{test}, {ranks} ranks: {error}");
        }
    }
}

/// Ranks as processes over shared memory: the test binary, executed again for the same test, finds that it is a
/// rank.
pub(crate) struct Processes;

impl Provider for Processes {
    fn check<P: Program>(ranks: usize, test: &str, program: &P) {
        // Attached to once: a test asks for each number of ranks it runs with.
        static ENDPOINT: OnceLock<Option<Endpoint>> = OnceLock::new();
        let endpoint = ENDPOINT.get_or_init(|| Endpoint::from_env().unwrap_or_else(|error| panic!("{test}: {error}")));
        if let Some(endpoint) = endpoint {
            if endpoint.ranks() == ranks
                && let Err(error) = shm::run_rank(endpoint.clone(), program)
            {
                eprintln!("{test}, {ranks} ranks: {error}");
                std::process::exit(1);
            }
            return;
        }
        let binary = std::env::current_exe().expect("the running test has a path");
        let args = ["--exact", test, "--quiet", "--nocapture", "--test-threads=1"];
        // The ranks' reports on their one test are of no interest; their failures go to standard error.
        match Launcher::new(ranks).discard_stdout(true).command(binary, args.map(OsString::from)).run() {
            Ok(0) => {}
            Ok(code) => panic!("{test}, {ranks} ranks: exit code {code}"),
            Err(error) => panic!("{test}, {ranks} ranks: {error}"),
        }
    }
}

/// Virtual time, undisturbed.
pub(crate) struct Virtual;

impl Provider for Virtual {
    fn check<P: Program>(ranks: usize, test: &str, program: &P) {
        if let Err(error) = Job::new(&Platform::fx100(), ranks).run(program) {
            panic!("{test}, {ranks} ranks: {error}");
        }
    }
}

/// Virtual time with random latencies and ties, from several seeds.
pub(crate) struct Jittered;

impl Provider for Jittered {
    fn check<P: Program>(ranks: usize, test: &str, program: &P) {
        for seed in 0..8 {
            let job = Job::new(&Platform::fx100(), ranks).seed(seed).jitter(Duration::from_micros(3));
            if let Err(error) = job.shuffle_ties(true).ranks_per_node(2).run(program) {
                panic!("{test}, {ranks} ranks, seed {seed}: {error}");
            }
        }
    }
}
