//! Progress on standard error: a line that changes on a terminal, a line every ten seconds elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget};
use std::{
    cell::Cell,
    io::IsTerminal,
    ops::ControlFlow,
    time::{Duration, Instant},
};

/// Where nobody looks all the time.
const LINES: Duration = Duration::from_secs(10);

pub(super) struct Progress {
    name: String,
    /// `None`: plain lines.
    spinner: Option<ProgressBar>,
    told: Cell<Instant>,
}

impl Progress {
    pub(super) fn new(name: &str) -> Self {
        let spinner = std::io::stderr().is_terminal().then(|| {
            let spinner = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
            spinner.set_message(name.to_owned());
            spinner.tick();
            spinner
        });
        Progress { name: name.to_owned(), spinner, told: Cell::new(Instant::now()) }
    }

    pub(super) fn look(&self, now: &explore::Progress) -> ControlFlow<()> {
        let text =
            || format!("{}: {} states, {} transitions, depth {}", self.name, now.states, now.transitions, now.depth);
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

    pub(super) fn end(&self) {
        if let Some(spinner) = &self.spinner {
            spinner.finish_and_clear();
        }
    }
}
