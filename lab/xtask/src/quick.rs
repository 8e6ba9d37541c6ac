//! `cargo xtask quick`: the quick form of every measuring and checking command of this program that
//! needs nothing to be built, one after another.

use clap::Args;
use std::{
    env,
    error::Error,
    process::{Command, ExitCode, Stdio},
    time::Instant,
};

/// The commands. `bench-cluster`, `hosts` and `ofi` build programs over libfabric first; `kill`, `death`,
/// `matrix`, `reduction`, `miri`, `sanitize` and `targets` run cargo.
const COMMANDS: [&[&str]; 10] = [
    &["bench", "--quick"],
    &["bench-locks", "--quick", "--ranks", "2", "--workloads", "lb"],
    &["bench-locks", "--virt", "--quick", "--ranks", "16", "--writers", "5"],
    &["bench-named", "--quick"],
    &["bench-peers", "--quick"],
    &["collectives", "--quick"],
    &["transports", "--quick"],
    &["long-transfers", "--quick"],
    &["twin", "--lock", "RpLock", "--case", "R3W1x1"],
    &["torture", "--quick"],
];

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only commands whose words contain this.
    #[arg(value_name = "PART", default_value = "")]
    only: String,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let (program, mut failed) = (env::current_exe()?, 0);
    for words in COMMANDS {
        let name = words.join(" ");
        if !name.contains(&options.only) {
            continue;
        }
        let begun = Instant::now();
        let output = Command::new(&program).args(words).stdin(Stdio::null()).output()?;
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
