//! What an ssh process says on its standard error: the reason if it fails, else lines to be shown.

use super::relay::Relay;
use crate::report::say;
use std::{
    io,
    process::ChildStderr,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

/// The most bytes that are kept.
const KEPT: usize = 4 << 10;

#[derive(Debug, Default)]
struct State {
    text: String,
    /// Whether lines are shown as they come.
    shown: bool,
}

/// What an ssh process has said.
#[derive(Debug)]
pub(super) struct Said {
    host: String,
    state: Arc<Mutex<State>>,
    relay: Option<Relay>,
}

impl Said {
    /// Begins to keep what comes.
    ///
    /// # Errors
    /// There is no thread for it.
    pub(super) fn of(host: &str, stderr: Option<ChildStderr>) -> io::Result<Self> {
        let state: Arc<Mutex<State>> = Arc::default();
        let (gathering, name) = (state.clone(), host.to_owned());
        let relay = stderr.map(|stderr| {
            Relay::lines(stderr, String::new(), move |line| {
                let line = String::from_utf8_lossy(&line);
                let mut state = lock(&gathering);
                if state.shown {
                    say(format_args!("[{name}] {}", line.trim_end()));
                } else if state.text.len() + line.len() <= KEPT {
                    state.text.push_str(&line);
                }
            })
        });
        Ok(Said { host: host.to_owned(), state, relay: relay.transpose()? })
    }

    /// Shows what was said, and what will be: the host was reached.
    pub(super) fn begun(&self) {
        let mut state = lock(&self.state);
        state.shown = true;
        std::mem::take(&mut state.text)
            .lines()
            .for_each(|line| say(format_args!("[{}] {}", self.host, line.trim_end())));
    }

    /// Waits until the rest was heard.
    pub(super) fn finish(&mut self) {
        self.relay.take().into_iter().for_each(Relay::finish);
    }

    /// Returns what was said and not shown, in one line.
    pub(super) fn text(&self) -> String {
        let state = lock(&self.state);
        let lines: Vec<&str> = state.text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
        if lines.is_empty() { "it said nothing".to_owned() } else { lines.join("; ") }
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}
