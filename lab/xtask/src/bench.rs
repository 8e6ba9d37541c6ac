//! `cargo xtask bench`, `bench-locks` and so on: measurements of the benchmark tool (`lab/bench`), which is built only
//! for them.

use std::{
    error::Error,
    ffi::OsString,
    process::{Command, ExitCode},
};

/// The arguments of a measurement, which the tool checks.
#[derive(Debug, clap::Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Arguments {
    #[arg(value_name = "OPTIONS", trailing_var_arg = true, allow_hyphen_values = true)]
    words: Vec<OsString>,
}

/// Returns a command that builds the tool and runs it.
pub(crate) fn tool() -> Command {
    let mut cargo = Command::new("cargo");
    cargo.args(["run", "--profile", "tuned", "--quiet", "--package", "onesided-bench", "--"]);
    cargo
}

/// Runs a measurement.
pub(crate) fn run(subject: &str, arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    let status = tool().arg(subject).args(&arguments.words).status().map_err(|error| format!("cargo: {error}"))?;
    Ok(if status.success() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

/// The examples that `peers --programs` runs.
const PROGRAMS: [&str; 6] = ["heat_2d", "jacobi", "life", "distributed_hashtable", "work_farm", "matmul_summa"];

/// Builds the examples in the profile of the tool.
pub(crate) fn build_programs() -> Result<(), Box<dyn Error>> {
    let mut cargo = Command::new("cargo");
    cargo.args(["build", "--profile", "tuned", "--quiet", "--package", "onesided-examples"]);
    cargo.args(PROGRAMS.iter().flat_map(|example| ["--example", example]));
    let status = cargo.status().map_err(|error| format!("cargo: {error}"))?;
    if status.success() { Ok(()) } else { Err("the examples can't be built".into()) }
}

/// Measures beside other libraries; builds the examples first if programs are measured.
pub(crate) fn run_peers(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    if arguments.words.iter().any(|word| word == "--programs") {
        build_programs()?;
    }
    run("beside", arguments)
}

/// Builds the programs of a job on several nodes over libfabric, if it is installed, and measures them.
#[cfg(target_os = "linux")]
pub(crate) fn run_cluster(arguments: &Arguments) -> Result<ExitCode, Box<dyn Error>> {
    use crate::ofi::build;

    let mut words = arguments.words.clone();
    if !words.iter().any(|word| word == "--help" || word == "-h") {
        if let Some(why) = build::missing() {
            println!("bench-cluster: SKIPPED: {why}");
            return Ok(ExitCode::SUCCESS);
        }
        build::for_release("fabric-ofi", "ofi", &["bare"])?;
        let programs = build::for_release("onesided-bench", "onesided/ofi", &["in_cluster"])?;
        words.extend(["--programs".into(), programs.into()]);
    }
    run("cluster", &Arguments { words })
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, Command};

    #[test]
    fn all_words_belong_to_the_tool() {
        for words in [&["--help"][..], &["--only", "put", "lock-*", "--quick"], &["--json=-", "-h", "--", "x"], &[]] {
            let command = Arguments::augment_args(Command::new("xtask"));
            let parsed = command.try_get_matches_from(["xtask"].iter().chain(words)).expect("any words");
            let parsed = <Arguments as clap::FromArgMatches>::from_arg_matches(&parsed).expect("words");
            assert_eq!(parsed.words, words);
        }
    }
}
