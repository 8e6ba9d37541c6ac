//! A command that is given so much time, and no more.

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

/// How long a command that was asked to end may take for it.
const GRACE: Duration = Duration::from_secs(3);

/// How a command has ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// Nothing if it was killed, since its time was over or the user wants an end.
    pub(crate) status: Option<ExitStatus>,
    /// What it has written to standard output.
    pub(crate) out: String,
    /// What it has written to standard error.
    pub(crate) err: String,
    pub(crate) took: Duration,
    /// Processes that were still there when it had ended by itself.
    pub(crate) left: usize,
}

/// Runs `command` in `folder`, and ends it and all that it has started when the time is over.
pub(crate) fn run_within(
    mut command: Command,
    folder: &Path,
    within: Duration,
    interrupt: &Interrupt,
) -> Result<Ended, Box<dyn Error>> {
    static RUNS: AtomicUsize = AtomicUsize::new(0);
    let mark = leftover::mark(RUNS.fetch_add(1, Relaxed));
    // Files and not pipes: whoever is left over would keep those open.
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

/// Ends a command that leads its process group: by asking, which lets a launcher end its ranks, then
/// by force.
pub(crate) fn end(child: &mut Child) -> io::Result<()> {
    let group = Pid::from_child(child);
    // There may be nobody left.
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
