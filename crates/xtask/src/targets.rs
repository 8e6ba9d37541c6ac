//! `cargo xtask targets`: the crates a program depends on, type-checked for other systems and processors.

use clap::Args;
use std::{
    error::Error,
    process::{Command, ExitCode},
    time::Instant,
};

/// Where the contract, virtual time and thread ranks must work. Ranks as processes need Linux.
const TARGETS: [&str; 4] =
    ["x86_64-unknown-linux-gnu", "aarch64-unknown-linux-gnu", "aarch64-apple-darwin", "x86_64-pc-windows-msvc"];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Check only these.
    #[arg(value_name = "TRIPLE")]
    targets: Vec<String>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let chosen: Vec<&str> = match &options.targets[..] {
        [] => TARGETS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let mut failed = Vec::new();
    for target in chosen {
        let begun = Instant::now();
        if !succeeds(Command::new("rustup").args(["target", "add", target]))? {
            println!("{target:28} skipped: its standard library can't be installed here");
            continue;
        }
        let mut cargo = Command::new("cargo");
        cargo.args(["check", "--quiet", "--package", "onesided", "--lib", "--target", target]);
        let well = succeeds(cargo.env("RUSTFLAGS", "-D warnings"))?;
        println!("{target:28} {} {:.1} s", if well { "passes" } else { "FAILS" }, begun.elapsed().as_secs_f64());
        if !well {
            failed.push(target);
        }
    }
    Ok(if failed.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn succeeds(command: &mut Command) -> Result<bool, Box<dyn Error>> {
    Ok(command.status().map_err(|error| format!("{:?}: {error}", command.get_program()))?.success())
}
