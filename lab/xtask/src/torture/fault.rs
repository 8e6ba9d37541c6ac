//! The possible faults of a case, and the sums of a campaign.

use serde::Serialize;

/// A defect that a case has found.
#[derive(Clone, Debug, Serialize, PartialEq, Eq)]
#[serde(tag = "kind", content = "what", rename_all = "kebab-case")]
pub(super) enum Fault {
    /// It did not end within its bound.
    Hang(String),
    /// Remaining processes, files or names.
    Leak(String),
    /// The exit code is not the documented one.
    Code(String),
    /// A message that does not name the rank, signal, option or resource, or that comes from a
    /// panic.
    Nameless(String),
    /// A survivor had a wrong result, or an error other than the loss.
    Wrong(String),
}

impl Fault {
    pub(super) fn in_words(&self) -> String {
        match self {
            Fault::Hang(what) => format!("hang: {what}"),
            Fault::Leak(what) => format!("leak: {what}"),
            Fault::Code(what) => format!("wrong code: {what}"),
            Fault::Nameless(what) => format!("message without a name: {what}"),
            Fault::Wrong(what) => format!("wrong result: {what}"),
        }
    }
}

/// The outcome of a case.
#[derive(Clone, Debug, Default)]
pub(super) struct Outcome {
    /// A short description of the case.
    pub(super) what: String,
    /// The reason why it was skipped.
    pub(super) skipped: Option<String>,
    /// The number of survivors with the expected result or error.
    pub(super) survivors: usize,
    /// Milliseconds from the fault to the end of the job.
    pub(super) took_ms: Option<u64>,
    pub(super) faults: Vec<Fault>,
}

impl Outcome {
    pub(super) fn of(what: String) -> Self {
        Outcome { what, ..Outcome::default() }
    }

    pub(super) fn skipped(what: String, why: impl Into<String>) -> Self {
        Outcome { what, skipped: Some(why.into()), ..Outcome::default() }
    }
}

/// A case with faults.
#[derive(Debug, Serialize)]
pub(super) struct Failure {
    pub(super) case: usize,
    pub(super) what: String,
    pub(super) faults: Vec<Fault>,
    /// The command that runs this case alone.
    pub(super) replay: String,
}

/// The sums of a campaign.
#[derive(Debug, Default, Serialize)]
pub(super) struct Sums {
    pub(super) campaign: &'static str,
    pub(super) tried: usize,
    /// Cases without a fault.
    pub(super) survived: usize,
    pub(super) survivors: usize,
    pub(super) hangs: usize,
    pub(super) leaks: usize,
    pub(super) wrong_codes: usize,
    pub(super) nameless: usize,
    pub(super) wrong_results: usize,
    pub(super) longest_ms: u64,
    pub(super) failures: Vec<Failure>,
    /// The reasons for skipping cases, with the number of cases.
    pub(super) skipped: std::collections::BTreeMap<String, usize>,
}

impl Sums {
    pub(super) fn add(&mut self, case: usize, outcome: Outcome, replay: String) {
        if let Some(why) = outcome.skipped {
            *self.skipped.entry(why).or_default() += 1;
            return;
        }
        self.tried += 1;
        self.survivors += outcome.survivors;
        self.longest_ms = self.longest_ms.max(outcome.took_ms.unwrap_or(0));
        if outcome.faults.is_empty() {
            self.survived += 1;
            return;
        }
        for fault in &outcome.faults {
            *match fault {
                Fault::Hang(_) => &mut self.hangs,
                Fault::Leak(_) => &mut self.leaks,
                Fault::Code(_) => &mut self.wrong_codes,
                Fault::Nameless(_) => &mut self.nameless,
                Fault::Wrong(_) => &mut self.wrong_results,
            } += 1;
        }
        self.failures.push(Failure { case, what: outcome.what, faults: outcome.faults, replay });
    }

    pub(super) fn is_good(&self) -> bool {
        self.failures.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_counts_in_its_column_and_a_skip_in_none() {
        let mut sums = Sums::default();
        sums.add(0, Outcome { survivors: 3, ..Outcome::of("a".into()) }, String::new());
        sums.add(1, Outcome::skipped("b".into(), "no root"), String::new());
        assert!(sums.is_good());
        let faults = vec![Fault::Hang("x".into()), Fault::Code("y".into())];
        sums.add(2, Outcome { faults, ..Outcome::of("c".into()) }, "again".into());
        assert_eq!((sums.tried, sums.survived, sums.survivors), (2, 1, 3));
        assert_eq!((sums.hangs, sums.wrong_codes, sums.leaks, sums.nameless, sums.wrong_results), (1, 1, 0, 0, 0));
        assert!(!sums.is_good() && sums.failures[0].replay == "again" && sums.skipped["no root"] == 1);
    }
}
