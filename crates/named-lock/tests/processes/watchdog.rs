//! Ends this program when a case hangs, and says which.

use std::{
    io::Write,
    process,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Ten times what the slowest case takes.
const LIMIT: Duration = Duration::from_secs(120);

/// What runs, and until when it may.
static RUNNING: Mutex<Option<(String, Instant)>> = Mutex::new(None);

/// Starts to watch. The watching thread only sleeps, reads a word, and holds no lock while it sleeps,
/// so that a case may fork.
pub(crate) fn start() {
    thread::spawn(|| {
        loop {
            thread::sleep(Duration::from_millis(100));
            let running = RUNNING.lock().unwrap_or_else(PoisonError::into_inner).clone();
            if let Some((name, until)) = running
                && Instant::now() > until
            {
                let _ = writeln!(std::io::stderr(), "test {name} ... FAILED: it hangs");
                process::exit(101);
            }
        }
    });
}

/// Runs `act`, which is called `name` and has [`LIMIT`].
pub(crate) fn watched<T>(name: &str, act: impl FnOnce() -> T) -> T {
    within(name, LIMIT, act)
}

/// Runs `act`, which is called `name` and may take this long.
pub(crate) fn within<T>(name: &str, limit: Duration, act: impl FnOnce() -> T) -> T {
    let set = |running| *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = running;
    set(Some((name.to_owned(), Instant::now() + limit)));
    let out = act();
    set(None);
    out
}
