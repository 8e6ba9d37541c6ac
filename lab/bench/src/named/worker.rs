//! The processes that acquire the locks.

use super::contestant::Contestant;
use crate::outside::placement;
use clap::{Args, ValueEnum};
use rustix::time::{ClockId, clock_gettime};
use std::{
    env,
    error::Error,
    io::{self, BufRead, BufReader, Write},
    path::PathBuf,
    process::{Child, ChildStdin, ChildStdout, Command, ExitCode, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The hidden subcommand by which this program runs as such a process.
pub(crate) const WORKER: &str = "named-worker";

/// The role of a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Role {
    /// Acquires and releases the lock for some time, and reports the number of acquisitions.
    Contend,
    /// Acquires the lock and keeps it.
    Hold,
    /// Waits for the lock, and reports the time of the acquisition.
    Wait,
}

#[derive(Debug, Args)]
pub(crate) struct WorkerOptions {
    #[arg(long, value_enum)]
    pub(super) role: Role,
    #[arg(long, value_enum)]
    pub(super) contestant: Contestant,
    #[arg(long)]
    pub(super) place: PathBuf,
    #[arg(long)]
    pub(super) core: Option<usize>,
    #[arg(long)]
    pub(super) milliseconds: u32,
}

/// Acquisitions between two reads of the clock.
const BATCH: u32 = 32;

/// Returns the system's monotonic clock in ns, which all processes share.
pub(super) fn now() -> u64 {
    let now = clock_gettime(ClockId::Monotonic);
    now.tv_sec.unsigned_abs() * 1_000_000_000 + now.tv_nsec.unsigned_abs()
}

/// Runs as one of the processes.
pub(crate) fn be_worker(options: &WorkerOptions) -> Result<ExitCode, Box<dyn Error>> {
    if let Some(core) = options.core {
        placement::pin(core)?;
    }
    let lock = options.contestant.open(&options.place)?;
    let say = |text: &str| writeln!(io::stdout(), "{text}").and_then(|()| io::stdout().flush());
    match options.role {
        Role::Contend => {
            (0..100).try_for_each(|_| lock.pair())?;
            say("ready")?;
            io::stdin().read_line(&mut String::new())?;
            let (end, mut pairs) = (Instant::now() + Duration::from_millis(options.milliseconds.into()), 0);
            while Instant::now() < end {
                (0..BATCH).try_for_each(|_| lock.pair())?;
                pairs += BATCH;
            }
            say(&pairs.to_string())?;
        }
        Role::Hold => {
            lock.hold()?;
            say("ready")?;
            loop {
                thread::sleep(Duration::from_secs(1));
            }
        }
        Role::Wait => {
            say("ready")?;
            lock.wait()?;
            say(&now().to_string())?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

/// A process, as seen by its parent; killed when it is dropped.
pub(super) struct Worker {
    child: Child,
    says: BufReader<ChildStdout>,
    hears: ChildStdin,
}

impl Worker {
    pub(super) fn start(options: &WorkerOptions) -> io::Result<Self> {
        let role = options.role.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
        let mut command = Command::new(env::current_exe()?);
        command.args([WORKER, "--role", &role, "--contestant", &options.contestant.name(), "--place"]);
        command.arg(&options.place).args(["--milliseconds", &options.milliseconds.to_string()]);
        if let Some(core) = options.core {
            command.args(["--core", &core.to_string()]);
        }
        let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
        let missing = || io::Error::other("a process without pipes");
        let says = BufReader::new(child.stdout.take().ok_or_else(missing)?);
        let hears = child.stdin.take().ok_or_else(missing)?;
        Ok(Worker { child, says, hears })
    }

    fn line(&mut self) -> io::Result<String> {
        let mut line = String::new();
        self.says.read_line(&mut line)?;
        Ok(line.trim_end().to_owned())
    }

    pub(super) fn is_ready(&mut self) -> io::Result<()> {
        match self.line()?.as_str() {
            "ready" => Ok(()),
            other => Err(io::Error::other(format!("a worker said {other:?}"))),
        }
    }

    pub(super) fn go(&mut self) -> io::Result<()> {
        writeln!(self.hears)
    }

    /// Returns the number that it reports.
    pub(super) fn figure(&mut self) -> io::Result<u64> {
        let line = self.line()?;
        line.parse().map_err(|_| io::Error::other(format!("a worker said {line:?}")))
    }

    pub(super) fn kill(&mut self) -> io::Result<()> {
        self.child.kill()
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
