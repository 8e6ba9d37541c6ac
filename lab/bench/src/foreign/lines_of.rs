//! The output of a command, with a bound on its time.

use core::time::Duration;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    error::Error,
    io::{BufRead, BufReader, Read},
    os::unix::process::CommandExt,
    process::{Command, Stdio},
    sync::mpsc,
    thread,
    time::Instant,
};
use tofu2_sim::shm::part::NO_HANDLERS;

/// The time after which a command counts as hung.
const BOUND: Duration = Duration::from_secs(90);

/// A line of standard output, and the time of its arrival.
pub(crate) type Line = (String, Duration);

/// Runs a command to its end. Returns the lines of its standard output.
///
/// # Errors
/// Its standard error, if it fails or takes too long.
pub(crate) fn lines_of(mut command: Command) -> Result<Vec<Line>, Box<dyn Error>> {
    command.envs(NO_HANDLERS.map(|name| (name, "1"))).process_group(0);
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
    let (group, over) = (Pid::from_child(&child), mpsc::channel::<()>());
    let (done, is_done) = over;
    let watchdog = thread::spawn(move || {
        let late = is_done.recv_timeout(BOUND) == Err(mpsc::RecvTimeoutError::Timeout);
        if late {
            // The process has not been waited for yet, so its number has not been reused.
            let _ = kill_process_group(group, Signal::KILL);
        }
        late
    });
    let stderr = child.stderr.take();
    let errors = thread::spawn(move || {
        let mut text = String::new();
        stderr.map(|mut stderr| stderr.read_to_string(&mut text));
        text
    });
    let mut lines = Vec::new();
    for line in child.stdout.take().into_iter().flat_map(|stdout| BufReader::new(stdout).lines()) {
        lines.push((line?, begun.elapsed()));
    }
    let errors = errors.join().unwrap_or_default();
    drop(done);
    let late = watchdog.join().unwrap_or(true);
    let status = child.wait()?;
    match status.success() {
        true => Ok(lines),
        false if late => Err(format!("not over within {} s\n{errors}", BOUND.as_secs()).into()),
        false => Err(format!("{status}\n{errors}").into()),
    }
}
