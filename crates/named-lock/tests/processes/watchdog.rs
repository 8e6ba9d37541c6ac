//! Ends this program when a case hangs, and reports its name.

use std::{
    io::Write,
    process,
    sync::{Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// Ten times the duration of the slowest case.
const LIMIT: Duration = Duration::from_secs(120);

/// The running case, and its deadline.
static RUNNING: Mutex<Option<(String, Instant)>> = Mutex::new(None);

/// Starts the watchdog. Its thread only sleeps and reads a word, and holds no lock while it sleeps,
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

/// Runs `act` under `name`, with the limit [`LIMIT`].
pub(crate) fn watched<T>(name: &str, act: impl FnOnce() -> T) -> T {
    within(name, LIMIT, act)
}

/// Runs `act` under `name`, with the given limit.
pub(crate) fn within<T>(name: &str, limit: Duration, act: impl FnOnce() -> T) -> T {
    let set = |running| *RUNNING.lock().unwrap_or_else(PoisonError::into_inner) = running;
    set(Some((name.to_owned(), Instant::now() + limit)));
    let out = act();
    set(None);
    out
}
