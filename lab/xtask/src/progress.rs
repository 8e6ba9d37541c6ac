//! Progress on standard error: a line that changes on a terminal, a line every ten seconds
//! elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget};
use std::{
    cell::Cell,
    io::IsTerminal,
    ops::ControlFlow,
    time::{Duration, Instant},
};

/// The time between two lines if there is no terminal.
const LINES: Duration = Duration::from_secs(10);

pub(crate) struct Progress {
    name: String,
    /// `None`: plain lines.
    spinner: Option<ProgressBar>,
    told: Cell<Instant>,
}

impl Progress {
    pub(crate) fn new(name: &str) -> Self {
        Progress::among(&MultiProgress::with_draw_target(ProgressDrawTarget::stderr()), name)
    }

    /// Shows progress below that of others.
    pub(crate) fn among(bars: &MultiProgress, name: &str) -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = bars.add(ProgressBar::no_length());
            spinner.set_message(name.to_owned());
            spinner.tick();
            spinner
        });
        Progress { name: name.to_owned(), spinner, told: Cell::new(Instant::now()) }
    }

    pub(crate) fn look(&self, states: u64, transitions: u64, depth: usize) -> ControlFlow<()> {
        let text = || format!("{}: {states} states, {transitions} transitions, depth {depth}", self.name);
        match &self.spinner {
            Some(spinner) => {
                spinner.set_message(text());
                spinner.tick();
            }
            None if self.told.get().elapsed() >= LINES => {
                eprintln!("{}", text());
                self.told.set(Instant::now());
            }
            None => {}
        }
        ControlFlow::Continue(())
    }

    pub(crate) fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
