//! The results of the runs, as tables.

use super::{combination::Combination, example::Example};
use comfy_table::Table;
use core::{fmt::Write as _, time::Duration};
use evidence::page;
use serde::Serialize;

/// The outcome of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Outcome {
    /// As expected.
    Ran,
    Failed,
    /// It was not run.
    Skipped,
}

/// One run of one example.
#[derive(Debug, Serialize)]
pub(crate) struct Run {
    provider: &'static str,
    ranks_per_node: usize,
    launcher: &'static str,
    example: &'static str,
    pub(crate) outcome: Outcome,
    /// The reason for a failure or a skip; empty for a success.
    pub(crate) why: String,
    seconds: f64,
}

impl Run {
    pub(crate) fn new(on: &Combination, example: &Example, outcome: Outcome, why: String, took: Duration) -> Self {
        Run {
            provider: on.provider.name,
            ranks_per_node: on.ranks_per_node,
            launcher: on.launcher.name(),
            example: example.name,
            outcome,
            why,
            seconds: took.as_secs_f64(),
        }
    }
}

/// The outcomes, as columns.
const COLUMNS: [(Outcome, &str); 3] =
    [(Outcome::Ran, "ran"), (Outcome::Failed, "FAILED"), (Outcome::Skipped, "skipped")];

fn count<'a>(runs: impl IntoIterator<Item = &'a Run>, outcome: Outcome) -> usize {
    runs.into_iter().filter(|run| run.outcome == outcome).count()
}

/// Returns a line about some runs.
pub(crate) fn in_short(runs: &[Run]) -> String {
    let counts = COLUMNS.iter().map(|(outcome, name)| (count(runs, *outcome), name));
    let told: Vec<String> =
        counts.filter(|(count, _)| *count > 0).map(|(count, name)| format!("{count} {name}")).collect();
    let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
    format!("{}, {seconds:.1} s", told.join(", "))
}

/// Returns the tables for a terminal.
pub(crate) fn terminal(runs: &[Run]) -> String {
    let mut text = String::new();
    for table in [by_combination(runs), by_example(runs)] {
        let _ = writeln!(text, "{}\n", page::terminal(table));
    }
    text + &reasons(runs)
}

/// Returns the tables for a page.
pub(crate) fn markdown(runs: &[Run]) -> String {
    let mut text = String::new();
    for table in [by_combination(runs), by_example(runs)] {
        let _ = writeln!(text, "{}\n", page::markdown(table));
    }
    text + &reasons(runs)
}

/// Adds the runs of `key` as a row, if there are any.
fn add_row(table: &mut Table, head: &[&str], runs: &[&Run]) {
    if runs.is_empty() {
        return;
    }
    let counts = COLUMNS.map(|(outcome, _)| count(runs.iter().copied(), outcome));
    let counts = counts.map(|count| if count == 0 { String::new() } else { count.to_string() });
    let seconds: f64 = runs.iter().map(|run| run.seconds).sum();
    let head = head.iter().map(|cell| (*cell).to_owned());
    table.add_row(head.chain(counts).chain([format!("{seconds:.1}")]).collect::<Vec<_>>());
}

fn headed(head: &[&str]) -> Table {
    let mut table = Table::new();
    table.set_header(head.iter().copied().chain(COLUMNS.map(|(_, name)| name)).chain(["seconds"]).collect::<Vec<_>>());
    table
}

fn by_combination(runs: &[Run]) -> Table {
    let mut table = headed(&["provider", "ranks a node", "launcher"]);
    let same = |one: &Run, other: &Run| {
        (one.provider, one.ranks_per_node, one.launcher) == (other.provider, other.ranks_per_node, other.launcher)
    };
    for group in runs.chunk_by(same) {
        let first = &group[0];
        let per_node = first.ranks_per_node.to_string();
        add_row(&mut table, &[first.provider, &per_node, first.launcher], &group.iter().collect::<Vec<_>>());
    }
    table
}

fn by_example(runs: &[Run]) -> Table {
    let mut table = headed(&["example"]);
    for example in super::EXAMPLES {
        let of_it: Vec<&Run> = runs.iter().filter(|run| run.example == example.name).collect();
        add_row(&mut table, &[example.name], &of_it);
    }
    table
}

/// Lists each reason to skip once, and all failures.
fn reasons(runs: &[Run]) -> String {
    let mut lines: Vec<String> = Vec::new();
    for outcome in [Outcome::Skipped, Outcome::Failed] {
        for run in runs.iter().filter(|run| run.outcome == outcome) {
            let line = match outcome {
                Outcome::Failed => format!(
                    "* FAILED: {} over {}, {} ranks a node, by {}: {}",
                    run.example, run.provider, run.ranks_per_node, run.launcher, run.why
                ),
                _ => format!("* skipped: {}: {}", run.example, run.why),
            };
            if !lines.contains(&line) {
                lines.push(line);
            }
        }
    }
    lines.into_iter().map(|line| line + "\n").collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(launcher: &'static str, example: &'static str, outcome: Outcome, why: &str) -> Run {
        Run { provider: "shm", ranks_per_node: 1, launcher, example, outcome, why: why.to_owned(), seconds: 0.5 }
    }

    #[test]
    fn each_run_is_counted_and_each_reason_told() {
        let runs = [
            run("onesided", "counter", Outcome::Ran, ""),
            run("onesided", "session_chain", Outcome::Skipped, "no queues"),
            run("openmpi", "counter", Outcome::Failed, "did not end within 9 s"),
            run("openmpi", "session_chain", Outcome::Skipped, "no queues"),
        ];
        let text = markdown(&runs);
        assert_eq!(text.matches("no queues").count(), 1, "{text}");
        assert!(text.contains("* FAILED: counter over shm, 1 ranks a node, by openmpi: did not end within 9 s"));
        assert_eq!(text.lines().filter(|line| line.starts_with("| shm")).count(), 2, "{text}");
        assert_eq!(in_short(&runs[..2]), "1 ran, 1 skipped, 1.0 s");
    }
}
