//! `cargo xtask miri`: thread ranks, and the crates beneath them, under Miri.
//!
//! Miri interprets the program and reports undefined behaviour: accesses outside an allocation,
//! data races, wrong provenance. Its weak-memory emulation, which is on, gives relaxed loads old
//! values as an Arm machine may. Shared memory is accessed in its portable form then
//! (`rdma-fabric/src/access/portable.rs`); the assembly is out of its reach. With many seeds it
//! tries as many interleavings.

use clap::Args;
use std::{
    error::Error,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Seeds, and so interleavings, of each program.
    #[arg(long, default_value_t = 2)]
    seeds: u32,
    /// Only the programs whose name contains this.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
}

/// Name, and what `cargo miri test` is told.
const PROGRAMS: [(&str, &[&str]); 5] = [
    ("rdma-fabric: unit tests", &["--package", "rdma-fabric", "--lib"]),
    ("tofu2-sim: unit tests of shm", &["--package", "tofu2-sim", "--lib", "--", "shm::"]),
    ("tofu2-sim: thread ranks", &["--package", "tofu2-sim", "--test", "shm_threads"]),
    ("rma-lock: thread ranks", &["--package", "rma-lock", "--test", "it", "threads::"]),
    ("rma-lock: references to locked memory", &["--package", "rma-lock", "--test", "it", "locked::"]),
];

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let mut probe = Command::new("cargo");
    probe.args(["+nightly", "miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        println!("miri: skipped; `rustup toolchain install nightly --component miri rust-src` gets it");
        return Ok(ExitCode::SUCCESS);
    }
    let mut failed = false;
    for (name, arguments) in PROGRAMS {
        if options.filter.as_deref().is_some_and(|filter| !name.contains(filter)) {
            continue;
        }
        let begun = Instant::now();
        let mut cargo = Command::new("cargo");
        cargo.args(["+nightly", "miri", "test"]).args(arguments);
        // Isolation is off for the clock and for proptest's files; weak memory and data races stay on.
        let seeds = options.seeds.max(1);
        let flags = format!("-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-many-seeds=0..{seeds}");
        let well = cargo.env("MIRIFLAGS", flags).status()?.success();
        let seconds = begun.elapsed().as_secs_f64();
        println!("{name:40} {} {seconds:.0} s, {seeds} seeds", if well { "passes" } else { "FAILS" });
        failed |= !well;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}
