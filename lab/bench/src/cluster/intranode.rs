//! Operations between two ranks of one node: in a job that has another node, compared with a job on
//! shared memory alone. Both run at the same time, and measure in turns.

use super::{
    Found, PROVIDERS,
    commands::{commands, on_nodes},
    row::Row,
};
use crate::foreign::lines_of::lines_of;
use crate::{goal::Goal, quantity::Unit, statistics::quantile};
use std::{
    error::Error,
    io::{BufRead, BufReader, Write},
    os::unix::net::{UnixListener, UnixStream},
    path::Path,
    process::Command,
    thread,
    time::{Duration, Instant},
};

/// Ranks of a job: two that are measured, and one that waits; in the job on two nodes, it is on the
/// other node.
const RANKS: usize = 3;
/// The time that ranks may take to start.
const STARTING: Duration = Duration::from_secs(60);

/// An operation, the number of its repetitions in a turn, and the goal.
const OPERATIONS: [(&str, &str, u32, Goal); 4] = [
    ("put", "put 8 B", 200_000, Goal::More(2.0)),
    ("fetch-add", "fetch-add 8 B", 200_000, Goal::Ratio(1.15)),
    ("notice", "notice, there and back", 2_000, Goal::Ratio(1.15)),
    ("lock", "shared lock, taken and given back", 50_000, Goal::Ratio(1.15)),
];

/// One job, with the connection over which it receives its commands.
struct Job {
    to: UnixStream,
    from: BufReader<UnixStream>,
}

impl Job {
    fn turn(&mut self, operation: &str, count: u32) -> Result<f64, Box<dyn Error>> {
        writeln!(self.to, "{operation} {count}")?;
        let mut line = String::new();
        self.from.read_line(&mut line)?;
        line.trim().parse().map_err(|_| "a job has ended before its time".into())
    }
}

pub(super) fn measure(program: &Path, quick: bool, found: &mut Found) -> Result<(), Box<dyn Error>> {
    if thread::available_parallelism()?.get() < 2 {
        found.skip("operations within a node", "there is one CPU");
        return Ok(());
    }
    let folder = tempfile::tempdir()?;
    let mut ranks = Vec::new();
    let mut jobs = Vec::new();
    for cluster in [true, false] {
        let socket = folder.path().join(if cluster { "cluster" } else { "shm" });
        let mut command = commands(program, &["here", &socket.to_string_lossy(), "--bind", "core"]);
        if cluster {
            on_nodes(&mut command, RANKS, 2, PROVIDERS[0]);
        } else {
            command.args(["--fabric", "shm", "--ranks", &RANKS.to_string()]);
        }
        let (job, running) = start(&socket, command)?;
        jobs.push(job);
        ranks.push(running);
    }
    let measured = turns(&mut jobs, if quick { 10 } else { 100 });
    // The ranks end at the end of their input.
    drop(jobs);
    for running in ranks {
        running.join().map_err(|_| "a job was not waited for")??;
    }
    for ((_, what, _, goal), [cluster, shm]) in OPERATIONS.iter().zip(measured?) {
        let (Some(cluster), Some(shm)) = (quantile(cluster, 0.1), quantile(shm, 0.1)) else { continue };
        let what = format!("within a node: {what}, beside shared memory alone");
        found.rows.push(Row::beside(what, Unit::Nanoseconds, cluster, shm, *goal));
    }
    Ok(())
}

type Running = thread::JoinHandle<Result<(), String>>;

fn start(socket: &Path, command: Command) -> Result<(Job, Running), Box<dyn Error>> {
    let listener = UnixListener::bind(socket)?;
    listener.set_nonblocking(true)?;
    let running = thread::spawn(|| lines_of(command).map(drop).map_err(|error| error.to_string()));
    let begun = Instant::now();
    loop {
        match listener.accept() {
            Ok((to, _)) => {
                to.set_nonblocking(false)?;
                let from = BufReader::new(to.try_clone()?);
                return Ok((Job { to, from }, running));
            }
            Err(_) if running.is_finished() => {
                running.join().map_err(|_| "a job was not waited for")??;
                return Err("a job has ended before its time".into());
            }
            Err(_) if begun.elapsed() < STARTING => thread::sleep(Duration::from_millis(5)),
            Err(error) => return Err(error.into()),
        }
    }
}

/// Returns the ns of each operation in each turn, of the job on two nodes and of the other one.
fn turns(jobs: &mut [Job], rounds: usize) -> Result<Vec<[Vec<f64>; 2]>, Box<dyn Error>> {
    let mut measured = vec![[Vec::new(), Vec::new()]; OPERATIONS.len()];
    for round in 0..=rounds {
        for ((operation, _, count, _), figures) in OPERATIONS.iter().zip(&mut measured) {
            for turn in 0..jobs.len() {
                let index = (round + turn) % jobs.len();
                let ns = jobs[index].turn(operation, *count)?;
                // The first round accesses memory that no rank has touched.
                if round > 0 {
                    figures[index].push(ns);
                }
            }
        }
    }
    Ok(measured)
}
