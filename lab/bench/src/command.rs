//! The command line.

use crate::{
    beside, cluster, collectives, locks,
    mechanisms::{delegation, exchanges, exchanges_by_node, lock_pairs, lock_waves, queues, simulator, stencil},
    named, operations,
    outside::job::{self, Task},
    peers, transports,
};
use clap::{Parser, Subcommand};
use std::{error::Error, process::ExitCode};

/// Measures onesided.
#[derive(Debug, Parser)]
#[command(name = "cargo measure", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    subject: Subject,
}

#[derive(Debug, Subcommand)]
enum Subject {
    /// Operations of the shared-memory fabric, beside the limits of the machine itself.
    Operations(operations::Options),
    /// Operations of the shared-memory fabric, or whole programs, beside those of the MPI libraries and the UCX of this
    /// machine.
    Beside(beside::Options),
    /// Jobs of several nodes beside bare calls of libfabric, beside shared memory alone and beside Open MPI, judged
    /// by goals. `cargo xtask bench-cluster` builds its programs.
    Cluster(cluster::Options),
    /// The lock workloads of the literature (LB, ECSB, SOB, WCSB, WARB, DHT) for every lock, between processes beside
    /// a mutex, or in virtual time.
    Locks(locks::Options),
    /// The lock by name beside a robust mutex and file locks: alone, contended, and after its holder was killed.
    Named(named::Options),
    /// Locks that others have published beside ours, by number of clients and skew, in virtual time.
    Peers(peers::Options),
    /// Collectives of messages by software and by hardware, in virtual time; or the memory of a communicator.
    Collectives(collectives::Options),
    /// The transports of a reflect, by threads of this machine and in virtual time.
    Transports(transports::Options),
    /// Acquisitions and releases of each lock by one rank, and by 16 ranks, as threads.
    LockPairs(lock_pairs::Options),
    /// All ranks that take a lock shared at once, in virtual time.
    LockWaves(lock_waves::Options),
    /// Persistent exchanges between threads: alone, overlapped with computing, and their creation.
    Exchanges(exchanges::Options),
    /// Exchanges of blocks together for each node, or alone, in virtual time.
    ExchangesByNode(exchanges_by_node::Options),
    /// Control queues over shared memory, beside the plain fabric.
    Queues(queues::Options),
    /// Copies and atomics that other ranks perform on behalf of a rank.
    Delegation(delegation::Options),
    /// The stencil of the lock paper in both of its forms, in virtual time.
    Stencil(stencil::Options),
    /// The speed and memory of the virtual-time provider.
    Simulator(simulator::Options),
    /// Run as one rank of a measurement.
    #[command(name = job::RANK, hide = true)]
    Rank { task: String, sent: String },
    /// Run as one process that takes a lock by name.
    #[command(name = named::WORKER, hide = true)]
    NamedWorker(named::WorkerOptions),
}

/// Runs the command that the arguments of this process give.
pub fn run() -> ExitCode {
    let outcome = match Arguments::parse().subject {
        Subject::Operations(options) => operations::run(&options),
        Subject::Beside(options) => beside::run(&options),
        Subject::Cluster(options) => cluster::run(&options),
        Subject::Locks(options) => locks::run(&options),
        Subject::Named(options) => named::run(&options),
        Subject::Peers(options) => peers::run(&options),
        Subject::Collectives(options) => collectives::run(&options),
        Subject::Transports(options) => transports::run(&options),
        Subject::LockPairs(options) => lock_pairs::run(&options),
        Subject::LockWaves(options) => lock_waves::run(&options),
        Subject::Exchanges(options) => exchanges::run(&options),
        Subject::ExchangesByNode(options) => exchanges_by_node::run(&options),
        Subject::Queues(options) => queues::run(&options),
        Subject::Delegation(options) => delegation::run(&options),
        Subject::Stencil(options) => stencil::run(&options),
        Subject::Simulator(options) => simulator::run(&options),
        Subject::Rank { task, sent } => be_rank(&task, &sent),
        Subject::NamedWorker(options) => named::be_worker(&options),
    };
    outcome.unwrap_or_else(|error| {
        eprintln!("error: {error}");
        ExitCode::FAILURE
    })
}

fn be_rank(task: &str, sent: &str) -> Result<ExitCode, Box<dyn Error>> {
    match task {
        operations::JobPlan::NAME => job::be_rank::<operations::JobPlan>(sent),
        locks::JobPlan::NAME => job::be_rank::<locks::JobPlan>(sent),
        queues::Plan::NAME => job::be_rank::<queues::Plan>(sent),
        _ => Err(format!("{task} is not a measurement").into()),
    }
}
