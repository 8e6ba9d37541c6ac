//! The result of exploring one case, for programs and for human readers.

use checks::exploration::{Expected, Exploration, Explored};
use comfy_table::{Cell, CellAlignment, Table};
use explore::{Report, Sample, Stop, Verdict};
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Default, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Whether a step of the lock is mutated, so that a violation is expected.
    pub(super) mutant: bool,
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) longest_path: usize,
    /// The number of atomics that read their word at one time and wrote it at a later one.
    pub(super) parted: u64,
    /// The number of states of single ranks, and of runs of their programs to compute them; or of
    /// random runs.
    pub(super) local_states: u64,
    pub(super) runs: u64,
    /// Continuations after declared ends of steps that were compared.
    pub(super) compared: u64,
    pub(super) seconds: f64,
    /// `exhausted`, `stopped`, `violated`, or `sampled`: no violation in `runs` random runs.
    pub(super) verdict: &'static str,
    /// The bound that stopped the exploration.
    pub(super) stopped_at: Option<u64>,
    /// The violated condition, or another error.
    pub(super) what: Option<String>,
    /// The counter-example: its moves, its schedule and its timeline.
    pub(super) moves: Option<usize>,
    pub(super) schedule: Option<String>,
    pub(super) timeline: Vec<String>,
    /// Whether a mutant was caught; for all other cases, whether there is no violation and at
    /// least the recorded number of states was exhausted.
    pub(super) as_expected: bool,
}

impl Row {
    pub(super) fn new(exploration: &Exploration, explored: &Explored, took: Duration) -> Self {
        let row = match explored {
            Explored::Orders(report) => Row::of_orders(exploration, report),
            Explored::Random(sample) => Row::of_random_runs(sample),
        };
        let (name, mutant) = (exploration.name().to_owned(), exploration.is_mutant());
        Row { name, mutant, as_expected: mutant == row.what.is_some(), seconds: took.as_secs_f64(), ..row }
    }

    fn of_orders(exploration: &Exploration, report: &Report) -> Self {
        let (verdict, stopped_at) = match report.verdict {
            Verdict::Exhausted => ("exhausted", None),
            Verdict::Stopped(Stop::States(limit)) => ("stopped", Some(limit)),
            Verdict::Stopped(Stop::Steps(limit)) => ("stopped", Some(limit.into())),
            Verdict::Stopped(Stop::Asked) => ("stopped", None),
            Verdict::Violated(_) => ("violated", None),
        };
        let found = report.violation();
        let unseen = || report.possible.iter().find(|(_, seen)| !seen).map(|(name, _)| format!("never seen: {name}"));
        let few = || match exploration.expected() {
            Expected::Exhausted { at_least } if report.states < at_least => {
                Some(format!("at least {at_least} states were recorded"))
            }
            _ => None,
        };
        let what = match found {
            Some(found) => Some(found.what.clone()),
            // A mutant need not meet any other expectation.
            None if exploration.is_mutant() => None,
            None if verdict == "exhausted" => report.contradiction.clone().or_else(few).or_else(unseen),
            None => report.contradiction.clone(),
        };
        Row {
            states: report.states,
            transitions: report.transitions,
            longest_path: report.longest,
            parted: report.parted,
            local_states: report.local_states,
            runs: report.runs,
            compared: report.compared,
            verdict,
            stopped_at,
            what,
            moves: found.map(|found| found.moves),
            schedule: found.map(|found| found.schedule.clone()),
            timeline: found.map(|found| found.timeline.clone()).unwrap_or_default(),
            ..Row::default()
        }
    }

    fn of_random_runs(sample: &Sample) -> Self {
        let failure = sample.failure.as_ref();
        Row {
            transitions: sample.events,
            runs: sample.runs,
            verdict: if failure.is_some() { "violated" } else { "sampled" },
            what: failure.map(|failure| format!("{} with seed {}", failure.what, failure.seed)),
            timeline: failure.map(|failure| failure.timeline.clone()).unwrap_or_default(),
            ..Row::default()
        }
    }

    /// Returns the result in words.
    pub(super) fn result(&self) -> String {
        let what = self.what.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        let short: String = what.chars().take(70).collect();
        let short = if short.len() < what.len() { format!("{short} …") } else { short };
        match (self.verdict, self.moves) {
            ("violated", None) if self.mutant => format!("caught at random: {short}"),
            ("violated", Some(moves)) if self.mutant => format!("caught in {moves} moves: {short}"),
            ("violated", _) => format!("VIOLATED: {short}"),
            _ if self.mutant => "NOT CAUGHT".to_owned(),
            _ if self.what.is_some() => format!("WRONG: {short}"),
            ("sampled", _) => format!("nothing wrong in {} random runs", self.runs),
            ("stopped", _) => "stopped there, nothing wrong so far".to_owned(),
            _ => "exhausted".to_owned(),
        }
    }
}

/// Fills a table with rows.
pub(super) fn filled(rows: &[Row]) -> Table {
    let mut table = Table::new();
    table.set_header(["case", "states", "transitions", "longest path", "s", "result"]);
    for row in rows {
        let number = |text: String| Cell::new(text).set_alignment(CellAlignment::Right);
        table.add_row([
            Cell::new(&row.name),
            number(row.states.to_string()),
            number(row.transitions.to_string()),
            number(row.longest_path.to_string()),
            number(format!("{:.1}", row.seconds)),
            Cell::new(row.result()),
        ]);
    }
    table
}

/// Returns a sentence with the number of rows that are as expected.
pub(super) fn summary(rows: &[Row]) -> String {
    let unexpected = rows.iter().filter(|row| !row.as_expected).count();
    let parted = |mutant: bool| rows.iter().filter(|row| row.parted > 0 && row.mutant == mutant).count();
    format!(
        "{} of {} as expected; something could come in the middle of an atomic in {} without a mutant, {} with one",
        rows.len() - unexpected,
        rows.len(),
        parted(false),
        parted(true)
    )
}
