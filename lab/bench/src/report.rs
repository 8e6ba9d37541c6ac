//! A run as a whole: its machine, its parameters, and its rows. `--json` writes it and `--compare`
//! reads it.

use serde::{Deserialize, Serialize};
use std::{
    env,
    fmt::Write,
    fs,
    process::Command,
    time::{Instant, SystemTime, SystemTimeError, UNIX_EPOCH},
};

/// Version of the schema, described in `docs/evidence/performance.md`.
pub(crate) const SCHEMA: u32 = 2;
/// The fabric of runs in virtual time.
pub(crate) const VIRTUAL: &str = "virt";

/// Everything that is known about a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Report<R> {
    pub(crate) schema: u32,
    pub(crate) machine: Machine,
    pub(crate) run: Run,
    pub(crate) rows: Vec<R>,
}

/// The machine that was measured. Fields are empty if the system does not report them.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Machine {
    processor: String,
    kernel: String,
    /// Cores the ranks were bound to.
    cores: Vec<usize>,
    /// Load averages over 1, 5 and 15 minutes before the run.
    load_before: String,
    /// Load averages after the run.
    load_after: String,
}

/// The parameters of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The command line.
    command: String,
    /// The fabric of the ranks, or the measurement if it is of several.
    pub(crate) fabric: String,
    pub(crate) rounds: usize,
    quick: bool,
    /// Seed of all random choices, if there are any.
    #[serde(default)]
    pub(crate) seed: Option<u64>,
    /// The commit of the sources; with `+` if they were changed.
    commit: String,
    /// When it began, UTC.
    date: String,
    /// Its duration.
    seconds: f64,
}

/// A run that has begun.
#[derive(Debug)]
pub(crate) struct Started {
    machine: Machine,
    begun: Instant,
    date: String,
}

impl Started {
    /// Begins a run whose ranks are bound to these cores.
    pub(crate) fn now(cores: Vec<usize>) -> Result<Self, SystemTimeError> {
        let date = date(SystemTime::now().duration_since(UNIX_EPOCH)?.as_secs());
        Ok(Started { machine: Machine::here(cores), begun: Instant::now(), date })
    }

    pub(crate) fn end<R>(self, fabric: &str, rounds: usize, quick: bool, seed: Option<u64>, rows: Vec<R>) -> Report<R> {
        let machine = Machine { load_after: load(), ..self.machine };
        let run = Run {
            command: command(),
            fabric: fabric.to_owned(),
            rounds,
            quick,
            seed,
            commit: commit(),
            date: self.date,
            seconds: self.begun.elapsed().as_secs_f64(),
        };
        Report { schema: SCHEMA, machine, run, rows }
    }
}

impl<R> Report<R> {
    /// Returns the command, the date, the machine if it was measured, and `notes`.
    pub(crate) fn summary(&self, notes: &str) -> String {
        let (run, machine) = (&self.run, &self.machine);
        let mut out = String::new();
        let quick = if run.quick { "QUICK RUN, its figures say little: " } else { "" };
        writeln!(out, "{quick}`{}`, {}, {:.0} s, commit {}.", run.command, run.date, run.seconds, run.commit).ok();
        if run.fabric != VIRTUAL {
            let cores = machine.cores.iter().map(usize::to_string).collect::<Vec<_>>().join(" and ");
            let cores = if cores.is_empty() { cores } else { format!(", cores {cores}") };
            writeln!(out, "{}, kernel {}{cores}.", machine.processor, machine.kernel).ok();
            writeln!(out, "Load average before the run {}, after it {}.", machine.load_before, machine.load_after).ok();
        }
        out + notes
    }
}

/// Returns this command as it was typed, without `--json`, which does not affect the figures.
fn command() -> String {
    let mut args = env::args_os().skip(1).map(|arg| arg.to_string_lossy().into_owned());
    let mut words = vec!["cargo".to_owned(), "measure".to_owned()];
    while let Some(arg) = args.next() {
        if arg == "--json" {
            args.next();
        } else if !arg.starts_with("--json=") {
            words.push(arg);
        }
    }
    words.join(" ")
}

impl Machine {
    fn here(cores: Vec<usize>) -> Self {
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
fn load() -> String {
    let text = fs::read_to_string("/proc/loadavg").unwrap_or_default();
    text.split(' ').take(3).collect::<Vec<_>>().join(" ")
}

/// Returns the commit from which this was built, if git can determine it.
fn commit() -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").args(args).output().ok().filter(|output| output.status.success())?;
        Some(String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else { return "unknown".to_owned() };
    let changed = git(&["status", "--porcelain", "--untracked-files=no"]).is_none_or(|changes| !changes.is_empty());
    if changed { format!("{commit}+") } else { commit }
}

/// Formats seconds since 1970 as a date and a time of day.
fn date(seconds: u64) -> String {
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

/// Returns the note on a simulated run: seed, and one hash over those of its jobs, in order.
pub(crate) fn simulated(seed: u64, hashes: impl Iterator<Item = u64>) -> String {
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
