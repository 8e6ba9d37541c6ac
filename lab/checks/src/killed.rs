//! Jobs of processes that may be killed: a test binary that is executed again for each rank.
//!
//! Tests launch jobs ([`launch`]). The test [`IS_A_RANK`] is a rank of such a job
//! ([`Asked::of_this_process`]); without a job it does nothing.

use fabric_conformance::watchdog::watch_test;
use rdma_fabric::{Fabric, Program, Rank};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process,
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::Duration,
};
use tofu2_sim::{
    JobError,
    shm::{self, JOB_VARIABLE, Launcher},
};

/// The test that is executed for each rank.
pub const IS_A_RANK: &str = "job::is_a_rank";
/// The environment variable that passes `<directory> <words …>` to the ranks.
const ASKED: &str = "KILLED_JOB";
/// The file for notes of ranks, in addition to their outcomes.
const NOTES: &str = "notes";

/// The outcome of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It ended successfully, and returned this.
    Ended(String),
    /// It ended with an error or panic.
    Failed(String),
    /// It was killed, by itself or, if it hung, by the launcher.
    Silent,
}

/// The outcome of a job.
#[derive(Debug)]
pub struct Report {
    /// By rank.
    pub outcomes: Vec<Outcome>,
    /// The lines that ranks have recorded ([`Asked::play`]).
    pub notes: Vec<String>,
}

/// Runs a job of `ranks` ranks with the request `asked`, words with a space between them; `with`
/// completes the launcher. Ranks write to a directory in `temporary`, which is removed afterwards.
///
/// # Panics
/// If the job can't be run.
#[track_caller]
pub fn launch(ranks: usize, temporary: &str, asked: &str, with: impl FnOnce(Launcher) -> Launcher) -> Report {
    watch_test();
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let unique = format!("killed-{}-{}", process::id(), UNIQUE.fetch_add(1, Relaxed));
    let directory = Path::new(temporary).join(unique);
    fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let binary = env::current_exe().expect("the running test has a path");
    let args = ["--exact", IS_A_RANK, "--quiet", "--nocapture", "--test-threads=1"];
    let launcher = with(Launcher::new(ranks).segment_bytes(1 << 20).discard_stdout(true));
    let launcher = launcher.command(binary, args).env(ASKED, format!("{} {asked}", directory.display()));
    if let Err(error) = launcher.run() {
        panic!("{asked}: {error}");
    }
    let read = |name: &str| fs::read_to_string(directory.join(name)).unwrap_or_default();
    let outcome = |rank: usize| match read(&rank.to_string()) {
        text if text.starts_with("ended ") => Outcome::Ended(text[6..].to_owned()),
        text if text.is_empty() => Outcome::Silent,
        text => Outcome::Failed(text),
    };
    let outcomes = (0..ranks).map(outcome).collect();
    let notes = read(NOTES).lines().map(str::to_owned).collect();
    let _ = fs::remove_dir_all(&directory);
    Report { outcomes, notes }
}

/// The request to this process as a rank of a job that [`launch`] started.
#[derive(Debug)]
pub struct Asked {
    fabric: Fabric,
    directory: PathBuf,
    words: Vec<String>,
}

impl Asked {
    /// Returns it, or `None` in a process that is not a rank.
    ///
    /// # Panics
    /// If the process belongs to another job.
    pub fn of_this_process() -> Option<Self> {
        env::var_os(JOB_VARIABLE)?;
        let asked = env::var(ASKED).unwrap_or_else(|error| panic!("{ASKED}: {error}"));
        let mut words = asked.split(' ').map(str::to_owned);
        let directory = PathBuf::from(words.next().expect("a directory"));
        let fabric = shm::from_env().expect("a rank").expect("the variable is there");
        Some(Asked { fabric, directory, words: words.collect() })
    }

    /// Returns the rank that this process is.
    pub fn rank(&self) -> Rank {
        self.fabric.rank()
    }

    /// Returns the words of the request.
    pub fn words(&self) -> &[String] {
        &self.words
    }

    /// Runs the rank, records the line that `notes` then returns, writes the outcome, and exits.
    ///
    /// # Panics
    /// If nothing can be written.
    pub fn play<P: Program<Out = String>>(self, program: &P, notes: impl FnOnce() -> Option<String>) -> ! {
        let Asked { fabric, directory, .. } = self;
        let rank = fabric.rank().number().to_string();
        let write = |name: &str, text: String| {
            // The file is moved into place, so that it is whole or absent.
            let (half, whole) = (directory.join(format!("half-{name}")), directory.join(name));
            fs::write(&half, text).and_then(|()| fs::rename(&half, &whole)).expect("to write what became of a rank");
        };
        let ended = shm::run_rank(fabric, program);
        if let Some(notes) = notes() {
            write(NOTES, notes);
        }
        let (text, code) = match ended {
            Ok(out) => (format!("ended {out}"), 0),
            Err(JobError::RankFailed { error, .. }) => (format!("failed: {error}"), 1),
            Err(error) => (error.to_string(), 1),
        };
        write(&rank, text);
        process::exit(code);
    }
}

/// Ends this process as `kill -9` does.
pub fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        thread::park();
    }
}

/// Ends this process as [`die`] does after `delay`, in the middle of its current work.
pub fn die_after(delay: Duration) {
    thread::spawn(move || {
        thread::sleep(delay);
        die();
    });
}
