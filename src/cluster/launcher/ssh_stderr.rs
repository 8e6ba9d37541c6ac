//! The standard error of an ssh process: the reason if it fails, otherwise lines to be shown.

use super::relay::Relay;
use crate::report::emit;
use std::{
    io,
    process::ChildStderr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// Maximum number of bytes that are kept.
const KEPT: usize = 4 << 10;

#[derive(Debug, Default)]
struct State {
    text: String,
    /// Whether lines are shown as they arrive.
    shown: bool,
}

/// The collected standard error of an ssh process.
#[derive(Debug)]
pub(super) struct SshStderr {
    host: String,
    state: Arc<Mutex<State>>,
    relay: Option<Relay>,
}

impl SshStderr {
    /// Starts to collect the output.
    ///
    /// # Errors
    /// The thread can't be started.
    pub(super) fn of(host: &str, stderr: Option<ChildStderr>) -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let (gathering, name) = (state.clone(), host.to_owned());
        let relay = stderr.map(|stderr| {
            Relay::lines(stderr, String::new(), move |line| {
                let line = String::from_utf8_lossy(&line);
                let mut state = lock(&gathering);
                if state.shown {
                    emit(format_args!("[{name}] {}", line.trim_end()));
                } else if state.text.len() + line.len() <= KEPT {
                    state.text.push_str(&line);
                }
            })
        });
        Ok(SshStderr { host: host.to_owned(), state, relay: relay.transpose()? })
    }

    /// Shows the collected lines, and later ones as they arrive: the host was reached.
    pub(super) fn begun(&self) {
        let mut state = lock(&self.state);
        state.shown = true;
        std::mem::take(&mut state.text)
            .lines()
            .for_each(|line| emit(format_args!("[{}] {}", self.host, line.trim_end())));
    }

    /// Waits for the remaining output.
    pub(super) fn finish(&mut self) {
        self.relay.take().into_iter().for_each(Relay::finish);
    }

    /// Returns the collected output that was not shown, in one line.
    pub(super) fn text(&self) -> String {
        let state = lock(&self.state);
        let lines: Vec<&str> = state.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
