//! A watchdog for tests that run jobs: it names a test that does not end, and aborts its process.
//!
//! Providers report deadlocks of ranks that wait. A rank that polls, or a process that is never
//! reaped, hangs its test without a report, and a test harness does not end a hanging test. So a
//! function that starts jobs for tests calls [`watch_test`] first:
//!
//! ```
//! use tofu2_shm::Threads;
//!
//! #[track_caller]
//! fn threads(ranks: usize) -> Threads {
//!     fabric_conformance::watchdog::watch_test();
//!     Threads::new(ranks)
//! }
//! # threads(2).run(&async |_| Ok(())).unwrap();
//! ```
//!
//! If the test has not ended [`LIMIT`] after it started its last job, the watchdog writes the name
//! of the test and the place of that start to standard error, and aborts the process. A program
//! that runs several tests on one thread watches each of them by its name ([`watch`]).

use std::{
    cell::RefCell,
    env, fmt,
    io::{Write, stderr},
    panic::Location,
    process,
    sync::{Condvar, Mutex, MutexGuard, PoisonError},
    thread,
    time::{Duration, Instant},
};

/// The time that a watched test may take: more than ten times the duration of the slowest one.
pub const LIMIT: Duration = Duration::from_secs(180);
/// The environment variable with another limit in seconds, for instrumented builds.
pub const LIMIT_VARIABLE: &str = "TEST_WATCHDOG_SECONDS";

/// A test in progress.
struct Entry {
    number: u64,
    name: String,
    deadline: Instant,
}

/// The tests in progress, in order of their deadlines.
struct Tests {
    limit: Option<Duration>,
    started: u64,
    in_progress: Vec<Entry>,
}

static TESTS: Mutex<Tests> = Mutex::new(Tests { limit: None, started: 0, in_progress: Vec::new() });
/// Notified when a test is watched.
static ANOTHER: Condvar = Condvar::new();

thread_local! {
    static OF_THIS_THREAD: RefCell<Option<Watched>> = const { RefCell::new(None) };
}

fn tests() -> MutexGuard<'static, Tests> {
    TESTS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Watches the calling thread until it ends; each call restarts the watch. A test harness runs each
/// test on a thread with the test's name.
///
/// # Panics
/// As [`watch`].
#[track_caller]
pub fn watch_test() {
    let thread = thread::current();
    let watched = watch(format!("{} (started at {})", thread.name().unwrap_or("without a name"), Location::caller()));
    OF_THIS_THREAD.set(Some(watched));
}

/// Watches a test until the returned value is dropped.
///
/// # Panics
/// If [`LIMIT_VARIABLE`] is not a number of seconds, or if the watchdog's thread cannot be started.
pub fn watch(name: impl Into<String>) -> Watched {
    let mut tests = tests();
    let first = tests.limit.is_none();
    let limit = *tests.limit.get_or_insert_with(limit);
    tests.started += 1;
    let number = tests.started;
    tests.in_progress.push(Entry { number, name: name.into(), deadline: Instant::now() + limit });
    drop(tests);
    ANOTHER.notify_one();
    // Miri reports an error if a program ends before its threads.
    if first && !cfg!(miri) {
        thread::Builder::new().name("watchdog".to_owned()).spawn(run).expect("a thread for the watchdog");
    }
    Watched(number)
}

fn limit() -> Duration {
    let Some(given) = env::var_os(LIMIT_VARIABLE) else { return LIMIT };
    let seconds = given.to_str().and_then(|given| given.parse().ok());
    Duration::from_secs(seconds.unwrap_or_else(|| panic!("{LIMIT_VARIABLE} is {given:?}, not a number of seconds")))
}

/// A test that is watched until this is dropped.
#[must_use = "the test is no longer watched once this is dropped"]
pub struct Watched(u64);

impl fmt::Debug for Watched {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Watched({})", self.0)
    }
}

impl Drop for Watched {
    fn drop(&mut self) {
        tests().in_progress.retain(|entry| entry.number != self.0);
    }
}

/// Aborts the process at the first deadline that passes.
fn run() {
    let mut tests = tests();
    loop {
        let Some(first) = tests.in_progress.first() else {
            tests = ANOTHER.wait(tests).unwrap_or_else(PoisonError::into_inner);
            continue;
        };
        let left = first.deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            expire(&tests);
        }
        tests = ANOTHER.wait_timeout(tests, left).unwrap_or_else(PoisonError::into_inner).0;
    }
}

fn expire(tests: &Tests) -> ! {
    let limit = tests.limit.unwrap_or(LIMIT);
    let mut text = String::new();
    for (at, Entry { name, .. }) in tests.in_progress.iter().enumerate() {
        text += &match at {
            0 => format!("\nwatchdog: test {name} has not ended after {limit:?}; aborting the process\n"),
            _ => format!("watchdog: in progress as well: {name}\n"),
        };
    }
    // Written directly, because a test harness captures the output of macros. If standard error is
    // closed, there is no reader.
    let _ = stderr().write_all(text.as_bytes());
    process::abort();
}
