//! Jobs whose ranks are processes: this test binary, executed again for [`is_a_rank`].

use crate::{delays, dying::Points, hammered, locked, nodes, scenes};
use rdma_fabric::{Fabric, ProgramResult};
use std::{
    env, fs,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering::Relaxed},
    },
    time::Duration,
};
use tofu2_sim::{
    JobError,
    shm::{self, JOB_VARIABLE, Launcher},
};

/// The variable with `<directory> <part> <words …>` for ranks.
const ASKED: &str = "KILLED_JOB";
/// The variable that names a file for the table.
const TABLE: &str = "KILLED_TABLE";
/// The time that the other ranks may take to end after one has died: ten times what they should
/// take.
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

/// What became of a job's ranks, and the points passed by the rank that counted them.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) outcomes: Vec<Outcome>,
    pub(crate) labels: Vec<String>,
}

/// Runs a job of `ranks` ranks that does what `asked` says.
pub(crate) fn launch(ranks: usize, asked: &str) -> Report {
    launch_on(ranks, ranks, asked)
}

/// Runs a job as [`launch`] does, as if each node had `per_node` ranks.
pub(crate) fn launch_on(ranks: usize, per_node: usize, asked: &str) -> Report {
    static UNIQUE: AtomicU64 = AtomicU64::new(0);
    let unique = format!("killed-{}-{}", std::process::id(), UNIQUE.fetch_add(1, Relaxed));
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR")).join(unique);
    fs::create_dir_all(&directory).unwrap_or_else(|error| panic!("{}: {error}", directory.display()));
    let binary = env::current_exe().expect("the running test has a path");
    let args = ["--exact", "job::is_a_rank", "--quiet", "--nocapture", "--test-threads=1"];
    let launcher =
        Launcher::new(ranks).ranks_per_node(per_node).segment_bytes(1 << 20).grace(GRACE).discard_stdout(true);
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
    let labels = fs::read_to_string(directory.join("points")).unwrap_or_default().lines().map(str::to_owned).collect();
    let _ = fs::remove_dir_all(&directory);
    Report { outcomes, labels }
}

async fn play(fabric: Fabric, words: Vec<String>, points: Arc<Points>) -> ProgramResult<String> {
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words[..] {
        ["scene", name, ..] => scenes::play(fabric, scenes::Scene::named(name), points).await,
        ["hammer", victim, micros] => hammered::play(fabric, victim.parse()?, micros.parse()?).await,
        ["nodes", victim, held] => nodes::play(fabric, victim.parse()?, held).await,
        ["locked", program] => locked::play(fabric, program).await,
        ["delay", held] => delays::play(fabric, held).await,
        _ => Err(format!("no such part: {words:?}").into()),
    }
}

/// Returns the number that the environment variable `name` asks for.
pub(crate) fn asked_number(name: &str) -> Option<u64> {
    let text = env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is {text:?}, no number")))
}

/// Prints a table, and writes it to the file that `cargo xtask` asks for.
pub(crate) fn publish(table: &str) {
    println!("{table}");
    if let Some(file) = env::var_os(TABLE) {
        fs::write(&file, table).unwrap_or_else(|error| panic!("{TABLE}: {error}"));
    }
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
    let rank = endpoint.rank();
    let mine = words.first().is_some_and(|part| part == "scene") && rank == scenes::VICTIM;
    let fatal = words.get(2).filter(|_| mine).and_then(|point| point.parse().ok());
    let points = Arc::new(Points::new(fatal));
    let write = |name: String, text: String| {
        // The file is moved into place, so that it is whole or absent.
        let (half, whole) = (directory.join(format!("half-{name}")), directory.join(name));
        fs::write(&half, text).and_then(|()| fs::rename(&half, &whole)).expect("to write what became of a rank");
    };
    let ended = shm::run_rank(endpoint, &async |fabric| play(fabric, words.clone(), points.clone()).await);
    if mine {
        write("points".to_owned(), points.labels().join("\n"));
    }
    let (text, code) = match ended {
        Ok(out) => (format!("ended {out}"), 0),
        Err(JobError::RankFailed { error, .. }) => (format!("failed: {error}"), 1),
        Err(error) => (error.to_string(), 1),
    };
    write(rank.number().to_string(), text);
    std::process::exit(code);
}
