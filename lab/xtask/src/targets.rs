//! `cargo xtask targets`: all dependencies of a program, and the command, type-checked for other
//! systems and processors.
//!
//! The contract, virtual time and thread ranks must work on all of them; ranks as processes need
//! Linux and return an error elsewhere. One target has none of our assembly, so that the portable
//! form of access is also checked. Nothing is linked or run; `--assemble` also translates the tests
//! for aarch64, so that the assembler sees our instructions.

use clap::Args;
use std::{
    error::Error,
    io::ErrorKind,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

const TARGETS: [&str; 5] = [
    "x86_64-unknown-linux-gnu",
    "aarch64-unknown-linux-gnu",
    "aarch64-apple-darwin",
    "x86_64-pc-windows-msvc",
    "riscv64gc-unknown-linux-gnu",
];

/// The packages that are checked, and which parts of them.
const CHECKS: [&[&str]; 2] = [
    &["--package", "onesided", "--lib", "--package", "onesided-cli", "--bins"],
    &["--package", "rdma-fabric", "--package", "tofu2-*", "--package", "rma-lock", "--tests"],
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Check only these.
    #[arg(value_name = "TRIPLE")]
    targets: Vec<String>,
    /// Also translate thread ranks' tests for aarch64 Linux, assembly included. Takes a minute.
    #[arg(long)]
    assemble: bool,
}

/// The target whose assembly `--assemble` translates.
const ASSEMBLED: &str = "aarch64-unknown-linux-gnu";

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let chosen: Vec<&str> = match &options.targets[..] {
        [] => TARGETS.to_vec(),
        some => some.iter().map(String::as_str).collect(),
    };
    let Some(installed) = installed()? else {
        println!("targets: skipped, for there is no rustup to get their standard libraries");
        return Ok(ExitCode::SUCCESS);
    };
    let mut failed = false;
    for target in chosen {
        let begun = Instant::now();
        if !installed.lines().any(|line| line == target)
            && !succeeds(Command::new("rustup").args(["--quiet", "target", "add", target]))?
        {
            println!("{target:28} skipped: its standard library can't be installed here");
            continue;
        }
        let mut well = true;
        for check in CHECKS {
            let mut cargo = Command::new("cargo");
            cargo.args(["check", "--quiet", "--target", target]).args(check);
            well &= succeeds(cargo.env("RUSTFLAGS", "-D warnings"))?;
        }
        if options.assemble && target == ASSEMBLED {
            let mut cargo = Command::new("cargo");
            cargo.args(["test", "--quiet", "--no-run", "--package", "tofu2-shm", "--lib", "--test", "it"]);
            // Nothing is to be linked, so the linker is a command that does nothing.
            cargo.args(["--target", target]).env("CARGO_TARGET_AARCH64_UNKNOWN_LINUX_GNU_LINKER", "true");
            well &= succeeds(cargo.stdout(Stdio::null()))?;
        }
        println!("{target:28} {} {:.1} s", if well { "passes" } else { "FAILS" }, begun.elapsed().as_secs_f64());
        failed |= !well;
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Returns the targets whose standard libraries are here, one a line; `None` without rustup.
fn installed() -> Result<Option<String>, Box<dyn Error>> {
    let mut rustup = Command::new("rustup");
    rustup.args(["target", "list", "--installed"]).stderr(Stdio::inherit());
    match rustup.output() {
        Ok(output) => Ok(Some(String::from_utf8(output.stdout)?)),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(None),
        Err(error) => Err(format!("rustup: {error}").into()),
    }
}

fn succeeds(command: &mut Command) -> Result<bool, Box<dyn Error>> {
    Ok(command.status().map_err(|error| format!("{:?}: {error}", command.get_program()))?.success())
}
