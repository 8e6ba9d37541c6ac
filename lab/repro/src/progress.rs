//! Progress on standard error: a bar for each plan on a terminal, one plain line per job elsewhere.

use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};
use rdma_fabric::Time;
use std::{
    io::{IsTerminal, Write as _},
    time::Duration,
};

/// The display of plans that run at the same time.
#[derive(Debug)]
pub struct Display {
    /// `None` if standard error is not a terminal.
    bars: Option<MultiProgress>,
    jobs: usize,
    /// Whether there is only one plan.
    alone: bool,
}

impl Display {
    /// Creates a display of `plans` plans with this number of jobs in all.
    pub fn stderr(plans: usize, jobs: usize) -> Self {
        let bars = || MultiProgress::with_draw_target(ProgressDrawTarget::stderr());
        Display { bars: std::io::stderr().is_terminal().then(bars), jobs, alone: plans <= 1 }
    }

    /// Returns the progress of a plan whose jobs follow `before` jobs of other plans.
    pub fn plan(&self, name: &'static str, before: usize) -> Progress {
        let bar = |bars: &MultiProgress| How::Bar(bars.add(bar(name)));
        let how = self.bars.as_ref().map_or(How::Lines, bar);
        Progress { how, before, jobs: 0, total: self.jobs, done: 0, alone: self.alone }
    }
}

fn bar(name: &'static str) -> ProgressBar {
    let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
    // The template is constant; a bar without it still works.
    if let Ok(style) = ProgressStyle::with_template("{prefix:5} {bar:24} {pos:>3}/{len:3} {elapsed:>4} {wide_msg}") {
        bar.set_style(style.progress_chars("━╸─"));
    }
    bar.set_prefix(name);
    bar
}

/// Reports the progress of a plan.
#[derive(Debug)]
pub struct Progress {
    how: How,
    /// The jobs of earlier plans.
    before: usize,
    /// The jobs of this plan.
    jobs: usize,
    /// The jobs of all plans.
    total: usize,
    done: usize,
    /// Whether no other plan runs at the same time.
    alone: bool,
}

#[derive(Debug)]
enum How {
    Silent,
    Lines,
    Bar(ProgressBar),
}

impl Progress {
    /// Returns a progress that prints nothing.
    pub fn silent() -> Self {
        Progress { how: How::Silent, before: 0, jobs: 0, total: 0, done: 0, alone: true }
    }

    /// Returns the progress of a single plan.
    pub fn stderr() -> Self {
        Display::stderr(1, 0).plan("", 0)
    }

    /// Announces `jobs` more jobs.
    pub fn expect(&mut self, jobs: usize) {
        self.jobs = self.jobs.max(self.done + jobs);
        self.total = self.total.max(self.before + self.jobs);
        if let How::Bar(bar) = &self.how {
            bar.set_length(self.jobs as u64);
            bar.enable_steady_tick(Duration::from_millis(200));
        }
    }

    /// Returns whether what the process uses is used by this plan.
    pub(crate) fn is_alone(&self) -> bool {
        self.alone
    }

    /// Begins a job. The returned function is called during the job with the number of events so
    /// far and the virtual time.
    pub fn stage(&mut self, label: &str) -> impl FnMut(u64, Time) + use<> {
        let mut live = None;
        match &self.how {
            How::Silent => {}
            How::Lines => {
                // No code depends on this output, and `eprintln!` would panic if it can't be
                // written.
                let _ = writeln!(std::io::stderr(), "[{}/{}] {label}", self.before + self.done + 1, self.total);
            }
            How::Bar(bar) => {
                bar.set_message(label.to_owned());
                live = Some((bar.clone(), label.to_owned()));
            }
        }
        move |events, at| {
            if let Some((bar, label)) = &live {
                bar.set_message(format!("{label}: {:.1} M events, virtual {at}", events as f64 * 1e-6));
            }
        }
    }

    /// Completes the job.
    pub fn stage_done(&mut self) {
        self.done += 1;
        if let How::Bar(bar) = &self.how {
            bar.inc(1);
        }
    }

    /// Completes the jobs of a plan, and removes its bar.
    pub(crate) fn end(&mut self) {
        if let How::Bar(bar) = &self.how
            && self.done >= self.jobs
        {
            bar.finish_and_clear();
        }
    }

    /// Removes the bar, though jobs may remain.
    pub fn finish(&self) {
        if let How::Bar(bar) = &self.how {
            bar.finish_and_clear();
        }
    }

    /// Prints a line unless there is a bar.
    pub fn say(&self, line: &str) {
        if let How::Lines = self.how {
            // As in `stage`.
            let _ = writeln!(std::io::stderr(), "{line}");
        }
    }

    /// Returns a function that shows the number of completed jobs and the label of the current one; `None` unless
    /// there is a bar.
    pub fn display(&self) -> Option<impl FnMut(usize, String) + Send + use<>> {
        let How::Bar(bar) = &self.how else { return None };
        let bar = bar.clone();
        Some(move |done: usize, label: String| {
            bar.set_position(done as u64);
            bar.set_message(label);
        })
    }
}
