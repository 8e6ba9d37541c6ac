//! `cargo xtask fuzz`: the targets of `fuzz/`, each for some time, from its seeds and from the
//! inputs that earlier runs have kept (`fuzz/corpus`).

use clap::Args;
use std::{
    collections::BTreeSet,
    error::Error,
    fs, io,
    path::{Path, PathBuf},
    process::{Command, ExitCode, Stdio},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// How long each target runs.
    #[arg(long, default_value_t = 600, value_parser = clap::value_parser!(u32).range(1..))]
    seconds: u32,
    /// Only these targets; all, unless given.
    #[arg(value_name = "TARGET")]
    targets: Vec<String>,
}

/// Limits for one input: its time in seconds, and its memory in MiB. Memory that lives as long as
/// its process is not a leak.
const LIMITS: [&str; 3] = ["-timeout=60", "-rss_limit_mb=2048", "-detect_leaks=0"];

/// Runs the targets, prints a table, and fails if there is a finding.
pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz");
    let all =
        names(&folder.join("fuzz_targets"))?.into_iter().filter_map(|name| Some(name.strip_suffix(".rs")?.to_owned()));
    let all: BTreeSet<String> = all.collect();
    if let Some(unknown) = options.targets.iter().find(|target| !all.contains(*target)) {
        let all = all.into_iter().collect::<Vec<_>>().join(", ");
        return Err(format!("there is no target {unknown:?}, only {all}").into());
    }
    tools()?;
    let chosen = all.iter().filter(|target| options.targets.is_empty() || options.targets.contains(target));
    if !cargo_fuzz(&folder, "build").status()?.success() {
        return Err("the targets can't be built".into());
    }
    println!("{:20} {:>12} {:>12}", "target", "executions", "new findings");
    let mut failed = false;
    for target in chosen {
        let ran = Ran::of(&folder, target, options.seconds)?;
        println!("{target:20} {:>12} {:>12}", ran.executions, ran.findings.len());
        if !ran.well {
            print!("{}", ran.said);
        }
        for finding in &ran.findings {
            println!("  {}", finding.display());
        }
        failed |= !ran.well || !ran.findings.is_empty();
    }
    Ok(if failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// Checks that cargo-fuzz and the nightly toolchain are installed.
fn tools() -> Result<(), Box<dyn Error>> {
    for (arguments, missing) in [
        (
            &["+nightly", "--version"][..],
            "the nightly toolchain is missing: `rustup toolchain install nightly` installs it",
        ),
        (&["+nightly", "fuzz", "--version"], "cargo-fuzz is missing: `cargo install cargo-fuzz` installs it"),
    ] {
        let probed = Command::new("cargo").args(arguments).stdout(Stdio::null()).stderr(Stdio::null()).status();
        if !probed.is_ok_and(|status| status.success()) {
            return Err(missing.into());
        }
    }
    Ok(())
}

/// Returns a command of cargo-fuzz for the crate in `folder`.
fn cargo_fuzz(folder: &Path, command: &str) -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["+nightly", "fuzz", command, "--fuzz-dir"]).arg(folder).stdin(Stdio::null());
    cargo
}

/// Returns the names in a directory, which need not exist.
fn names(folder: &Path) -> io::Result<BTreeSet<String>> {
    match fs::read_dir(folder) {
        Ok(entries) => entries.map(|entry| Ok(entry?.file_name().to_string_lossy().into_owned())).collect(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(BTreeSet::new()),
        Err(error) => Err(error),
    }
}

/// The result for a target.
struct Ran {
    well: bool,
    executions: u64,
    /// The inputs that were found, as files.
    findings: Vec<PathBuf>,
    said: String,
}

impl Ran {
    fn of(folder: &Path, target: &str, seconds: u32) -> Result<Self, Box<dyn Error>> {
        let [corpus, seeds, artifacts] = ["corpus", "seeds", "artifacts"].map(|part| folder.join(part).join(target));
        // Findings are kept in the first of the directories.
        [&corpus, &seeds].into_iter().try_for_each(fs::create_dir_all)?;
        let before = names(&artifacts)?;
        let mut cargo = cargo_fuzz(folder, "run");
        cargo.arg(target).args([&corpus, &seeds]).arg("--").args(LIMITS);
        let output = cargo.args([format!("-max_total_time={seconds}"), "-print_final_stats=1".into()]).output()?;
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let findings = names(&artifacts)?.difference(&before).map(|name| artifacts.join(name)).collect();
        Ok(Ran { well: output.status.success(), executions: executions(&said), findings, said })
    }
}

/// Returns the number of executions that a fuzzer reports at its end, or last.
fn executions(said: &str) -> u64 {
    let last = |line: &str| {
        let told = line.strip_prefix("stat::number_of_executed_units:").or_else(|| line.strip_prefix('#'))?;
        told.split_whitespace().next()?.parse().ok()
    };
    said.lines().rev().find_map(last).unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::executions;

    #[test]
    fn executions_are_those_that_were_told_last() {
        assert_eq!(executions("INFO: Seed: 1\n#2\tINITED cov: 7\n#65536\tpulse  cov: 9\n==3== ERROR\n"), 65536);
        assert_eq!(executions("#2\tINITED\nDone 99 runs\nstat::number_of_executed_units: 99\nstat::x: 1\n"), 99);
        assert_eq!(executions("error: no such target\n"), 0);
    }
}
