//! Our own launcher: the coordinator in this process, and a process for each rank.
//!
//! Ranks are told the secret by the first line of their standard input. If the launcher ends, its
//! coordinator does, and every rank ends a moment later.

use super::{NODE_VARIABLE, STEP, failed};
use crate::{
    Launch,
    report::{LaunchError, say},
};
use bootstrap::{CLUSTER, Cluster, Coordinator, Plan, Secret, SecretAt};
use std::{
    env,
    io::{self, BufRead, BufReader, Read, Write},
    net::SocketAddr,
    process::{Child, ChildStdin, Command, ExitStatus, Stdio},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

/// How long the other ranks may take to end after one has failed.
const GRACE: Duration = Duration::from_secs(10);
/// How often ranks are looked at.
const LOOK: Duration = Duration::from_millis(2);

/// Starts this program again as all ranks of a job, and waits for its end. Returns the exit code: 0
/// if all ended well, else that of the rank that failed first, or the one that a rank aborted with.
///
/// # Errors
/// [`LaunchError::Cluster`] if it could not be started.
pub(crate) fn start(launch: &Launch) -> Result<i32, LaunchError> {
    let secret = Secret::random().map_err(|error| failed(&error))?;
    let segment = (launch.segment_bytes as u64).to_le_bytes().to_vec();
    let plan = Plan { ranks: launch.ranks, join_within: 2 * STEP, lease: launch.lease, segment };
    let listen: SocketAddr = ([127, 0, 0, 1], 0).into();
    let coordinator = Coordinator::start(listen, secret.clone(), plan).map_err(|error| failed(&error))?;
    let mut ranks = Ranks { all: Vec::new(), failed: None };
    for rank in 0..launch.ranks {
        let child = rank_of(launch, rank, coordinator.address(), &secret)
            .map_err(|error| failed(&format_args!("rank {rank} can't be started: {error}")))?;
        ranks.all.push(child);
    }
    ranks.watch(&coordinator);
    // What ranks have told, or the coordinator has found, is there when their processes have ended.
    let outcome = coordinator.wait(Duration::from_secs(1));
    if let Some(abort) = outcome.as_ref().and_then(|outcome| outcome.abort.as_ref())
        && let Some(rank) = abort.rank
    {
        say(format_args!("error: rank {rank} ended the job: {}", abort.text));
        return Ok(if (1..=255).contains(&abort.code) { abort.code } else { 1 });
    }
    ranks.report();
    Ok(ranks.code())
}

/// Starts one rank on this machine.
fn rank_of(launch: &Launch, rank: usize, coordinator: SocketAddr, secret: &Secret) -> io::Result<RankProcess> {
    let told = Cluster { rank: rank as u32, ranks: launch.ranks, coordinator, secret: SecretAt::Stdin };
    let mut command = Command::new(env::current_exe()?);
    command.args(env::args_os().skip(1)).env(CLUSTER, told.to_string());
    if let Some(per_node) = launch.ranks_per_node {
        command.env(NODE_VARIABLE, format!("{coordinator} {}", rank / per_node as usize));
    }
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
    if let Some(mut stdin) = child.stdin.take() {
        writeln!(stdin, "{}", secret.to_hex())?;
        if rank == 0 {
            pass_on_input(stdin);
        }
    }
    let relay = child.stderr.take().map(|stderr| relay(rank, stderr));
    Ok(RankProcess { rank, child, ended: None, relay })
}

/// Gives rank 0 what comes on standard input, for as long as there are both.
fn pass_on_input(mut to: ChildStdin) {
    let _ = thread::Builder::new().name("standard input".to_owned()).spawn(move || io::copy(&mut io::stdin(), &mut to));
}

/// Writes a rank's standard error line by line, with the rank in front.
fn relay(rank: usize, from: impl Read + Send + 'static) -> JoinHandle<()> {
    thread::spawn(move || {
        let mut lines = BufReader::new(from);
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line).is_ok_and(|bytes| bytes > 0) {
            if line.last() != Some(&b'\n') {
                line.push(b'\n');
            }
            let mut out = format!("[{rank}] ").into_bytes();
            out.append(&mut line);
            let _ = io::stderr().lock().write_all(&out);
        }
    })
}

struct RankProcess {
    rank: usize,
    child: Child,
    ended: Option<ExitStatus>,
    relay: Option<JoinHandle<()>>,
}

struct Ranks {
    all: Vec<RankProcess>,
    /// The first that was seen to fail, and when.
    failed: Option<(usize, Instant)>,
}

impl Ranks {
    /// Waits until all processes have ended; some time after one has failed, kills the others.
    fn watch(&mut self, coordinator: &Coordinator) {
        while self.all.iter().any(|process| process.ended.is_none()) {
            for process in self.all.iter_mut().filter(|process| process.ended.is_none()) {
                let Ok(Some(status)) = process.child.try_wait() else { continue };
                process.ended = Some(status);
                coordinator.gone(process.rank as u32, &in_words(status));
                if !status.success() {
                    self.failed.get_or_insert((process.rank, Instant::now()));
                }
            }
            if self.failed.is_some_and(|(_, at)| at.elapsed() > GRACE) {
                let running = self.all.iter_mut().filter(|process| process.ended.is_none());
                running.for_each(|process| _ = process.child.kill());
            }
            thread::sleep(LOOK);
        }
        for relay in self.all.iter_mut().filter_map(|process| process.relay.take()) {
            let _ = relay.join();
        }
    }

    /// Says how each rank ended, if not all ended well.
    fn report(&self) {
        let Some((first, _)) = self.failed else { return };
        for process in &self.all {
            let way = process.ended.map_or_else(String::new, in_words);
            let mark = if process.rank == first { " (the first)" } else { "" };
            say(format_args!("rank {}: {way}{mark}", process.rank));
        }
    }

    fn code(&self) -> i32 {
        let of = |rank: usize| self.all.get(rank).and_then(|process| process.ended);
        self.failed.map_or(0, |(rank, _)| of(rank).map_or(1, code_of))
    }
}

impl Drop for Ranks {
    fn drop(&mut self) {
        for process in self.all.iter_mut().filter(|process| process.ended.is_none()) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}

fn code_of(status: ExitStatus) -> i32 {
    use std::os::unix::process::ExitStatusExt;
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

fn in_words(status: ExitStatus) -> String {
    if status.success() { "ended well".to_owned() } else { status.to_string() }
}
