//! What exploring one case came to.

use explore::{Report, Stop, Verdict};
use serde::Serialize;
use std::time::Duration;

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Whether a step of the lock is done wrong, so that a violation is wanted.
    pub(super) mutation: bool,
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) longest_path: usize,
    /// States of single ranks, and runs of their programs to learn them.
    pub(super) local_states: u64,
    pub(super) runs: u64,
    /// Continuations after declared ends of steps that were compared.
    pub(super) compared: u64,
    pub(super) seconds: f64,
    /// `exhausted`, `stopped` or `violated`.
    pub(super) verdict: &'static str,
    /// The bound that stopped it.
    pub(super) stopped_at: Option<u64>,
    /// What is violated, or else wrong.
    pub(super) what: Option<String>,
    /// The counter-example.
    pub(super) moves: Option<usize>,
    pub(super) schedule: Option<String>,
    pub(super) timeline: Vec<String>,
    /// A mutation was caught; in all else nothing is wrong, and what was exhausted is no less than was recorded.
    pub(super) as_expected: bool,
}

impl Row {
    pub(super) fn new(name: String, mutation: bool, at_least: u64, report: &Report, took: Duration) -> Self {
        let (verdict, stopped_at) = match report.verdict {
            Verdict::Exhausted => ("exhausted", None),
            Verdict::Stopped(Stop::States(limit)) => ("stopped", Some(limit)),
            Verdict::Stopped(Stop::Steps(limit)) => ("stopped", Some(limit.into())),
            Verdict::Stopped(Stop::Asked) => ("stopped", None),
            Verdict::Violated(_) => ("violated", None),
        };
        let found = report.violation();
        let unseen = || report.possible.iter().find(|(_, seen)| !seen).map(|(name, _)| format!("never seen: {name}"));
        let few = || (report.states < at_least).then(|| format!("at least {at_least} states were recorded"));
        let wrong = match found {
            Some(found) => Some(found.what.clone()),
            // A mutation need not come to anything good.
            None if mutation => None,
            None if verdict == "exhausted" => report.contradiction.clone().or_else(few).or_else(unseen),
            None => report.contradiction.clone(),
        };
        Row {
            name,
            mutation,
            states: report.states,
            transitions: report.transitions,
            longest_path: report.longest,
            local_states: report.local_states,
            runs: report.runs,
            compared: report.compared,
            seconds: took.as_secs_f64(),
            verdict,
            stopped_at,
            as_expected: mutation == wrong.is_some(),
            what: wrong,
            moves: found.map(|found| found.moves),
            schedule: found.map(|found| found.schedule.clone()),
            timeline: found.map(|found| found.timeline.clone()).unwrap_or_default(),
        }
    }

    /// The result, for people.
    pub(super) fn result(&self) -> String {
        let what = self.what.as_deref().unwrap_or_default().lines().next().unwrap_or_default();
        let short: String = what.chars().take(70).collect();
        let short = if short.len() < what.len() { format!("{short} …") } else { short };
        match (self.verdict, self.moves) {
            ("violated", Some(moves)) if self.mutation => format!("caught in {moves} moves: {short}"),
            ("violated", _) => format!("VIOLATED: {short}"),
            _ if self.mutation => "NOT CAUGHT".to_owned(),
            _ if self.what.is_some() => format!("WRONG: {short}"),
            ("stopped", _) => "stopped there, nothing wrong so far".to_owned(),
            _ => "exhausted".to_owned(),
        }
    }
}
