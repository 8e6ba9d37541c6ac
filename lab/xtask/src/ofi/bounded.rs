//! A command with a time limit.

use super::interrupt::Interrupt;
use crate::leftover;
use rustix::process::{Pid, Signal, kill_process_group};
use std::{
    error::Error,
    fs::{self, File},
    io,
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};

/// The time that a command may take to end after it was requested to.
const GRACE: Duration = Duration::from_secs(3);

/// The end of a command.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if it was killed, because its time limit expired or the user interrupted it.
    pub(crate) status: Option<ExitStatus>,
    /// Its standard output.
    pub(crate) out: String,
    /// Its standard error.
    pub(crate) err: String,
    pub(crate) took: Duration,
    /// The number of its processes that still ran after it had ended by itself.
    pub(crate) left: usize,
}

/// Runs `command` in `folder`, and ends it and all its processes when the time limit expires.
pub(crate) fn run_within(
    mut command: Command,
    folder: &Path,
    within: Duration,
    interrupt: &Interrupt,
) -> Result<Ended, Box<dyn Error>> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mark = leftover::mark(RUNS.fetch_add(1, Relaxed));
    // Files instead of pipes: a remaining process would keep pipes open.
    let [out, err] = ["out", "err"].map(|name| folder.join(name));
    command.env(leftover::VARIABLE, &mark).current_dir(folder).process_group(0);
    command.stdin(Stdio::null()).stdout(File::create(&out)?).stderr(File::create(&err)?);
    let begun = Instant::now();
    let mut child = command.spawn().map_err(|error| format!("{:?}: {error}", command.get_program()))?;
    let mut status = None;
    while status.is_none() && begun.elapsed() < within && !interrupt.came() {
        thread::sleep(Duration::from_millis(5));
        status = child.try_wait()?;
    }
    let took = begun.elapsed();
    if status.is_none() {
        end(&mut child)?;
    }
    let left = leftover::end(&mark, status.is_none());
    let read = |path| fs::read(path).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(Ended { status, out: read(&out)?, err: read(&err)?, took, left: if status.is_some() { left } else { 0 } })
}

/// Ends a command that leads its process group: first by SIGTERM, which lets a launcher end its
/// ranks, then by SIGKILL.
pub(crate) fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_child(child);
    // The group may have no processes left.
    let _ = kill_process_group(group, Signal::TERM);
    let begun = Instant::now();
    while begun.elapsed() < GRACE {
        if child.try_wait()?.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(5));
    }
    let _ = kill_process_group(group, Signal::KILL);
    child.wait().map(drop)
}
