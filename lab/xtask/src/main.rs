//! `cargo xtask …`: tasks that are too heavy for `cargo test`, or need tools that not every machine has.

mod bench;
mod explore;
mod fuzz;
#[cfg(target_os = "linux")]
mod hosts;
mod install;
#[cfg(target_os = "linux")]
mod installed;
#[cfg(target_os = "linux")]
mod leftover;
#[cfg(target_os = "linux")]
mod long_transfers;
#[cfg(target_os = "linux")]
mod nightly;
#[cfg(target_os = "linux")]
mod ofi;
mod progress;
mod prose;
#[cfg(target_os = "linux")]
mod quick;
mod suite;
mod targets;
#[cfg(target_os = "linux")]
mod torture;
mod tree;
mod twin;
mod unsafe_table;
#[cfg(target_os = "linux")]
mod vm;

use clap::{Parser, Subcommand};
use std::process::ExitCode;

/// Heavier checks and measurements.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", max_term_width = 100)]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Debug, Subcommand)]
enum Task {
    /// Measure the cost of operations of the shared-memory fabric, beside the limits of the machine itself.
    /// (`cargo measure --help` lists all measurements.)
    Bench(bench::Arguments),
    /// Measure jobs of several nodes beside bare calls of libfabric, beside shared memory alone and
    /// beside Open MPI, and judge by goals. Needs libfabric, or is skipped.
    #[cfg(target_os = "linux")]
    BenchCluster(bench::Arguments),
    /// Measure the lock workloads of the literature (LB, ECSB, SOB, WCSB, WARB, DHT) for every
    /// lock, between processes beside a mutex, or in virtual time.
    BenchLocks(bench::Arguments),
    /// Measure the lock by name beside a robust mutex and file locks: alone, contended, and after its
    /// holder was killed.
    BenchNamed(bench::Arguments),
    /// Measure locks that others have published beside ours, by number of clients and skew, in virtual
    /// time.
    BenchPeers(bench::Arguments),
    /// Measure operations beside those of the MPI libraries (Open MPI, MPICH) and the UCX of this machine, in turn;
    /// `--programs`: our examples beside the same programs in C and MPI.
    Peers(bench::Arguments),
    /// Measure collectives of messages by software and by hardware, in virtual time; or report the memory of a
    /// communicator.
    Collectives(bench::Arguments),
    /// Move more bytes at once than every limit, on every provider. Takes some 11 GiB of memory; lengths for which
    /// there is not enough are skipped.
    #[cfg(target_os = "linux")]
    LongTransfers(long_transfers::Options),
    /// Run the tests of thread ranks under Miri.
    Miri(nightly::MiriOptions),
    /// Measure the time until the other ranks know that a rank was killed, or enter the lock that it held.
    Death(suite::DeathOptions),
    /// Explore the locks, and exchanges without queues, under every delivery order, right and with
    /// each of their steps done wrong.
    Explore(explore::Options),
    /// Run the fuzz targets, each from its seeds and for some time. Needs cargo-fuzz and the nightly
    /// toolchain.
    Fuzz(fuzz::Options),
    /// Run programs on three hosts over ssh and libfabric, kill a rank and cut off a host. The hosts are
    /// network namespaces of this machine. Needs root, ip, sshd and libfabric, or is skipped.
    #[cfg(target_os = "linux")]
    Hosts(hosts::Options),
    /// Build libblacs_fmpl, BLACS for C and Fortran programs, and install it below a directory.
    InstallBlacs(install::BlacsOptions),
    /// Build libacp, ACP for C programs, and install it below a directory.
    InstallAcp(install::Options),
    /// Build libtofucom, uTofu for C programs, and install it below a directory.
    InstallUtofu(install::Options),
    /// Kill ranks and launchers at random moments of the conformance cases; or ranks that use the
    /// lock that survives them.
    Kill(suite::KillOptions),
    /// Rewrite the capability matrix of the contract's page.
    Matrix,
    /// Run the examples as programs of several nodes of this machine, over each provider of libfabric
    /// and by each launcher that is installed here.
    #[cfg(target_os = "linux")]
    Ofi(ofi::Options),
    /// Count turns of phrase in comments and Markdown that documentation of the field avoids.
    Prose(prose::Options),
    /// Run the quick form of every measuring and checking command that needs nothing to be built.
    #[cfg(target_os = "linux")]
    Quick(quick::Options),
    /// Explore all random programs with and without the explorer's reduction: they end in the same ways.
    Reduction,
    /// Run the tests of shared memory, processes included, under AddressSanitizer.
    Sanitize(nightly::SanitizeOptions),
    /// Type-check the library crates for every target they support.
    Targets(targets::Options),
    /// Kill, signal, starve and misuse programs of every system, and count hangs, leaks, wrong exit codes and errors
    /// without a name.
    #[cfg(target_os = "linux")]
    Torture(torture::Options),
    /// Apply limits to this process and execute a command.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    TortureLimit(torture::LimitOptions),
    /// Measure the time of the transports of a reflect, by threads of this machine and in virtual time.
    Transports(bench::Arguments),
    /// Search the explicit-state models of the locks with queues to the last state.
    Twin(twin::Options),
    /// Write target/evidence/unsafe.md: every use of unsafe, and why it is sound.
    UnsafeTable(unsafe_table::Options),
    /// Run the contract's cases, the examples, and losses on virtual machines with NICs (Soft-RoCE, verbs).
    /// Needs qemu, Debian's packages and libfabric, or is skipped.
    #[cfg(target_os = "linux")]
    Vm(vm::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        Task::Bench(arguments) => bench::run("operations", &arguments),
        #[cfg(target_os = "linux")]
        Task::BenchCluster(arguments) => bench::run_cluster(&arguments),
        Task::BenchLocks(arguments) => bench::run("locks", &arguments),
        Task::BenchNamed(arguments) => bench::run("named", &arguments),
        Task::BenchPeers(arguments) => bench::run("peers", &arguments),
        Task::Peers(arguments) => bench::run_peers(&arguments),
        Task::Collectives(arguments) => bench::run("collectives", &arguments),
        #[cfg(target_os = "linux")]
        Task::LongTransfers(options) => long_transfers::run(&options),
        Task::Miri(options) => nightly::miri(&options),
        Task::Death(options) => suite::death(&options),
        Task::Explore(options) => explore::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        #[cfg(target_os = "linux")]
        Task::Hosts(options) => hosts::run(&options),
        Task::InstallBlacs(options) => install::blacs(&options),
        Task::InstallAcp(options) => install::acp(&options),
        Task::InstallUtofu(options) => install::utofu(&options),
        Task::Kill(options) => suite::kill(&options),
        Task::Matrix => suite::matrix(),
        #[cfg(target_os = "linux")]
        Task::Ofi(options) => ofi::run(&options),
        Task::Prose(options) => prose::run(&options),
        #[cfg(target_os = "linux")]
        Task::Quick(options) => quick::run(&options),
        Task::Reduction => suite::reduction(),
        Task::Sanitize(options) => nightly::sanitize(&options),
        Task::Targets(options) => targets::run(&options),
        #[cfg(target_os = "linux")]
        Task::Torture(options) => torture::run(&options),
        #[cfg(target_os = "linux")]
        Task::TortureLimit(options) => torture::be_limited(&options),
        Task::Transports(arguments) => bench::run("transports", &arguments),
        Task::Twin(options) => twin::run(&options),
        Task::UnsafeTable(options) => unsafe_table::run(&options),
        #[cfg(target_os = "linux")]
        Task::Vm(options) => vm::run(&options),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
