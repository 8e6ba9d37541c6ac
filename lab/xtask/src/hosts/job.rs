//! A job on the hosts, started on the first of them.

use super::bed::Bed;
use std::{
    error::Error,
    io::{BufRead, BufReader, Read},
    process::{Child, ExitStatus, Stdio},
    sync::{Arc, Mutex, PoisonError},
    thread,
    time::{Duration, Instant},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// The running launcher, and its output. It is killed when this is dropped.
pub(crate) struct Job<'a> {
    bed: &'a Bed,
    launcher: Child,
    lines: Arc<Mutex<Vec<String>>>,
}

impl<'a> Job<'a> {
    /// Starts a program with as many ranks as the hosts have slots.
    pub(crate) fn start(bed: &'a Bed, slots: usize, program: &str, arguments: &[&str]) -> Result<Self> {
        let hosts = bed.network.hosts_file(slots)?.display().to_string();
        let (ranks, lease) = ((bed.network.hosts() * slots).to_string(), bed.lease.as_secs().to_string());
        let mut words = vec!["--ranks", &ranks, "--hosts", &hosts, "--interface", "eth0", "--lease", &lease];
        words.extend(bed.options.iter().map(|word| &**word));
        // Ranks that are to be lost wait for ever, so a long lease would look like a deadlock.
        words.extend(["--stuck-after", "never"]);
        words.extend(arguments);
        Self::run(bed, program, &words)
    }

    /// Starts a program with these arguments on the first host.
    pub(crate) fn run(bed: &'a Bed, program: &str, arguments: &[&str]) -> Result<Self> {
        let (ssh, directory) = (format!("ONESIDED_SSH={}", bed.network.ssh()), bed.network.directory());
        let (program, directory) = (bed.programs.join(program).display().to_string(), directory.display().to_string());
        // The process that the shell becomes is the launcher.
        let line = "cd \"$0\" && echo \"launcher $$\" && exec \"$@\"";
        let mut words = vec!["env", &ssh];
        words.extend(bed.variables.iter().map(|word| &**word));
        words.extend(["sh", "-c", line, &directory, &program]);
        words.extend(arguments);
        let mut command = bed.network.on(0, &words);
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut launcher = command.spawn()?;
        let lines = Arc::default();
        gather(launcher.stdout.take(), &lines);
        gather(launcher.stderr.take(), &lines);
        Ok(Job { bed, launcher, lines })
    }

    /// Waits until it has ended, and checks its exit code.
    pub(crate) fn end(&mut self, code: i32, within: Duration) -> Result<()> {
        let status = self.status(within)?;
        if status.code() == Some(code) {
            return Ok(());
        }
        Err(format!("{status} instead of code {code}: {}", self.text()).into())
    }

    /// Waits until `found` finds something.
    pub(crate) fn wait<T>(
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
            thread::sleep(Duration::from_millis(5));
        }
    }

    /// Returns the text after `start` in the lines that begin with `rank R` and `start`, with the
    /// ranks, in the order of arrival.
    pub(crate) fn told(&self, start: &str) -> Vec<(u32, String)> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        told_in(lines.iter().map(String::as_str), start)
    }

    /// Kills the launcher.
    pub(crate) fn kill(&mut self) -> Result<()> {
        let process = self.process().ok_or("the launcher has printed no process ID")?;
        self.bed.network.signal(0, process, "KILL")
    }

    /// Returns the process ID of the launcher, on the first host.
    fn process(&self) -> Option<i32> {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().find_map(|line| line.strip_prefix("launcher ")?.parse().ok())
    }

    /// Returns what it has printed.
    pub(crate) fn lines(&self) -> String {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).join("\n")
    }

    /// Waits for its end.
    pub(crate) fn status(&mut self, within: Duration) -> Result<ExitStatus> {
        let status = self.wait(within, "its end", |job| job.launcher.try_wait().ok().flatten())?;
        // The last lines arrive right after.
        thread::sleep(Duration::from_millis(50));
        Ok(status)
    }

    pub(crate) fn printed(&self, part: &str) -> bool {
        self.lines.lock().unwrap_or_else(PoisonError::into_inner).iter().any(|line| line.contains(part))
    }

    /// Returns the end of its output, in one line.
    pub(crate) fn text(&self) -> String {
        let lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        let from = lines.len().saturating_sub(12);
        lines[from..].join(" | ")
    }

    /// Disconnects or reconnects a host.
    pub(crate) fn cut(&self, host: usize, off: bool) -> Result<()> {
        self.bed.network.cut(host, off)
    }
}

impl Drop for Job<'_> {
    fn drop(&mut self) {
        // By SIGTERM first, which also ends the ranks.
        if let (Ok(None), Some(process)) = (self.launcher.try_wait(), self.process()) {
            let _ = self.bed.network.signal(0, process, "TERM");
        }
        let until = Instant::now() + Duration::from_secs(3);
        while matches!(self.launcher.try_wait(), Ok(None)) && Instant::now() < until {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = self.launcher.kill();
        let _ = self.launcher.wait();
    }
}

/// Returns the text after `start` in lines that begin with `rank R` and `start`, with the ranks.
pub(crate) fn told_in<'a>(lines: impl Iterator<Item = &'a str>, start: &str) -> Vec<(u32, String)> {
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
