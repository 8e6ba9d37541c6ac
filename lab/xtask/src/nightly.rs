//! `cargo xtask miri` and `cargo xtask sanitize`: ranks, and the crates beneath them, under
//! checkers of the nightly toolchain.
//!
//! Miri interprets the program and reports undefined behaviour: accesses outside an allocation,
//! data races, wrong provenance. Its weak-memory emulation, which is enabled, lets relaxed loads
//! return old values, as an Arm machine may. Under Miri, shared memory is accessed in its portable
//! form (`rdma-fabric/src/access/portable.rs`); Miri cannot check the assembly. With many seeds it
//! tries as many interleavings.
//!
//! AddressSanitizer detects accesses outside an allocation, to one that was freed, and beyond the
//! bounds of a stack or global variable; and leaks. Unlike Miri it runs the assembly forms of
//! access, memory files and processes, at a few times their cost; but it detects neither the
//! accesses of the assembly itself nor data races, and a mapped file is one allocation to it.

use clap::Args;
use std::{
    error::Error,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

#[derive(Debug, Args)]
pub(crate) struct MiriOptions {
    /// Seeds, and so interleavings, of each program.
    #[arg(long, default_value_t = 2)]
    seeds: u32,
    /// Only the programs whose name contains this.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
}

/// The name, and the arguments of `cargo miri test`.
const MIRI: [(&str, &[&str]); 6] = [
    ("rdma-fabric, fabric-offload: unit tests", &["--package", "rdma-fabric", "--package", "fabric-offload", "--lib"]),
    ("tofu2-shm: unit tests", &["--package", "tofu2-shm", "--lib"]),
    ("tofu2-shm: thread ranks", &["--package", "tofu2-shm", "--test", "it", "--", "threads::"]),
    ("rma-lock: thread ranks", &["--package", "onesided", "--test", "rma-lock", "--", "threads::"]),
    (
        "rma-lock: references to locked memory",
        &["--package", "onesided", "--test", "rma-lock", "--", "locked::", "--skip", "delivery"],
    ),
    (
        "prdma-offload: views of buffers",
        &["--package", "onesided", "--test", "prdma-offload", "--", "views::", "lent::"],
    ),
];

pub(crate) fn miri(options: &MiriOptions) -> Result<ExitCode, Box<dyn Error>> {
    let mut probe = Command::new("cargo");
    probe.args(["+nightly", "miri", "--version"]).stdout(Stdio::null()).stderr(Stdio::null());
    if !probe.status().is_ok_and(|status| status.success()) {
        println!("miri: skipped; `rustup toolchain install nightly --component miri rust-src` gets it");
        return Ok(ExitCode::SUCCESS);
    }
    // Isolation is disabled for the clock and for proptest's files; weak-memory emulation and race
    // detection remain enabled.
    let seeds = options.seeds.max(1);
    let flags = format!("-Zmiri-disable-isolation -Zmiri-strict-provenance -Zmiri-many-seeds=0..{seeds}");
    each(&MIRI, options.filter.as_deref(), |cargo| {
        cargo.args(["+nightly", "miri", "test"]).env("MIRIFLAGS", &flags);
    })
}

/// Runs each of `programs` whose name contains `filter`, with a cargo command prepared by `set_up`,
/// and prints the time of each.
fn each(
    programs: &[(&str, &[&str])],
    filter: Option<&str>,
    set_up: impl Fn(&mut Command),
) -> Result<ExitCode, Box<dyn Error>> {
    let mut failed = false;
    for (name, arguments) in programs.iter().filter(|(name, _)| filter.is_none_or(|filter| name.contains(filter))) {
        let begun = Instant::now();
        let mut cargo = Command::new("cargo");
        set_up(&mut cargo);
        let well = cargo.args(*arguments).status()?.success();
        println!("{name:44} {} {:.0} s", if well { "passes" } else { "FAILS" }, begun.elapsed().as_secs_f64());
        failed |= !well;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

#[derive(Debug, Args)]
pub(crate) struct SanitizeOptions {
    /// Only the programs whose name contains this.
    #[arg(value_name = "NAME")]
    filter: Option<String>,
}

/// A target for which the nightly toolchain has the sanitizer's runtime.
const TARGET: &str = "x86_64-unknown-linux-gnu";

/// The name, and the arguments of `cargo test`.
const SANITIZED: [(&str, &[&str]); 6] = [
    // Loom's threads have separate stacks, which the sanitizer does not know about.
    (
        "tofu2-shm: unit tests",
        &["--package", "tofu2-shm", "--lib", "--", "--skip", "::model", "--skip", "doorbell", "--skip", "inside"],
    ),
    ("tofu2-shm: thread ranks", &["--package", "tofu2-shm", "--test", "it", "--", "threads::"]),
    ("tofu2-sim: ranks that are processes", &["--package", "tofu2-sim", "--test", "processes", "--", "jobs"]),
    ("tofu2-shm: control queues", &["--package", "tofu2-shm", "--test", "it", "--", "control_queues"]),
    (
        "rma-lock: references to locked memory",
        &["--package", "onesided", "--test", "rma-lock", "--", "locked::", "--skip", "delivery"],
    ),
    ("rma-lock: killed holders of locked memory", &["--package", "rma-lock", "--test", "processes", "--", "locked::"]),
];

pub(crate) fn sanitize(options: &SanitizeOptions) -> Result<ExitCode, Box<dyn Error>> {
    if !(cfg!(all(target_arch = "x86_64", target_os = "linux")) && has_target()) {
        println!("sanitize: skipped; it needs x86-64 Linux, and `rustup toolchain install nightly`");
        return Ok(ExitCode::SUCCESS);
    }
    each(&SANITIZED, options.filter.as_deref(), |cargo| {
        cargo.args(["+nightly", "test", "--target", TARGET, "--target-dir", "target/sanitize"]);
        cargo.env("RUSTFLAGS", "-Zsanitizer=address -Cforce-frame-pointers=yes").env("CARGO_INCREMENTAL", "0");
        // Memory of ranks that are killed, and memory that lives as long as its process, are not
        // leaks.
        cargo.env("ASAN_OPTIONS", "detect_leaks=0:detect_stack_use_after_return=1");
    })
}

/// Returns whether there is a nightly toolchain with the target's standard library and the
/// sanitizer's runtime.
fn has_target() -> bool {
    let mut rustc = Command::new("rustc");
    rustc.args(["+nightly", "--print", "target-libdir", "--target", TARGET]).stderr(Stdio::null());
    let Ok(output) = rustc.output() else { return false };
    let directory = String::from_utf8_lossy(&output.stdout).trim().to_owned();
    let entries = std::fs::read_dir(directory).into_iter().flatten().flatten();
    output.status.success() && entries.into_iter().any(|entry| entry.file_name().to_string_lossy().contains("_rt.asan"))
}
