//! Progress on standard error: a bar on a terminal, one plain line per stage elsewhere.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use rdma_fabric::Time;
use std::{
    io::{IsTerminal, Write as _},
    time::Duration,
};

/// Reports the progress of a reproduction.
#[derive(Debug)]
pub struct Progress {
    how: How,
    stages: usize,
    done: usize,
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
        Progress { how: How::Silent, stages: 0, done: 0 }
    }

    /// Returns a bar if standard error is a terminal, plain lines otherwise.
    pub fn stderr() -> Self {
        let how = if std::io::stderr().is_terminal() {
            let bar = ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::stderr());
            // The template is constant; a bar without it still works.
            if let Ok(style) = ProgressStyle::with_template("{bar:24} {pos:>2}/{len} {elapsed:>4} {wide_msg}") {
                bar.set_style(style.progress_chars("━╸─"));
            }
            bar.enable_steady_tick(Duration::from_millis(200));
            How::Bar(bar)
        } else {
            How::Lines
        };
        Progress { how, stages: 0, done: 0 }
    }

    /// Announces at least `jobs` more jobs. A caller that runs several plans first announces their
    /// total number of jobs.
    pub fn expect(&mut self, jobs: usize) {
        self.stages = self.stages.max(self.done + jobs);
        if let How::Bar(bar) = &self.how {
            bar.set_length(self.stages as u64);
        }
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
                let _ = writeln!(std::io::stderr(), "[{}/{}] {label}", self.done + 1, self.stages);
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

    /// Completes the jobs of a plan. After the last plan, the bar is removed.
    pub(crate) fn end(&mut self) {
        if let How::Bar(bar) = &self.how
            && self.done >= self.stages
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
