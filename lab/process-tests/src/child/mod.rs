//! Child processes of a case: their lines, their end, and their death.

mod command;
mod lines;

pub use command::{program, this_program};

use lines::{Lines, lines, rest};
#[cfg(unix)]
use rustix::{
    io::Errno,
    process::{Pid, Signal, WaitId, WaitIdOptions, kill_process, test_kill_process, waitid},
};
use std::{
    fmt,
    io::Write,
    process::{self, ChildStdin, Command, ExitStatus},
    thread,
    time::{Duration, Instant},
};

/// The time that a child may take for a line or for its end: a guard against hangs, more than ten times
/// that of the slowest one.
pub const HANG: Duration = Duration::from_secs(60);
/// The time that the output of a killed process may take.
const PATIENCE: Duration = Duration::from_secs(1);
/// The time between two looks at a process.
const LOOK: Duration = Duration::from_millis(2);
/// A process, which is killed when this is dropped.
#[derive(Debug)]
pub struct Child {
    child: process::Child,
    started: Instant,
    input: Option<ChildStdin>,
    lines: Lines,
    errors: Lines,
}

/// The end of a process.
#[derive(Debug)]
pub struct Ended {
    /// Its exit status.
    pub status: ExitStatus,
    /// The lines of its standard output that were not read before.
    pub out: String,
    /// Its standard error, if that was a pipe.
    pub err: String,
    /// The time from its start to its end.
    pub took: Duration,
}

impl fmt::Display for Ended {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}\n--- out\n{}--- err\n{}", self.status, self.out, self.err)
    }
}

impl Ended {
    /// Returns the exit code, `None` after a signal.
    pub fn code(&self) -> Option<i32> {
        self.status.code()
    }

    /// Returns its standard output, followed by its standard error.
    pub fn printed(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}

impl Child {
    /// Starts a command. Lines of its standard output are read as they arrive, if that is a pipe.
    ///
    /// # Panics
    /// If it cannot be started.
    #[track_caller]
    pub fn start(mut command: Command) -> Self {
        let mut child = command.spawn().unwrap_or_else(|error| panic!("{command:?}: {error}"));
        let (lines, errors) = (lines(child.stdout.take()), lines(child.stderr.take()));
        Child { input: child.stdin.take(), child, started: Instant::now(), lines, errors }
    }

    /// Returns the next line, without its end, and the time of its arrival.
    ///
    /// # Panics
    /// If the output has ended, or after [`HANG`].
    #[track_caller]
    pub fn line_at(&mut self) -> (Instant, String) {
        let (at, line) = self.lines.recv_timeout(HANG).unwrap_or_else(|error| panic!("no line: {error}"));
        (at, line.trim_end_matches('\n').to_owned())
    }

    /// Returns the next line, without its end.
    ///
    /// # Panics
    /// As [`Child::line_at`].
    #[track_caller]
    pub fn line(&mut self) -> String {
        self.line_at().1
    }

    /// Returns the rest of the next line that begins with `prefix`.
    ///
    /// # Panics
    /// As [`Child::line_at`].
    #[track_caller]
    pub fn after(&mut self, prefix: &str) -> String {
        loop {
            if let Some(rest) = self.line().strip_prefix(prefix) {
                return rest.to_owned();
            }
        }
    }

    /// Waits for the next line, which must be this one.
    ///
    /// # Panics
    /// If it is another one; as [`Child::line_at`].
    #[track_caller]
    pub fn expect_line(&mut self, expected: &str) {
        assert_eq!(self.line(), expected);
    }

    /// Returns whether no line arrives within `time`.
    pub fn is_quiet_for(&mut self, time: Duration) -> bool {
        self.lines.recv_timeout(time).is_err()
    }

    /// Writes to its standard input.
    ///
    /// # Panics
    /// If that is no pipe, or is closed.
    #[track_caller]
    pub fn write(&mut self, text: &str) {
        let input = self.input.as_mut().expect("the standard input is a pipe");
        input.write_all(text.as_bytes()).expect("the process reads its input");
    }

    /// Writes to its standard input, and closes it, on another thread: the text may be longer than what the
    /// process reads before it writes.
    ///
    /// # Panics
    /// If that is no pipe, or is closed.
    #[track_caller]
    pub fn write_and_close(&mut self, text: &str) {
        let mut input = self.input.take().expect("the standard input is a pipe");
        let text = text.to_owned();
        // A process need not read all of it.
        thread::spawn(move || _ = input.write_all(text.as_bytes()));
    }

    /// Closes its standard input.
    pub fn close_input(&mut self) {
        self.input = None;
    }

    /// Returns its process id.
    pub fn id(&self) -> u32 {
        self.child.id()
    }

    /// Returns whether it runs. Waits for it (removes the zombie) if it has ended.
    ///
    /// # Panics
    /// If the system refuses the answer.
    pub fn is_running(&mut self) -> bool {
        self.child.try_wait().expect("a state").is_none()
    }

    /// Closes its input, waits for its end, and returns it.
    ///
    /// # Panics
    /// After [`HANG`].
    #[track_caller]
    pub fn end(self) -> Ended {
        self.end_within(HANG)
    }

    /// Closes its input, waits for its end at most for `time`, and returns it.
    ///
    /// # Panics
    /// If it does not end, or if its output stays open for [`HANG`] after its end.
    #[track_caller]
    pub fn end_within(mut self, time: Duration) -> Ended {
        self.close_input();
        let until = Instant::now() + time;
        let status = loop {
            match self.child.try_wait().expect("a state") {
                Some(status) => break status,
                None if Instant::now() < until => thread::sleep(LOOK),
                None => {
                    let _ = self.child.kill();
                    let [(out, _), (err, _)] = [&self.lines, &self.errors].map(|lines| rest(lines, PATIENCE));
                    panic!("process {} hangs; {out:?}, {err:?}", self.id());
                }
            }
        };
        let took = self.started.elapsed();
        let [(out, is_out_open), (err, is_err_open)] = [&self.lines, &self.errors].map(|lines| rest(lines, HANG));
        let is_open = is_out_open || is_err_open;
        assert!(!is_open, "process {} has ended, its output is still open; {out:?}, {err:?}", self.id());
        Ended { status, out, err, took }
    }

    /// Waits for its end, which must be a success.
    ///
    /// # Panics
    /// If it is not; after [`HANG`].
    #[track_caller]
    pub fn succeed(self) -> Ended {
        self.succeed_within(HANG)
    }

    /// Waits for its end at most for `time`, which must be a success.
    ///
    /// # Panics
    /// If it is not; if it does not end.
    #[track_caller]
    pub fn succeed_within(self, time: Duration) -> Ended {
        let ended = self.end_within(time);
        assert!(ended.status.success(), "{ended:?}");
        ended
    }
}

#[cfg(unix)]
impl Child {
    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    /// Sends a signal.
    ///
    /// # Panics
    /// If the process was waited for.
    #[track_caller]
    pub fn signal(&self, signal: Signal) {
        kill_process(self.pid(), signal).expect("the process was not waited for");
    }

    /// Kills it without waiting for it: it becomes a zombie.
    #[track_caller]
    pub fn kill(&self) {
        self.signal(Signal::KILL);
    }

    /// Kills it, and waits until it is a zombie.
    ///
    /// # Panics
    /// If the process was waited for.
    #[track_caller]
    pub fn kill_to_zombie(&self) {
        self.kill();
        let options = WaitIdOptions::EXITED | WaitIdOptions::NOWAIT;
        waitid(WaitId::Pid(self.pid()), options).expect("the process was not waited for");
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Waits until no process of this id is left, zombies included.
///
/// # Panics
/// After [`HANG`].
#[cfg(unix)]
#[track_caller]
pub fn expect_gone(id: u32) {
    expect_gone_within(id, HANG);
}

/// Waits until no process of this id is left, zombies included, at most for `time`.
///
/// # Panics
/// If one is left after that.
#[cfg(unix)]
#[track_caller]
pub fn expect_gone_within(id: u32, time: Duration) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw).expect("a process id");
    let until = Instant::now() + time;
    while test_kill_process(pid) != Err(Errno::SRCH) {
        assert!(Instant::now() < until, "process {id} is left");
        thread::sleep(LOOK);
    }
}
