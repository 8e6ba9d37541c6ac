//! `cargo xtask death`: how soon the others know that a rank was killed.

use crate::{killed, suite};
use clap::Args;
use std::{
    error::Error,
    fs,
    process::{self, ExitCode},
};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Deaths for each kind of wait and number of ranks, or of holder.
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..))]
    deaths: u32,
    /// Measure until a survivor that waits for the lock is inside instead.
    #[arg(long, conflicts_with = "json")]
    lock: bool,
    /// Print JSON at the end, times in nanoseconds.
    #[arg(long)]
    json: bool,
    /// Put the table into `docs/verification.md`.
    #[arg(long)]
    write: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if options.lock {
        let deaths = vec![("KILLED_DEATHS", options.deaths.to_string())];
        return killed::run("delays::a_survivor_is_inside_soon", deaths, "lock death", options.write);
    }
    let report = std::env::temp_dir().join(format!("onesided-death-{}.json", process::id()));
    let mut environment = vec![("CONFORMANCE_SAMPLES", options.deaths.to_string())];
    environment.push(("CONFORMANCE_REPORT", report.display().to_string()));
    if options.write {
        environment.push(suite::writing());
    }
    let code = suite::run("death::the_others_know_soon", &environment)?;
    let found = fs::read_to_string(&report);
    let _ = fs::remove_file(&report);
    if options.json {
        print!("{}", found?);
    }
    Ok(code)
}
