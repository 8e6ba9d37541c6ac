//! A job on the hosts, started on the first of them.

use super::{Bed, Network};
use rustix::process::{Pid, Signal, kill_process};
use std::{
    error::Error,
    io::{BufRead, BufReader, Read},
    process::{Child, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The running launcher, and its output. It is killed when this is dropped.
pub(super) struct Job<'a> {
    bed: &'a Bed,
    launcher: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl<'a> Job<'a> {
    /// Starts a program with as many ranks as the hosts have slots.
    pub(super) fn start(bed: &'a Bed, slots: usize, program: &str, arguments: &[&str]) -> Result<Self> {
        let mut command = bed.network.on(0, &bed.programs.join(program));
        command.args(["--fabric", "cluster", "--ranks", &(super::HOSTS * slots).to_string()]);
        command.args(["--hosts", &bed.network.hosts_file(slots)?, "--interface", "eth0"]);
        command.args(["--lease", &bed.lease.as_secs().to_string()]).args(arguments);
        command.env("ONESIDED_SSH", bed.network.ssh()).current_dir(bed.network.directory());
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn()?;
        let lines = Arc::default();
        gather(launcher.stdout.take(), &lines);
        gather(launcher.stderr.take(), &lines);
        Ok(Job { bed, launcher, lines })
    }

    /// Waits until it has ended, and checks its exit code.
    pub(super) fn end(&mut self, code: i32, within: Duration) -> Result<()> {
        let status = self.wait(within, "its end", |job| job.launcher.try_wait().ok().flatten())?;
        // The last lines arrive right after.
        thread::sleep(Duration::from_millis(50));
        if status.code() == Some(code) {
            return Ok(());
        }
        Err(format!("{status} instead of code {code}: {}", self.text()).into())
    }

    /// Waits until `found` finds something.
    pub(super) fn wait<T>(
        &mut self,
        within: Duration,
        what: &str,
        mut found: impl FnMut(&mut Self) -> Option<T>,
    ) -> Result<T> {
        let until = Instant::now() + within;
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            if Instant::now() > until || self.bed.is_stopped() {
                return Err(format!("{what} did not come within {within:?}: {}", self.text()).into());
            }
            thread::sleep(Duration::from_millis(2));
        }
    }

    /// Returns the text after `start` in the lines that begin with `rank R` and `start`, with the
    /// ranks, in the order of arrival.
    pub(super) fn told(&self, start: &str) -> Vec<(u32, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        told_in(lines.iter().map(String::as_str), start)
    }

    /// Kills the launcher.
    pub(super) fn kill(&mut self) -> Result<()> {
        Ok(self.launcher.kill()?)
    }

    pub(super) fn printed(&self, part: &str) -> bool {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(part))
    }

    /// Returns the end of its output, in one line.
    pub(super) fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let from = lines.len().saturating_sub(12);
        lines[from..].join(" | ")
    }

    /// Disconnects or reconnects a host.
    pub(super) fn cut(&self, host: usize, off: bool) -> Result<()> {
        let network: &Network = &self.bed.network;
        network.cut(host, off)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // By SIGTERM first, which also ends the ranks.
        let _ = kill_process(Pid::from_child(&self.launcher), Signal::TERM);
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.launcher.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Returns the text after `start` in lines that begin with `rank R` and `start`, with the ranks.
pub(super) fn told_in<'a>(lines: impl Iterator<Item = &'a str>, start: &str) -> Vec<(u32, String)> {
    let found = lines.filter_map(|line| {
        let (rank, rest) = line.strip_prefix("rank ")?.split_once(' ')?;
        Some((rank.parse().ok()?, rest.strip_prefix(start)?.trim().to_owned()))
    });
    found.collect()
}

fn gather(from: Option<impl Read + Send + 'static>, into: &Arc<Mutex<Vec<String>>>) {
    let (Some(from), into) = (from, into.clone()) else { return };
    thread::spawn(move || {
        for line in BufReader::new(from).lines().map_while(|line| line.ok()) {
            into.lock().unwrap_or_else(PoisonError::into_inner).push(line);
        }
    });
}
