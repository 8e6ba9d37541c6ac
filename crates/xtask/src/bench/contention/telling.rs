//! Progress on standard error while processes measure: a bar on a terminal, a line for each number of ranks elsewhere.

use super::super::{limit::Bare, lines, progress::Progress};
use core::sync::atomic::{AtomicBool, Ordering::Acquire};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use std::{io::IsTerminal, thread};

/// Tells people how far the measurement is.
#[derive(Debug)]
pub(super) struct Telling {
    bar: Option<ProgressBar>,
}

impl Telling {
    /// `cases` in all jobs.
    pub(super) fn stderr(cases: usize) -> Self {
        let bar = std::io::stderr().is_terminal().then(|| {
            let bar = ProgressBar::with_draw_target(Some(cases as u64), ProgressDrawTarget::stderr());
            // The template is constant; a bar without it still works.
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos:>3}/{len} {elapsed:>4} {wide_msg}") {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar
        });
        Telling { bar }
    }

    /// Run a job of `ranks` that measures the cases called `names`, and tell which it is at. Cases before it: `done`.
    pub(super) fn watch<T>(
        &self,
        bare: &Bare,
        ranks: usize,
        done: usize,
        names: &[String],
        job: impl FnOnce() -> T,
    ) -> T {
        let Some(bar) = &self.bar else {
            eprintln!("{ranks} ranks: {} cases", names.len());
            return job();
        };
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let watcher = scope.spawn(|| {
                while !over.load(Acquire) {
                    thread::park_timeout(Progress::INTERVAL);
                    let at = bare.word(lines::PROGRESS).load(Acquire) as usize;
                    bar.set_position((done + at) as u64);
                    if let Some(name) = names.get(at) {
                        bar.set_message(format!("{ranks} ranks, {name}"));
                    }
                }
            });
            let out = job();
            over.store(true, core::sync::atomic::Ordering::Release);
            watcher.thread().unpark();
            out
        })
    }

    /// All is over: leave no bar behind.
    pub(super) fn end(&self) {
        if let Some(bar) = &self.bar {
            bar.finish_and_clear();
        }
    }
}
