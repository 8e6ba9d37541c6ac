//! `cargo xtask …`: what is too heavy for `cargo test`, or needs tools that not every machine has.

#[cfg(target_os = "linux")]
mod bench;
mod targets;

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
    /// Measure what operations of the shared-memory fabric cost, beside what the machine itself allows.
    #[cfg(target_os = "linux")]
    Bench(bench::Options),
    /// Be one rank of a measurement.
    #[cfg(target_os = "linux")]
    #[command(hide = true)]
    BenchRank(bench::RankOptions),
    /// Type-check the library crates for every target they support.
    Targets(targets::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
        #[cfg(target_os = "linux")]
        Task::Bench(options) => bench::run(&options),
        #[cfg(target_os = "linux")]
        Task::BenchRank(options) => bench::run_rank(&options),
        Task::Targets(options) => targets::run(&options),
    };
    match outcome {
        Ok(code) => code,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
