//! The reports of an agent to its launcher, which are sent by a separate thread.
//!
//! Output of ranks waits if the launcher does not read it, as it would on a terminal. Once the
//! agent is alone, unread output is discarded: its ranks must not wait for an unreachable launcher.

use super::{frames::Report, spawn::spawn};
use std::{
    collections::VecDeque,
    io::{self, Write},
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
    time::{Duration, Instant},
};

/// Maximum number of bytes of output that wait.
const LIMIT: usize = 1 << 20;
/// How often waiting threads check the time.
const LOOK: Duration = Duration::from_millis(50);

#[derive(Debug)]
struct State {
    reports: VecDeque<Report>,
    /// Number of bytes of output among the reports.
    output: usize,
    /// When the last report was taken or written.
    progress: Instant,
    /// Whether a report is being written.
    writes: bool,
    alone: bool,
    /// Whether reports are no longer read.
    closed: bool,
}

/// The reports that have not been sent yet.
#[derive(Debug)]
pub(super) struct Home {
    state: Mutex<State>,
    changed: Condvar,
    /// How long an agent that is alone waits for the next report to be read.
    patience: Duration,
}

impl Home {
    /// Starts to send reports.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn open(mut to: impl Write + Send + 'static, patience: Duration) -> io::Result<Arc<Self>> {
        let (reports, progress) = (VecDeque::new(), Instant::now());
        let state = State { reports, output: 0, progress, writes: false, alone: false, closed: false };
        let home = Arc::new(Self { state: Mutex::new(state), changed: Condvar::new(), patience });
        let writing = home.clone();
        let write = move || {
            loop {
                let report = writing.take();
                if report.write(&mut to).is_err() {
                    writing.state().closed = true;
                }
            }
        };
        spawn("reports", write)?;
        Ok(home)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn wait<'a>(&self, state: MutexGuard<'a, State>) -> MutexGuard<'a, State> {
        self.changed.wait_timeout(state, LOOK).unwrap_or_else(PoisonError::into_inner).0
    }

    /// Takes the next report to write; the previous one has been written.
    fn take(&self) -> Report {
        let mut state = self.state();
        (state.writes, state.progress) = (false, Instant::now());
        self.changed.notify_all();
        loop {
            if state.closed {
                state.reports.clear();
                state.output = 0;
            }
            if let Some(report) = state.reports.pop_front() {
                state.output -= output(&report);
                (state.writes, state.progress) = (true, Instant::now());
                self.changed.notify_all();
                return report;
            }
            state = self.wait(state);
        }
    }

    /// Sends a report. Output waits until there is room for it.
    pub(super) fn send(&self, report: Report) {
        let size = output(&report);
        let mut state = self.state();
        while size > 0 && state.output >= LIMIT && !state.closed {
            if self.is_stuck(&state) {
                return;
            }
            state = self.wait(state);
        }
        if !state.closed {
            state.output += size;
            state.reports.push_back(report);
            self.changed.notify_all();
        }
    }

    fn is_stuck(&self, state: &State) -> bool {
        state.alone && state.progress.elapsed() >= self.patience
    }

    /// Stops waiting for the launcher.
    pub(super) fn set_alone(&self) {
        self.state().alone = true;
        self.changed.notify_all();
    }

    /// Returns whether reports are no longer read.
    pub(super) fn is_closed(&self) -> bool {
        self.state().closed
    }

    /// Returns whether all reports have been written, or never will be.
    pub(super) fn is_done(&self) -> bool {
        let state = self.state();
        state.closed || (state.reports.is_empty() && !state.writes) || self.is_stuck(&state)
    }
}

fn output(report: &Report) -> usize {
    match report {
        Report::Out(bytes) | Report::Err(bytes) => bytes.len(),
        _ => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::{
        io::{BufReader, Read},
        thread,
    };

    const PATIENCE: Duration = Duration::from_millis(100);

    fn is_done(home: &Home) {
        let begun = Instant::now();
        while !home.is_done() {
            assert!(begun.elapsed() < Duration::from_secs(20), "still not done");
            thread::sleep(Duration::from_millis(1));
        }
    }

    #[test]
    fn reports_come_in_order_however_slowly_they_are_taken() {
        let (from, to) = std::io::pipe().unwrap();
        let home = Home::open(to, PATIENCE).unwrap();
        let sending = home.clone();
        thread::spawn(move || (0..64_u8).for_each(|piece| sending.send(Report::Out(vec![piece; 64 << 10]))));
        let mut from = BufReader::new(from);
        for piece in 0..64 {
            thread::sleep(Duration::from_millis(3));
            assert_eq!(Report::read(&mut from).unwrap(), Some(Report::Out(vec![piece; 64 << 10])));
        }
        is_done(&home);
    }

    #[test]
    fn a_launcher_alone_does_not_wait() {
        let (mut from, to) = std::io::pipe().unwrap();
        let home = Home::open(to, PATIENCE).unwrap();
        home.set_alone();
        for _ in 0..4 * LIMIT / 1000 {
            home.send(Report::Out(vec![7; 1000]));
        }
        home.send(Report::Done);
        is_done(&home);
        assert!(!home.is_closed());
        // Output that was not discarded arrives if it is eventually read.
        from.read_exact(&mut [0; 64 << 10]).unwrap();
    }

    #[test]
    fn a_reader_that_is_gone_is_noticed() {
        let (from, to) = std::io::pipe().unwrap();
        drop(from);
        let home = Home::open(to, PATIENCE).unwrap();
        home.send(Report::Done);
        is_done(&home);
        assert!(home.is_closed());
        (0..4).for_each(|_| home.send(Report::Out(vec![1; LIMIT])));
    }
}
