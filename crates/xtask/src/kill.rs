//! `cargo xtask kill`: the kill campaigns, whose results go into `docs/verification.md`.

use crate::{killed, suite};
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
    /// Kill ranks that hammer the lock that survives its ranks instead, at random moments.
    #[arg(long)]
    lock: bool,
    /// Kill ranks at each of the calls of the fabric that its operations make, one after the other.
    #[arg(long, conflicts_with_all = ["lock", "kills", "seed"])]
    points: bool,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    if options.points {
        let all = vec![("KILLED_POINTS", "all".to_owned())];
        return killed::run("points::a_rank_dies_at_its_points", all, "lock points", true);
    }
    let by_clock = || SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).map_or(1, |since| since.as_secs());
    let seed = options.seed.unwrap_or_else(by_clock);
    if options.lock {
        let drawn = vec![("KILLED_KILLS", options.kills.to_string()), ("KILLED_SEED", seed.to_string())];
        return killed::run("hammered::ranks_are_killed_at_random", drawn, "lock kills", true);
    }
    let environment =
        [("CONFORMANCE_KILLS", options.kills.to_string()), ("CONFORMANCE_SEED", seed.to_string()), suite::writing()];
    suite::run("kill::a_kill_leaves_losses_and_nothing_else", &environment)
}
