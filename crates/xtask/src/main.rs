//! `cargo xtask …`: what is too heavy for `cargo test`, or needs tools that not every machine has.

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
    /// Type-check the library crates for every target they support.
    Targets(targets::Options),
}

fn main() -> ExitCode {
    let outcome = match Arguments::parse().task {
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
