//! The environment of runs, and their results.

use super::{job::Job, network::Network};
use comfy_table::Table;
use evidence::page;
use serde::Serialize;
use std::{
    error::Error,
    io::{self, Write},
    path::PathBuf,
    sync::{Arc, atomic::AtomicBool},
    time::{Duration, Instant},
};

/// One run.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    run: String,
    ranks: usize,
    seconds: f64,
    /// Milliseconds until the last survivor was notified of a loss.
    told_after_ms: Option<f64>,
    /// The reason for a failure.
    problem: Option<String>,
    note: String,
}

/// The environment of runs, with the results of those that have ended.
pub(crate) struct Bed {
    pub(crate) network: Box<dyn Network>,
    pub(crate) programs: PathBuf,
    /// Variables of all programs, each as `NAME=VALUE`.
    pub(crate) variables: Vec<String>,
    /// Options of all programs, such as the provider.
    pub(crate) options: Vec<String>,
    pub(crate) lease: Duration,
    pub(crate) stop: Arc<AtomicBool>,
    pub(crate) rows: Vec<Row>,
    /// Only runs whose names contain this are done.
    pub(crate) only: String,
}

pub(crate) type Outcome = Result<Good, Box<dyn Error>>;

/// The result of a successful run.
#[derive(Default)]
pub(crate) struct Good {
    pub(crate) told_after: Option<Duration>,
    pub(crate) note: String,
}

/// Returns a flag that an interrupt sets: the current run ends, and then everything is removed.
pub(crate) fn interrupt() -> io::Result<Arc<AtomicBool>> {
    let stop: Arc<AtomicBool> = Arc::default();
    for signal in [signal_hook::consts::SIGINT, signal_hook::consts::SIGTERM] {
        signal_hook::flag::register(signal, stop.clone())?;
    }
    Ok(stop)
}

impl Bed {
    pub(crate) fn is_stopped(&self) -> bool {
        self.stop.load(std::sync::atomic::Ordering::Relaxed)
    }

    /// Does a run unless it was not asked for.
    pub(crate) fn row(&mut self, name: &str, ranks: usize, run: &dyn Fn(&Bed) -> Outcome) {
        if !name.contains(&self.only) || self.is_stopped() {
            return;
        }
        eprintln!("{name} …");
        let begun = Instant::now();
        let ended = run(self);
        let (problem, good) = match ended {
            Ok(good) => (None, good),
            Err(error) => (Some(error.to_string()), Good::default()),
        };
        if let Some(problem) = &problem {
            eprintln!("{name} FAILS: {problem}");
        }
        let seconds = begun.elapsed().as_secs_f64();
        let told_after_ms = good.told_after.map(|after| after.as_secs_f64() * 1e3);
        self.rows.push(Row { run: name.to_owned(), ranks, seconds, told_after_ms, problem, note: good.note });
    }

    /// Returns whether all runs were done and passed.
    pub(crate) fn is_good(&self) -> bool {
        !self.is_stopped() && self.rows.iter().all(|row| row.problem.is_none())
    }

    /// Prints the results.
    pub(crate) fn report(&self, head: &str, json: bool) -> io::Result<()> {
        let mut table = Table::new();
        table.set_header(["run", "ranks", "s", "loss reported after", "result"]);
        for row in &self.rows {
            let told = row.told_after_ms.map_or_else(String::new, |ms| format!("{ms:.0} ms"));
            let result = match &row.problem {
                None if row.note.is_empty() => "passes".to_owned(),
                None => format!("passes: {}", row.note),
                Some(problem) => format!("FAILS: {problem}"),
            };
            table.add_row([row.run.clone(), row.ranks.to_string(), format!("{:.1}", row.seconds), told, result]);
        }
        writeln!(io::stdout(), "{head}\n{}", page::terminal(table))?;
        if json {
            writeln!(io::stdout(), "{}", serde_json::to_string_pretty(&self.rows)?)?;
        }
        Ok(())
    }
}

/// Runs a program to its end, on all hosts.
pub(crate) fn whole(bed: &Bed, slots: usize, name: &str, arguments: &[&str], prints: &str) -> Outcome {
    let mut job = Job::start(bed, slots, name, arguments)?;
    job.end(0, Duration::from_secs(120))?;
    if !job.printed(prints) {
        return Err(format!("it did not print `{prints}`: {}", job.text()).into());
    }
    Ok(Good::default())
}
