//! The processes of a host's ranks.

use super::{super::NODE_VARIABLE, end::RankEnd, frames::Report, home::Home, libfabric, plan::AGENT, relay::Relay};
use bootstrap::{CLUSTER, Cluster, Secret, SecretAt, ThisProgram};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    env,
    ffi::OsString,
    io::{self, Write},
    net::SocketAddr,
    ops::Range,
    process::{Child, ChildStdin, Stdio},
    sync::Arc,
};
use tofu2_sim::JobError;

/// The parameters of ranks.
#[derive(Debug)]
pub(super) struct Start<'a> {
    /// Number of ranks of the whole job.
    pub(super) ranks: usize,
    pub(super) coordinator: SocketAddr,
    pub(super) secret: &'a Secret,
    /// Number of ranks that count as one node; `None` if all ranks of a machine do.
    pub(super) per_node: Option<u32>,
    /// The libfabric provider that they use, if that is known.
    pub(super) provider: Option<&'a str>,
    /// The variable that specifies which records to write, and where.
    pub(super) records: Option<(&'static str, OsString)>,
    /// Further variables for them.
    pub(super) env: &'a [(String, OsString)],
}

struct RankProcess {
    rank: u32,
    child: Child,
    has_ended: bool,
    relays: Vec<Relay>,
}

/// The processes of some ranks. Those that still run are killed when this is dropped.
pub(super) struct RankProcesses {
    all: Vec<RankProcess>,
    /// Standard input of rank 0.
    input: Option<ChildStdin>,
}

/// For each rank: what passes on its standard error and, to a launcher of several hosts, its output.
const RELAYS: u64 = 2;
/// For each rank: its standard streams.
const STREAMS: u64 = 3;

/// Checks that this machine has room for `ranks` ranks and for the launcher's own resources for them.
///
/// # Errors
/// [`JobError::TooManyRanks`].
pub(super) fn check_room(ranks: usize) -> Result<(), JobError> {
    tofu2_sim::shm::part::check_room(ranks, RELAYS, STREAMS)
}

impl RankProcesses {
    /// Starts this program again as each of these ranks. Their output is sent to `home`, or else to
    /// this process's standard output and error.
    ///
    /// # Errors
    /// The first rank that could not be started, and the cause; no process is left behind.
    pub(super) fn start(
        share: Range<u32>,
        how: &Start<'_>,
        home: Option<&Arc<Home>>,
    ) -> Result<Self, (u32, io::Error)> {
        let mut started = RankProcesses { all: Vec::new(), input: None };
        let program = ThisProgram::find().map_err(|cause| (share.start, cause))?;
        for rank in share {
            started.add(rank, &program, how, home).map_err(|cause| (rank, cause))?;
        }
        Ok(started)
    }

    fn add(&mut self, rank: u32, program: &ThisProgram, how: &Start<'_>, home: Option<&Arc<Home>>) -> io::Result<()> {
        let Start { ranks, coordinator, .. } = *how;
        let told = Cluster { rank, ranks, coordinator, secret: SecretAt::Stdin };
        let mut command = program.command();
        command.args(env::args_os().skip(1)).env_remove(AGENT).env(CLUSTER, told.to_string());
        libfabric::prepare(&mut command, how.provider, ranks);
        command.envs(how.env.iter().map(|(name, value)| (name, value)));
        if let Some((name, value)) = &how.records {
            command.env(name, value);
        }
        if let Some(per_node) = how.per_node {
            command.env(NODE_VARIABLE, format!("{coordinator} {}", rank / per_node));
        }
        if home.is_some() {
            command.stdout(Stdio::piped());
        }
        let child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn()?;
        self.all.push(RankProcess { rank, child, has_ended: false, relays: Vec::new() });
        let Some(RankProcess { child, relays, .. }) = self.all.last_mut() else { return Ok(()) };
        if let Some(mut stdin) = child.stdin.take() {
            match writeln!(stdin, "{}", how.secret.to_hex()) {
                // A rank that has already ended was started: its exit code is more informative than
                // this error.
                Err(error) if error.kind() != io::ErrorKind::BrokenPipe => return Err(error),
                _ => {}
            }
            if rank == 0 {
                self.input = Some(stdin);
            }
        }
        if let Some(stderr) = child.stderr.take() {
            let to = home.cloned();
            let prefix = format!("[{rank}] ");
            relays.push(Relay::lines(stderr, prefix, move |line| match &to {
                Some(home) => home.send(Report::Err(line)),
                None => _ = io::stderr().lock().write_all(&line),
            })?);
        }
        if let (Some(stdout), Some(home)) = (child.stdout.take(), home.cloned()) {
            relays.push(Relay::bytes(stdout, move |piece| home.send(Report::Out(piece)))?);
        }
        Ok(())
    }

    /// Takes the standard input of rank 0, if that rank is here.
    pub(super) fn take_input(&mut self) -> Option<ChildStdin> {
        self.input.take()
    }

    /// Returns the ranks that have ended since the last call.
    pub(super) fn look(&mut self) -> Vec<(u32, RankEnd)> {
        let mut ended = Vec::new();
        for process in self.all.iter_mut().filter(|process| !process.has_ended) {
            let end = match process.child.try_wait() {
                Ok(None) => continue,
                Ok(Some(status)) => status.into(),
                Err(error) => RankEnd::Unheard(format!("nobody knows how it ended: {error}")),
            };
            process.has_ended = true;
            ended.push((process.rank, end));
        }
        ended
    }

    /// Returns whether all processes have ended.
    pub(super) fn have_ended(&self) -> bool {
        self.all.iter().all(|process| process.has_ended)
    }

    /// Sends a signal to the running processes.
    pub(super) fn send(&mut self, signal: Signal) {
        for process in self.all.iter().filter(|process| !process.has_ended) {
            // The process is not reaped yet, so the process id is its own.
            let _ = kill_process(Pid::from_child(&process.child), signal);
        }
    }

    /// Passes on the remaining output of the ranks, which have ended.
    pub(super) fn finish(&mut self) {
        self.all.iter_mut().flat_map(|process| process.relays.drain(..)).for_each(Relay::finish);
    }
}

impl Drop for RankProcesses {
    fn drop(&mut self) {
        for process in self.all.iter_mut().filter(|process| !process.has_ended) {
            let _ = process.child.kill();
            let _ = process.child.wait();
        }
    }
}
