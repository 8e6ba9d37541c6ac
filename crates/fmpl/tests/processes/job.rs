//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::parts;
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU64, Ordering::Relaxed},
    time::Duration,
};
use tofu2_sim::{
    JobError,
    shm::{self, JOB_VARIABLE, Launcher},
};

/// The variable with `<directory> <words …>` for ranks.
const ASKED: &str = "KILLED_JOB";
/// The time that the other ranks may take to end after one has died.
const GRACE: Duration = Duration::from_secs(10);

/// What became of a rank.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It ended successfully, and returned this.
    Ended(String),
    /// It ended with an error or panic.
    Failed(String),
    /// It was killed, by itself or, if it hung, by the launcher.
    Silent,
}

/// Runs a job of `ranks` ranks that does what `asked` says.
pub(crate) fn launch(ranks: usize, asked: &str) -> Vec<Outcome> {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let unique = format!("killed-{}-{}", std::process::id(), UNIQUE.fetch_add(1, Relaxed));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
    fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let binary = env::current_exe().expect("the running test has a path");
    let args = ["--exact", "job::is_a_rank", "--quiet", "--nocapture", "--test-threads=1"];
    let launcher = Launcher::new(ranks).segment_bytes(1 << 20).grace(GRACE).discard_stdout(true);
    let launcher = launcher.shared_address_space(true);
    let launcher = launcher.command(binary, args).env(ASKED, format!("{} {asked}", directory.display()));
    if let Err(error) = launcher.run() {
        panic!("{asked}: {error}");
    }
    let outcome = |rank: usize| match fs::read_to_string(directory.join(rank.to_string())).unwrap_or_default() {
        text if text.starts_with("ended ") => Outcome::Ended(text[6..].to_owned()),
        text if text.is_empty() => Outcome::Silent,
        text => Outcome::Failed(text),
    };
    let outcomes = (0..ranks).map(outcome).collect();
    let _ = fs::remove_dir_all(&directory);
    outcomes
}

/// Runs one rank of a job that [`launch`] started; does nothing without a job.
#[test]
fn is_a_rank() {
    if env::var_os(JOB_VARIABLE).is_none() {
        return;
    }
    let asked = env::var(ASKED).unwrap_or_else(|error| panic!("{ASKED}: {error}"));
    let mut words = asked.split(' ').map(str::to_owned);
    let directory = PathBuf::from(words.next().expect("a directory"));
    let words: Vec<String> = words.collect();
    let endpoint = tofu2_sim::shm::from_env().expect("a rank").expect("the variable is there");
    let rank = endpoint.rank().number().to_string();
    let ended = shm::run_rank(endpoint, &async |fabric| parts::play(fabric, &words).await);
    let (text, code) = match ended {
        Ok(out) => (format!("ended {out}"), 0),
        Err(JobError::RankFailed { error, .. }) => (format!("failed: {error}"), 1),
        Err(error) => (error.to_string(), 1),
    };
    // The file is moved into place, so that it is whole or absent.
    let (half, whole) = (directory.join(format!("half-{rank}")), directory.join(rank));
    fs::write(&half, text).and_then(|()| fs::rename(&half, &whole)).expect("to write what became of a rank");
    std::process::exit(code);
}
