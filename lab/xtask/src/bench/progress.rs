//! Progress on standard error while other processes measure: a bar on a terminal, plain lines
//! elsewhere.

use super::{bare::Bare, lines};
use core::{
    sync::atomic::{
        AtomicBool,
        Ordering::{Acquire, Release},
    },
    time::Duration,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal, thread};

/// The interval between two updates of the bar.
const INTERVAL: Duration = Duration::from_millis(500);

/// Shows the progress of a measurement.
#[derive(Debug)]
pub(super) struct Progress {
    /// `None`: plain lines.
    bar: Option<ProgressBar>,
}

impl Progress {
    /// Creates a display for `cases` cases in all.
    pub(super) fn stderr(cases: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
            // The template is constant; a bar without it still works.
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos:>3}/{len} {elapsed:>4} {wide_msg}") {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar
        });
        Progress { bar }
    }

    /// Prints a line if there is no bar.
    pub(super) fn say(&self, line: &str) {
        if self.bar.is_none() {
            eprintln!("{line}");
        }
    }

    /// Runs `job`, and shows the current case while it runs: `at` converts the word that identifies
    /// the case to the number of earlier cases and its name.
    pub(super) fn watch<T>(
        &self,
        bare: &Bare,
        at: impl Fn(u64) -> Option<(usize, String)> + Sync,
        job: impl FnOnce() -> T,
    ) -> T {
        let Some(bar) = &self.bar else { return job() };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !over.load(Acquire) {
                    thread::park_timeout(INTERVAL);
                    if let Some((done, case)) = at(bare.word(lines::PROGRESS).load(Acquire)) {
                        bar.set_position(done as u64);
                        bar.set_message(case);
                        bar.tick();
                    }
                }
            });
            let out = job();
            over.store(true, Release);
            watcher.thread().unpark();
            out
        })
    }

    /// Removes the bar.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
