//! What searching one job came to.

use serde::Serialize;
use std::time::Duration;
use twin::{Report, Verdict};

#[derive(Debug, Serialize)]
pub(super) struct Row {
    pub(super) name: String,
    /// Whether every move was one of its own.
    pub(super) apart: bool,
    pub(super) states: u64,
    pub(super) transitions: u64,
    pub(super) longest_path: usize,
    pub(super) ends: u64,
    pub(super) seconds: f64,
    /// `exhausted`, `stopped` or `broken`.
    pub(super) verdict: &'static str,
    pub(super) what: Option<String>,
    /// What happened until then.
    pub(super) path: Vec<String>,
}

impl Row {
    pub(super) fn new(name: String, apart: bool, report: &Report, took: Duration) -> Self {
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

    /// The result, for people.
    pub(super) fn result(&self) -> String {
        match (self.verdict, &self.what) {
            ("broken", Some(what)) => format!("BROKEN: {what}"),
            ("stopped", _) => "stopped there, nothing wrong so far".to_owned(),
            _ => "exhausted".to_owned(),
        }
    }
}
