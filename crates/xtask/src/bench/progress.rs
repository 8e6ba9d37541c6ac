//! Progress on standard error: a bar on a terminal, one line per round elsewhere.

use super::cases::Case;
use core::time::Duration;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::io::IsTerminal;

/// Tells people how far a measurement is.
#[derive(Debug)]
pub(super) struct Progress {
    /// `None`: plain lines.
    bar: Option<ProgressBar>,
    /// Names of the cases of all rounds, in order of their measurement.
    cases: Vec<&'static str>,
}

impl Progress {
    /// `rounds` rounds of `cases`.
    pub(super) fn stderr(cases: Vec<&'static str>, rounds: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let length = (cases.len() * rounds) as u64;
            let bar = ProgressBar::with_draw_target(Some(length), ProgressDrawTarget::stderr());
            // The template is constant; a bar without it still works.
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos:>3}/{len} {elapsed:>4} {wide_msg}") {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar
        });
        Progress { bar, cases }
    }

    /// A round begins, the first being 0.
    pub(super) fn round(&self, round: usize, rounds: usize) {
        match &self.bar {
            Some(bar) => bar.set_position((round * self.cases.len()) as u64),
            None => eprintln!("round {} of {rounds}: {} cases", round + 1, self.cases.len()),
        }
    }

    /// This case is being measured.
    pub(super) fn show(&self, case: Option<&Case>) {
        let (Some(bar), Some(case)) = (&self.bar, case) else { return };
        let round = bar.position() / self.cases.len().max(1) as u64 * self.cases.len() as u64;
        let place = self.cases.iter().position(|name| *name == case.name).unwrap_or(0);
        bar.set_position(round + place as u64);
        bar.set_message(case.what);
        bar.tick();
    }

    /// All is over: leave no bar behind.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }

    /// How often people look.
    pub(super) const INTERVAL: Duration = Duration::from_millis(500);
}
