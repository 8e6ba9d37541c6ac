//! Ranks as processes: the test binary, executed again for the same test, finds that it is a rank.
//!
//! The process that launches a job passes the job's number and a directory in environment
//! variables. A rank goes through the same test until it reaches that job, runs as its rank there,
//! writes its outcome into the directory, and exits.
//!
//! Two more variables are for the [kill campaign](crate::conformance::kill): where to create these
//! directories, and a rank that is to kill itself.

use fabric_conformance::{CaseProgram, Harness, JobReport, Loss, RankOutcome};
use std::{
    cell::Cell,
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use tofu2_sim::{
    JobError,
    shm::{self, JOB_VARIABLE, Launcher},
};

/// `<number of the job in its test> <directory>`, for ranks.
pub(super) const ASKED: &str = "CONFORMANCE_JOB";
/// Where the launching process creates directories, which are then kept.
pub(crate) const DIRECTORY: &str = "CONFORMANCE_DIRECTORY";
/// `<job> <rank> <microseconds>`: the time at which that rank of that job kills itself, counted
/// from the moment at which it starts to search for its job.
pub(crate) const KILL: &str = "CONFORMANCE_KILL";
/// The prefix of the file, in a job's directory, with the microseconds that a rank took.
pub(crate) const TOOK: &str = "took-";
/// The prefix of the file, in a job's directory, with a rank's outcome.
pub(crate) const OUTCOME: &str = "rank-";

/// The time in which ranks have to notice the loss of one of them, ten times the expected time.
const GRACE: Duration = Duration::from_secs(5);

/// Ranks as processes over shared memory, all on one node or `ON_NODE` on each.
pub(crate) struct Processes<const ON_NODE: usize = 0>;

thread_local! {
    /// The number of jobs that this test has requested. Each test has its own thread.
    static JOBS: Cell<u64> = const { Cell::new(0) };
}

impl<const ON_NODE: usize> Harness for Processes<ON_NODE> {
    const LOSSES: &'static [Loss] = &[Loss::Fail, Loss::Panic, Loss::Kill];

    fn run(program: &CaseProgram, ranks: usize, test: &str, _: u64) -> Option<JobReport> {
        let on_node = if ON_NODE == 0 { ranks } else { ON_NODE };
        let launch = |binary: PathBuf, args: [&str; 6], asked: String| {
            let launcher = Launcher::new(ranks).ranks_per_node(on_node);
            // The ranks' own test reports do not matter; their outcomes are in the directory.
            let launcher = launcher.grace(GRACE).discard_stdout(true).command(binary, args);
            match launcher.env(ASKED, asked).run() {
                Ok(0) => Ok(()),
                Ok(code) => Err(format!("exit code {code}")),
                Err(error) => Err(error.to_string()),
            }
        };
        let rank = |program: &CaseProgram| {
            let endpoint = shm::from_env()?.expect("the variable is there");
            shm::run_rank(endpoint, program)
        };
        run(ranks, test, program, launch, rank)
    }
}

/// Runs a case once: `launch` executes this binary with arguments and a value of [`ASKED`] as all ranks. In a process
/// that was started as one of its ranks, calls `rank` and does not return.
pub(super) fn run(
    ranks: usize,
    test: &str,
    program: &CaseProgram,
    launch: impl FnOnce(PathBuf, [&str; 6], String) -> Result<(), String>,
    rank: impl FnOnce(&CaseProgram) -> Result<String, JobError>,
) -> Option<JobReport> {
    let number = JOBS.replace(JOBS.get() + 1);
    if env::var_os(JOB_VARIABLE).is_none() {
        return Some(launched(ranks, test, number, launch));
    }
    let asked = env::var(ASKED).unwrap_or_else(|error| panic!("{ASKED}: {error}"));
    let (wanted, directory) = asked.split_once(' ').unwrap_or_else(|| panic!("{ASKED} is {asked:?}"));
    if wanted != number.to_string() {
        // Another job of the test.
        return None;
    }
    be_a_rank(Path::new(directory), number, || rank(program))
}

fn launched(
    ranks: usize,
    test: &str,
    number: u64,
    launch: impl FnOnce(PathBuf, [&str; 6], String) -> Result<(), String>,
) -> JobReport {
    let (directory, keep) = directory_for(test, number);
    fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let binary = env::current_exe().expect("the running test has a path");
    let args = ["--exact", test, "--quiet", "--nocapture", "--include-ignored", "--test-threads=1"];
    let verdict = launch(binary, args, format!("{number} {}", directory.display()));
    let outcomes = (0..ranks).map(|rank| outcome_in(&directory.join(format!("{OUTCOME}{rank}")))).collect();
    if !keep {
        let _ = fs::remove_dir_all(&directory);
    }
    JobReport { outcomes, verdict }
}

/// Returns the name of a new directory, and whether to keep it.
fn directory_for(test: &str, number: u64) -> (PathBuf, bool) {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    match env::var_os(DIRECTORY) {
        Some(parent) => (Path::new(&parent).join(number.to_string()), true),
        None => {
            let unique = format!("{}-{}", std::process::id(), UNIQUE.fetch_add(1, Relaxed));
            let name = format!("conformance-{unique}-{}-{number}", test.replace("::", "-"));
            (Path::new(env!("CARGO_TARGET_TMPDIR")).join(name), false)
        }
    }
}

/// Reads the outcome that a rank wrote; `Silent` if there is none. The first line names its kind.
pub(crate) fn outcome_in(file: &Path) -> RankOutcome {
    let text = fs::read_to_string(file).unwrap_or_default();
    match text.split_once('\n') {
        Some(("ended", out)) => RankOutcome::Ended(out.to_owned()),
        Some(("failed", error)) => RankOutcome::Failed(error.to_owned()),
        Some(("panicked", _)) => RankOutcome::Panicked,
        _ => RankOutcome::Silent,
    }
}

/// Runs a rank. Does not return: the rest of the test is for other processes.
fn be_a_rank(directory: &Path, number: u64, run: impl FnOnce() -> Result<String, JobError>) -> ! {
    let rank = rank_told();
    let write = |name: &str, text: String| {
        // Written completely or not at all: the file is renamed into place.
        let (part, whole) = (directory.join(format!("part-{name}{rank}")), directory.join(format!("{name}{rank}")));
        let written = fs::write(&part, text).and_then(|()| fs::rename(&part, &whole));
        written.unwrap_or_else(|error| panic!("{}: {error}", whole.display()));
    };
    let begun = Instant::now();
    if let Ok(kill) = env::var(KILL) {
        let numbers: Vec<u64> = kill.split(' ').map_while(|word| word.parse().ok()).collect();
        let [job, victim, micros] = numbers[..] else { panic!("{KILL} is {kill:?}") };
        if (job, victim) == (number, rank) {
            thread::spawn(move || {
                thread::sleep(Duration::from_micros(micros));
                let _ = Loss::Kill.happen::<()>();
            });
        }
    }
    let (text, code) = match run() {
        Ok(out) => (format!("ended\n{out}"), 0),
        Err(JobError::RankFailed { error, .. }) => (format!("failed\n{error}"), 1),
        Err(JobError::RankPanicked { .. }) => ("panicked\n".to_owned(), 1),
        Err(error) => (format!("failed\n{error}"), 1),
    };
    write(TOOK, begun.elapsed().as_micros().to_string());
    write(OUTCOME, text);
    std::process::exit(code);
}

/// Returns the rank that this process is about to become.
fn rank_told() -> u64 {
    let told = env::var(JOB_VARIABLE).unwrap_or_default();
    let rank = told.split(' ').find_map(|word| word.strip_prefix("rank=")?.parse().ok());
    rank.unwrap_or_else(|| panic!("{JOB_VARIABLE} is {told:?}"))
}
