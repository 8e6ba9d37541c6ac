//! The options of `onesided goal`.

use clap::Args;
use std::{num::NonZeroU32, path::PathBuf};
use tofu2_sim::virt::goal::{LogGps, Pattern};

#[derive(Debug, Args)]
pub(crate) struct Goal {
    /// The schedule, text or binary.
    #[arg(value_name = "FILE", required_unless_present = "generate", conflicts_with_all = ["generate", "ranks", "bytes"])]
    pub(crate) file: Option<PathBuf>,
    /// Generate the schedule: dissemination, binomial (a broadcast), linear-barrier, ring or incast.
    #[arg(long, value_name = "PATTERN", requires = "ranks")]
    pub(crate) generate: Option<Pattern>,
    /// Number of ranks of the generated schedule.
    #[arg(short = 'n', long, value_name = "N")]
    pub(crate) ranks: Option<NonZeroU32>,
    /// Bytes of each generated message.
    #[arg(long, value_name = "B", default_value_t = 1)]
    pub(crate) bytes: u64,
    /// Parameters of the machine: times in nanoseconds with up to three decimals, S in bytes. Default:
    /// L=2500,o=1500,g=1000,G=6,O=0,S=65535, from which those that are given differ.
    #[arg(long, value_name = "L=..,o=..", default_value_t, hide_default_value = true)]
    pub(crate) loggps: LogGps,
    /// Write the schedule in the binary format instead of replaying it.
    #[arg(short = 'o', long, value_name = "FILE", conflicts_with_all = ["json", "loggps"])]
    pub(crate) output: Option<PathBuf>,
    /// Write it as text; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["output", "json", "loggps"])]
    pub(crate) text: Option<PathBuf>,
    /// Write the result, with the finishing time of each rank, as a JSON object; `-` is standard
    /// output.
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
}
