//! `cargo xtask quick`: the quick form of every measuring and checking command that needs nothing but
//! the benchmark tool and the programs of `torture` to be built, one after another.

use crate::bench;
use clap::Args;
use std::{
    env,
    error::Error,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// The measurements. `cluster` builds programs over libfabric first.
const MEASUREMENTS: [&[&str]; 17] = [
    &["operations", "--quick"],
    &["beside", "--quick"],
    &["beside", "--quick", "--programs"],
    &["locks", "--quick", "--ranks", "2", "--workloads", "lb"],
    &["locks", "--virt", "--quick", "--ranks", "16", "--writers", "5"],
    &["named", "--quick"],
    &["peers", "--quick"],
    &["collectives", "--quick"],
    &["transports", "--quick"],
    &["lock-pairs", "--quick"],
    &["lock-waves", "--quick"],
    &["exchanges", "--quick"],
    &["exchanges-by-node", "--quick"],
    &["queues", "--quick"],
    &["delegation", "--quick"],
    &["stencil", "--quick"],
    &["simulator", "--quick"],
];

/// What tests of the benchmark tool run as well, and look at its rows: `--built` leaves it to them.
const TESTED: &str = "operations";

/// The checks of this program. `hosts` and `ofi` build programs over libfabric first; `kill`, `death`, `matrix`,
/// `reduction`, `miri`, `sanitize` and `targets` run cargo.
const CHECKS: [&[&str]; 3] =
    [&["long-transfers", "--quick"], &["twin", "--lock", "RpLock", "--case", "R3W1x1"], &["torture", "--quick"]];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only commands whose words contain this.
    #[arg(value_name = "PART", default_value = "")]
    only: String,
    /// Use the programs beside this one without building them: their figures are those of their profile. Without what tests run as
    /// well.
    #[arg(long)]
    built: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (program, mut failed) = (env::current_exe()?, 0);
    if !options.built {
        bench::build_programs()?;
    }
    let tool = program.with_file_name("onesided-bench");
    if options.built && !tool.is_file() {
        return Err(format!("{} is not built; leave out --built", tool.display()).into());
    }
    let measuring = || if options.built { Command::new(&tool) } else { bench::tool() };
    let measurements = MEASUREMENTS.iter().map(|words| (measuring(), words));
    let checks = CHECKS.iter().map(|words| (Command::new(&program), words));
    for (mut command, words) in measurements.chain(checks) {
        let name = words.join(" ");
        if !name.contains(&options.only) || (options.built && words[0] == TESTED) {
            continue;
        }
        let begun = Instant::now();
        command.args(*words).stdin(Stdio::null());
        if options.built && words[0] == "torture" {
            command.arg("--built");
        }
        let output = command.output()?;
        let took = begun.elapsed().as_secs_f64();
        if output.status.success() {
            println!("{name:64} passes {took:5.1} s");
            continue;
        }
        failed += 1;
        println!("{name:64} FAILS  {took:5.1} s: {}", output.status);
        print!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    }
    Ok(if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
