//! `cargo xtask twin`: the explicit-state models of the locks with queues, searched exhaustively.
//!
//! `docs/evidence/verification.md` describes the models, and how the locks' tests check them
//! against the code.

use crate::{explore::output::Output, progress::Progress};
use clap::Args;
use comfy_table::{Cell, CellAlignment, Table};
use serde::Serialize;
use std::{
    error::Error,
    process::ExitCode,
    time::{Duration, Instant},
};
use twin::{Case, Lock, Report, Search, Verdict};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Only locks with one of these in their names.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    lock: Vec<String>,
    /// Only jobs with one of these in their names, as R2W2x2: two readers, two writers, two rounds.
    #[arg(long, value_name = "NAME", num_args = 1..)]
    case: Vec<String>,
    /// Search each job twice: the second time without the reduction, every move is one of its own,
    /// and there are some five times as many states.
    #[arg(long)]
    apart: bool,
    /// Stop at this number of states; each takes 17 to 34 bytes, and half as much again while the
    /// table grows.
    #[arg(long, value_name = "N", default_value_t = 100_000_000)]
    states: u64,
    #[command(flatten)]
    output: Output,
}

/// The result of searching one job.
#[derive(Debug, Serialize)]
struct Row {
    name: String,
    /// Whether every move was made separately.
    apart: bool,
    states: u64,
    transitions: u64,
    longest_path: usize,
    ends: u64,
    seconds: f64,
    /// `exhausted`, `stopped` or `broken`.
    verdict: &'static str,
    what: Option<String>,
    /// The path to the violation.
    path: Vec<String>,
}

impl Row {
    fn new(name: String, apart: bool, report: &Report, took: Duration) -> Self {
        let unseen = || "never seen: all readers inside together".to_owned();
        let (verdict, what, path) = match &report.verdict {
            Verdict::Exhausted if !report.together => ("broken", Some(unseen()), Vec::new()),
            Verdict::Exhausted => ("exhausted", None, Vec::new()),
            Verdict::Stopped => ("stopped", None, Vec::new()),
            Verdict::Broken(wrong, path) => ("broken", Some(wrong.to_string()), path.clone()),
        };
        let Report { states, transitions, longest, ends, .. } = *report;
        let seconds = took.as_secs_f64();
        Row { name, apart, states, transitions, longest_path: longest, ends, seconds, verdict, what, path }
    }

    /// Returns the result in words.
    fn result(&self) -> String {
        match (self.verdict, &self.what) {
            ("broken", Some(what)) => format!("BROKEN: {what}"),
            ("stopped", _) => "stopped there, nothing wrong so far".to_owned(),
            _ => "exhausted".to_owned(),
        }
    }
}

fn filled(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["job", "moves", "states", "transitions", "longest path", "s", "result"]);
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&row.name),
            Cell::new(if row.apart { "apart" } else { "at once" }),
            number(row.states.to_string()),
            number(row.transitions.to_string()),
            number(row.longest_path.to_string()),
            number(format!("{:.1}", row.seconds)),
            Cell::new(row.result()),
        ]);
    }
    table
}

fn wanted(parts: &[String], name: &str) -> bool {
    parts.is_empty() || parts.iter().any(|part| name.contains(part.as_str()))
}

fn name(lock: Lock, case: Case) -> String {
    format!("{}: {}", lock.name(), case.name)
}

fn search(lock: Lock, case: Case, apart: bool, options: &Options) -> Row {
    let name = name(lock, case);
    let progress = Progress::new(&name);
    let (job, start) = (case.of(lock), Instant::now());
    let told = |now: &twin::Progress| progress.look(now.states, now.transitions, now.depth);
    let search = Search::new(&job).limit(options.states).watch(told);
    let report = if apart { search.apart() } else { search }.run();
    progress.end();
    Row::new(name, apart, &report, start.elapsed())
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let locks = Lock::ALL.into_iter().filter(|lock| wanted(&options.lock, lock.name()));
    let cases = || Case::ALL.into_iter().filter(|case| wanted(&options.case, case.name));
    let items: Vec<_> = locks.flat_map(|lock| cases().map(move |case| (lock, case))).collect();
    let names: Vec<_> = items.iter().map(|(lock, case)| name(*lock, *case)).collect();
    if options.output.lists("lock or job", &names.iter().map(String::as_str).collect::<Vec<_>>(), "twin")? {
        return Ok(ExitCode::SUCCESS);
    }
    let ways: &[bool] = if options.apart { &[false, true] } else { &[false] };
    let searched = |(lock, case)| ways.iter().map(move |apart| search(lock, case, *apart, options));
    let rows: Vec<_> = items.into_iter().flat_map(searched).collect();
    options.output.write("twin", &rows, || filled(&rows))?;
    Ok(if rows.iter().all(|row| row.verdict != "broken") { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}
