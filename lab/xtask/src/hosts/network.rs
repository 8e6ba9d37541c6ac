//! The hosts of a bed, as a run uses them: commands on a host, its cable, its processes.

use std::{
    error::Error,
    io::Write,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

type Result<T> = std::result::Result<T, Box<dyn Error>>;

/// Hosts that reach each other by `eth0` and by ssh, and see the same programs.
pub(crate) trait Network {
    fn hosts(&self) -> usize;

    /// A directory that exists on every host.
    fn directory(&self) -> &Path;

    /// Returns the command that replaces ssh on a host.
    fn ssh(&self) -> String;

    /// Returns the name of a host, as ssh knows it.
    fn name(&self, host: usize) -> String {
        format!("host{host}")
    }

    /// Returns a command that runs a program with arguments on a host.
    fn on(&self, host: usize, words: &[&str]) -> Command;

    /// Disconnects a host, or reconnects it.
    fn cut(&self, host: usize, off: bool) -> Result<()>;

    /// Returns whether hosts have one file system for what runs write.
    fn shares_files(&self) -> bool;

    /// Returns whether a program runs on any host.
    fn runs(&self, program: &Path) -> bool;

    /// Returns whether a host works; a host can be killed where it is a machine.
    fn works(&self, _host: usize) -> bool {
        true
    }

    /// Kills a host.
    ///
    /// # Errors
    /// The host can't be killed apart from others.
    fn kill_host(&self, host: usize) -> Result<()> {
        Err(format!("{} is no machine of its own", self.name(host)).into())
    }

    /// Runs a line of a shell on a host, and returns what it prints.
    ///
    /// # Errors
    /// The line fails.
    fn shell(&self, host: usize, line: &str) -> Result<String> {
        let output = self.on(host, &["sh", "-c", line]).stdin(Stdio::null()).output()?;
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{}: {line}: {}", self.name(host), String::from_utf8_lossy(&output.stderr).trim()).into())
    }

    /// Sends a signal (`KILL`) to a process of a host.
    fn signal(&self, host: usize, process: i32, signal: &str) -> Result<()> {
        self.shell(host, &format!("kill -{signal} {process}")).map(drop)
    }

    /// Returns whether a process of a host still runs.
    fn is_alive(&self, host: usize, process: i32) -> bool {
        self.works(host) && self.shell(host, &format!("kill -0 {process}")).is_ok()
    }

    /// Writes a file of hosts with `slots` each, on the first host; returns its path.
    fn hosts_file(&self, slots: usize) -> Result<PathBuf> {
        let path = self.directory().join(format!("hosts-{slots}"));
        let lines: String = (0..self.hosts()).map(|host| format!("{} slots={slots}\n", self.name(host))).collect();
        self.write(0, &path, &lines)?;
        Ok(path)
    }

    /// Writes a file on a host.
    fn write(&self, host: usize, path: &Path, text: &str) -> Result<()> {
        let mut writer = self.on(host, &["sh", "-c", "cat >\"$0\"", &path.display().to_string()]);
        let mut child = writer.stdin(Stdio::piped()).spawn()?;
        child.stdin.take().ok_or("no input")?.write_all(text.as_bytes())?;
        if !child.wait()?.success() {
            return Err(format!("{} can't be written on {}", path.display(), self.name(host)).into());
        }
        Ok(())
    }

    /// Makes a directory on all hosts.
    fn make_directory(&self, name: &str) -> Result<PathBuf> {
        let path = self.directory().join(name);
        for host in 0..self.hosts() {
            self.shell(host, &format!("rm -rf '{0}'; mkdir -p '{0}'", path.display()))?;
        }
        Ok(path)
    }

    /// Returns the lines of all files of a directory, of all hosts that work.
    fn read(&self, directory: &Path) -> Result<String> {
        let last = if self.shares_files() { 1 } else { self.hosts() };
        let mut all = String::new();
        for host in (0..last).filter(|host| self.works(*host)) {
            all += &self.shell(host, &format!("cat '{}'/* 2>/dev/null || true", directory.display()))?;
        }
        Ok(all)
    }
}
