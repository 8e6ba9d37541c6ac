//! Running the coordinator in a separate process.
//!
//! Rank 0's process executes its program again, with the variable [`COORDINATOR`]. The child
//! receives two lines over its standard input: the secret, and the segment in hexadecimal. It
//! answers with one line: `listening ADDRESS`, or an error. The parent never closes its end of the
//! pipe, so the end of the pipe means the end of the parent.

use super::RendezvousError;
use crate::{Coordinator, Plan, Secret, Succession, ThisProgram, inherited::read_line, pmi::bytes_of};
use std::{
    env,
    io::{self, Read, Write, stdin},
    mem,
    net::SocketAddr,
    os::unix::process::CommandExt,
    process::{ExitCode, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// The variable that makes a process the coordinator of a job: `v1;LISTEN;RANKS;JOIN_NS;LEASE_NS`.
pub const COORDINATOR: &str = "ONESIDED_COORDINATOR";

/// The length of the longest line: a segment of 1 MiB.
const LINE_LIMIT: usize = 3 << 20;

/// The maximum time for which a coordinator whose job could not start reports the reason to
/// latecomers.
const LATECOMERS: Duration = Duration::from_secs(10);

/// Starts the coordinator's process; returns the address at which it listens.
pub(super) fn start(
    listen: SocketAddr,
    secret: &Secret,
    plan: &Plan,
    within: Duration,
) -> Result<SocketAddr, RendezvousError> {
    plan.check()?;
    let failed = |call| move |cause| RendezvousError::System { call, cause };
    let Plan { ranks, join_within, lease, segment, .. } = plan;
    let text = format!("v1;{listen};{ranks};{};{}", join_within.as_nanos(), lease.as_nanos());
    let mut command = ThisProgram::find().map_err(failed("find this program"))?.command();
    command.env(COORDINATOR, text).stdin(Stdio::piped()).stdout(Stdio::piped());
    // A terminal's interrupt is for the ranks: the coordinator's process reports how they end.
    let mut child = command.process_group(0).spawn().map_err(failed("start the coordinator"))?;
    let (Some(mut input), Some(output)) = (child.stdin.take(), child.stdout.take()) else {
        return Err(failed("start the coordinator")(io::ErrorKind::BrokenPipe.into()));
    };
    let segment: String = segment.iter().map(|byte| format!("{byte:02x}")).collect();
    let told = input.write_all(format!("{}\n{segment}\n", secret.to_hex()).as_bytes());
    let line = told.and_then(|()| read_line(&output, 4096, within));
    let address = line.as_ref().ok().and_then(|line| line.strip_prefix("listening ")?.parse().ok());
    let Some(address) = address else {
        let _ = child.kill();
        let _ = child.wait();
        let said = line.unwrap_or_else(|cause| cause.to_string());
        return Err(RendezvousError::NotServing { listen, within, said });
    };
    // It stays open for as long as this process lives.
    mem::forget(input);
    // Neither process leaves anything of the other behind, regardless of which ends first.
    let reaper = thread::Builder::new().name("coordinator's end".into()).stack_size(64 << 10);
    reaper.spawn(move || child.wait()).map_err(failed("thread"))?;
    Ok(address)
}

/// Serves as the coordinator of a job, if this process was started for that, and returns its exit
/// code, which `main` has to return immediately. Otherwise returns `None`. A program whose ranks
/// use [`rendezvous`](super::rendezvous) calls this function first in `main`.
///
/// The coordinator serves until all ranks have ended, or the job could not start and latecomers
/// have received the reason. If its parent, rank 0, ends without having left, rank 0 is lost like
/// any other rank.
pub fn serve_if_asked() -> Option<ExitCode> {
    let text = env::var(COORDINATOR).ok()?;
    match serve(&text) {
        Ok(()) => Some(ExitCode::SUCCESS),
        Err(why) => {
            let _ = writeln!(io::stdout(), "{why}");
            Some(ExitCode::FAILURE)
        }
    }
}

fn serve(text: &str) -> Result<(), String> {
    let (listen, mut plan) = read_plan(text).ok_or_else(|| format!("{COORDINATOR} is malformed: {text}"))?;
    let limit = Duration::from_secs(10);
    let line = || read_line(stdin(), LINE_LIMIT, limit).map_err(|cause| format!("standard input: {cause}"));
    let secret = Secret::from_hex(&line()?).map_err(|error| error.to_string())?;
    plan.segment = bytes_of(&line()?).ok_or("the segment is malformed")?;
    let (begun, join_within) = (Instant::now(), plan.join_within);
    let coordinator = Coordinator::start(listen, secret, plan).map_err(|error| error.to_string())?;
    let coordinator = Arc::new(coordinator);
    let parent = Arc::downgrade(&coordinator);
    let watch = move || {
        // The loop also ends with an error if the input is not a pipe of the parent.
        while stdin().read(&mut [0; 64]).is_ok_and(|count| count > 0) {}
        if let Some(coordinator) = parent.upgrade() {
            coordinator.gone(0, "its process ended");
        }
    };
    let watching = thread::Builder::new().name("watches rank 0".into()).stack_size(64 << 10).spawn(watch);
    watching.map_err(|cause| format!("thread: {cause}"))?;
    // If this line is not read, rank 0 has ended, which the thread detects.
    let _ = writeln!(io::stdout(), "listening {}", coordinator.address());
    let outcome = loop {
        if let Some(outcome) = coordinator.wait(Duration::from_secs(3600)) {
            break outcome;
        }
    };
    if outcome.refusal.is_some() {
        let left = join_within.saturating_sub(begun.elapsed());
        thread::sleep(left.min(LATECOMERS));
    }
    Ok(())
}

fn read_plan(text: &str) -> Option<(SocketAddr, Plan)> {
    let parts: Vec<&str> = text.split(';').collect();
    let ["v1", listen, ranks, join_within, lease] = parts[..] else { return None };
    let time = |text: &str| text.parse().ok().map(Duration::from_nanos);
    let (join_within, lease) = (time(join_within)?, time(lease)?);
    let (ranks, succession) = (ranks.parse().ok()?, Succession::AfterAnyEnd);
    Some((listen.parse().ok()?, Plan { ranks, join_within, lease, segment: Vec::new(), succession }))
}

/// Parses the text of a coordinator's variable.
#[cfg(any(test, fuzzing))]
pub(crate) fn fuzz(text: &str) {
    let _ = read_plan(text).map(|(_, plan)| plan.check().is_ok());
}
