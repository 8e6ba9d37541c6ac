//! A run as a whole: its machine, its parameters, and its rows. `--json` writes it and `--compare`
//! reads it.

use super::rows::Row;
use serde::{Deserialize, Serialize};
use std::{fs, process::Command};

/// Version of the schema, described in `docs/evidence/performance.md`.
pub(super) const SCHEMA: u32 = 1;

/// Everything that is known about a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) schema: u32,
    pub(super) machine: Machine,
    pub(super) run: Run,
    pub(super) rows: Vec<Row>,
}

/// The machine that was measured. Fields are empty if the system does not report them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    pub(crate) processor: String,
    pub(crate) kernel: String,
    /// Cores the ranks were bound to.
    pub(super) cores: Vec<usize>,
    /// Load averages over 1, 5 and 15 minutes before the run.
    pub(super) load_before: String,
    /// Load averages after the run.
    pub(super) load_after: String,
}

/// The parameters of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Run {
    /// The command line.
    pub(super) command: String,
    pub(super) fabric: String,
    pub(super) rounds: usize,
    pub(super) quick: bool,
    /// The commit of the sources; with `+` if they were changed.
    pub(super) commit: String,
    /// When it began, UTC.
    pub(super) date: String,
    /// Its duration.
    pub(super) seconds: f64,
}

impl Machine {
    pub(crate) fn here(cores: Vec<usize>) -> Self {
        let cpus = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let field = |name: &str| {
            let line = cpus.lines().find_map(|line| line.strip_prefix(name));
            line.and_then(|rest| rest.split_once(':')).map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let processor = format!("{} (family {} model {})", field("model name"), field("cpu family"), field("model\t"));
        let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default().trim().to_owned();
        Machine { processor, kernel, cores, load_before: load(), load_after: String::new() }
    }
}

/// Returns the load averages.
pub(crate) fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the commit from which this was built, if git can determine it.
pub(crate) fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    if changed { format!("{commit}+") } else { commit }
}

/// Formats seconds since 1970 as a date and a time of day.
pub(crate) fn date(seconds: u64) -> String {
    let (days, rest) = (seconds / 86_400, seconds % 86_400);
    // Civil from days (proleptic Gregorian): eras of 400 years that begin on 1 March.
    let shifted = days + 719_468;
    let (era, day_of_era) = (shifted / 146_097, shifted % 146_097);
    let year_of_era = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted_month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * shifted_month + 2) / 5 + 1;
    let month = if shifted_month < 10 { shifted_month + 3 } else { shifted_month - 9 };
    let year = era * 400 + year_of_era + u64::from(month <= 2);
    format!("{year}-{month:02}-{day:02} {:02}:{:02} UTC", rest / 3600, rest / 60 % 60)
}

/// Returns the line of a simulated run: seed, and one hash over those of its jobs, in order.
pub(super) fn simulated(seed: u64, hashes: impl Iterator<Item = u64>) -> String {
    let joint = hashes.fold(0u64, |joint, hash| joint.rotate_left(5) ^ hash);
    format!("Virtual time, FX100, seed {seed}, joint trace hash {joint:016x}.\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        assert_eq!(date(0), "1970-01-01 00:00 UTC");
        assert_eq!(date(951_782_399), "2000-02-28 23:59 UTC");
        assert_eq!(date(951_782_400), "2000-02-29 00:00 UTC");
        assert_eq!(date(951_868_800), "2000-03-01 00:00 UTC");
        assert_eq!(date(1_798_761_599), "2026-12-31 23:59 UTC");
    }

    #[test]
    fn the_machine_tells_something() {
        assert!(!Machine::here(vec![0]).kernel.is_empty());
        assert_eq!(load().split(' ').count(), 3);
    }
}
