//! `cargo xtask kill`: the kill campaign, whose result goes into `docs/verification.md`.

use crate::suite;
use clap::Args;
use std::{error::Error, process::ExitCode, time::SystemTime};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Ranks and launchers to kill, one after the other.
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..))]
    kills: u32,
    /// Draws cases, victims and delays; by the clock unless given.
    #[arg(long)]
    seed: Option<u64>,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let by_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or_else(by_clock);
    let environment =
        [("CONFORMANCE_KILLS", options.kills.to_string()), ("CONFORMANCE_SEED", seed.to_string()), suite::writing()];
    suite::run("kill::a_kill_leaves_losses_and_nothing_else", &environment)
}
