//! A command that runs in its own directory, and everything that it leaves behind.

use super::fault::Fault;
use crate::leftover::{self, Process};
use rustix::process::Pid;
use std::{
    collections::BTreeSet,
    error::Error,
    fs::{self, File},
    os::unix::{
        fs::PermissionsExt,
        process::{CommandExt, ExitStatusExt},
    },
    path::{Path, PathBuf},
    process::{Child, Command, ExitStatus, Stdio},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
    thread,
    time::{Duration, Instant},
};
use tempfile::TempDir;

/// A command that has been started.
pub(super) struct Run {
    child: Child,
    mark: String,
    place: TempDir,
}

/// The end of a command.
#[derive(Debug)]
pub(super) struct Ended {
    /// `None` if it was killed, because it had not ended within its bound.
    pub(super) status: Option<ExitStatus>,
    pub(super) out: String,
    pub(super) err: String,
    /// Hangs, and leaks.
    pub(super) faults: Vec<Fault>,
    /// The reports of `torture_rank`, by rank.
    pub(super) reports: Vec<(u32, Report)>,
}

/// The report of one `torture_rank`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Report {
    pub(super) has_begun: bool,
    /// `ok ROUNDS` or `error MESSAGE`.
    pub(super) ended: Option<String>,
}

/// Directories of a case: for reports, and those that have to be empty afterwards.
const REPORTS: &str = "reports";
const TEMPORARY: &str = "temporary";
const RUNTIME: &str = "runtime";

/// Makes the directories of a case.
pub(super) fn place() -> Result<TempDir, Box<dyn Error>> {
    let place = tempfile::Builder::new().prefix("torture-").tempdir()?;
    // The case may run as another user.
    fs::set_permissions(place.path(), fs::Permissions::from_mode(0o755))?;
    for (name, mode) in [(REPORTS, 0o777), (TEMPORARY, 0o1777), (RUNTIME, 0o700)] {
        fs::create_dir(place.path().join(name))?;
        fs::set_permissions(place.path().join(name), fs::Permissions::from_mode(mode))?;
    }
    Ok(place)
}

pub(super) fn reports(place: &TempDir) -> PathBuf {
    place.path().join(REPORTS)
}

/// Returns a mark that no other case has.
fn mark() -> String {
    static NEXT: AtomicUsize = AtomicUsize::new(0);
    format!("torture-{}", leftover::mark(NEXT.fetch_add(1, Relaxed)))
}

impl Run {
    /// Starts `command` in its own directory, with its output in files, so that a process that is
    /// left over keeps no pipe open.
    pub(super) fn start(mut command: Command, place: TempDir) -> Result<Self, Box<dyn Error>> {
        let mark = mark();
        dress(&mut command, place.path(), &mark)?;
        let child = command.spawn().map_err(|error| format!("{}: {error}", command.get_program().display()))?;
        Ok(Run { child, mark, place })
    }

    pub(super) fn launcher(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Returns its processes.
    pub(super) fn processes(&self) -> Vec<Process> {
        leftover::with_mark(&self.mark)
    }

    /// Returns the process that is this rank, if it runs.
    pub(super) fn rank(&self, rank: u32) -> Option<Pid> {
        let launcher = self.launcher();
        let ranks = self.processes().into_iter().filter(|process| process.pid != launcher);
        ranks.filter(|process| process.rank == Some(rank)).map(|process| process.pid).next()
    }

    pub(super) fn has_ended(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(Some(_)))
    }

    /// Waits until this number of ranks have begun; returns whether they have, before the end of
    /// the job.
    pub(super) fn wait_begun(&mut self, ranks: u32, within: Duration) -> bool {
        let until = Instant::now() + within;
        loop {
            if (0..ranks).all(|rank| self.place.path().join(REPORTS).join(format!("began.{rank}")).exists()) {
                return true;
            }
            if self.has_ended() || Instant::now() >= until {
                return false;
            }
            thread::sleep(Duration::from_millis(1));
        }
    }

    /// Waits for its end, at most for `within`, and then for that of all its processes, at most for
    /// `grace`. Searches for everything that it left behind.
    pub(super) fn end(mut self, ranks: u32, within: Duration, grace: Duration) -> Result<Ended, Box<dyn Error>> {
        let (mut status, until, mut faults) = (self.child.try_wait()?, Instant::now() + within, Vec::new());
        while status.is_none() && Instant::now() < until {
            thread::sleep(Duration::from_millis(1));
            status = self.child.try_wait()?;
        }
        if status.is_none() {
            let left = self.processes();
            let ranks: BTreeSet<u32> = left.iter().filter_map(|process| process.rank).collect();
            let what = format!("not ended after {} s: {} processes, ranks {ranks:?}", within.as_secs(), left.len());
            faults.push(Fault::Hang(what));
            leftover::kill(&self.mark);
            self.child.kill()?;
            self.child.wait()?;
        }
        let left = leftover::end_within(&self.mark, grace);
        if left > 0 && status.is_some() {
            faults.push(Fault::Leak(format!("{left} processes, {} s after the launcher's end", grace.as_secs())));
        }
        faults.extend(left_in(self.place.path()).into_iter().map(Fault::Leak));
        let read =
            |name| fs::read(self.place.path().join(name)).map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
        let reports = (0..ranks).map(|rank| (rank, reported(&self.place.path().join(REPORTS), rank))).collect();
        Ok(Ended { status, out: read("out")?, err: read("err")?, faults, reports })
    }
}

/// Gives a command its environment and output.
fn dress(command: &mut Command, place: &Path, mark: &str) -> Result<(), Box<dyn Error>> {
    command.env(leftover::VARIABLE, mark).env("RUST_BACKTRACE", "0").current_dir(place.join(REPORTS));
    command.env("TMPDIR", place.join(TEMPORARY)).env("XDG_RUNTIME_DIR", place.join(RUNTIME));
    // A signal to this command does not reach the cases that it waits for.
    command.stdin(Stdio::null()).process_group(0);
    command.stdout(File::create(place.join("out"))?).stderr(File::create(place.join("err"))?);
    Ok(())
}

/// Returns the contents of the directories that have to be empty.
fn left_in(place: &Path) -> Vec<String> {
    let names = |name: &str| {
        let entries = fs::read_dir(place.join(name)).into_iter().flatten().flatten();
        entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect::<Vec<_>>()
    };
    let left = [(TEMPORARY, names(TEMPORARY)), (RUNTIME, names(RUNTIME))];
    left.into_iter().flat_map(|(dir, names)| names.into_iter().map(move |name| format!("{dir}/{name}"))).collect()
}

fn reported(directory: &Path, rank: u32) -> Report {
    Report {
        has_begun: directory.join(format!("began.{rank}")).exists(),
        ended: fs::read_to_string(directory.join(format!("ended.{rank}"))).ok(),
    }
}

/// Returns the names in `/dev/shm`.
pub(super) fn shared_memory_names() -> BTreeSet<String> {
    let entries = fs::read_dir("/dev/shm").into_iter().flatten().flatten();
    entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect()
}

/// Returns the code that a shell shows for this status.
pub(super) fn shell_code(status: ExitStatus) -> i32 {
    status.code().unwrap_or_else(|| 128 + status.signal().unwrap_or(0))
}

/// Returns a fault if the text holds a panic's message or a value's `Debug` form.
pub(super) fn panic_in(text: &str) -> Option<Fault> {
    const MARKS: [&str; 5] = ["panicked at", "RUST_BACKTRACE", "stack backtrace", "core dumped", "fatal runtime error"];
    let line = text.lines().find(|line| MARKS.iter().any(|mark| line.contains(mark)))?;
    Some(Fault::Nameless(format!("a panic: {}", line.trim())))
}

/// Returns the last lines of a text, in one line.
pub(super) fn tail(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let tail = lines[lines.len().saturating_sub(4)..].join(" | ");
    tail.chars().take(400).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_over_is_found() {
        let mut command = Command::new("sh");
        command
            .args(["-c", "sleep 60 & echo x > \"$TMPDIR/file\"; echo ok 3 > ended.1; echo out; echo err >&2; exit 3"]);
        let run = Run::start(command, place().unwrap()).unwrap();
        let ended = run.end(2, Duration::from_secs(20), Duration::from_millis(50)).unwrap();
        assert_eq!(ended.status.map(shell_code), Some(3));
        assert_eq!((&*ended.out, &*ended.err), ("out\n", "err\n"));
        assert_eq!(ended.reports[1].1.ended.as_deref(), Some("ok 3\n"));
        let leaks = ["1 processes, 0 s after the launcher's end", "temporary/file"];
        assert_eq!(ended.faults, leaks.map(|leak| Fault::Leak(leak.to_owned())));
    }

    #[test]
    fn what_does_not_end_is_ended() {
        let mut command = Command::new("sleep");
        command.arg("60");
        let run = Run::start(command, place().unwrap()).unwrap();
        let ended = run.end(0, Duration::from_millis(50), Duration::from_secs(5)).unwrap();
        assert!(matches!(&ended.faults[..], [Fault::Hang(_)]), "{ended:?}");
    }

    #[test]
    fn panics_are_found() {
        assert!(panic_in("thread 'main' panicked at src/main.rs:1").is_some());
        assert_eq!(panic_in("error: rank 1 was lost"), None);
    }
}
