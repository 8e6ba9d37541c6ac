//! The programs under test, and the capabilities of this machine.

use crate::ofi;
use std::{
    error::Error,
    fs,
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    process::{Command, Stdio},
    time::Duration,
};
use tempfile::TempDir;
use tofu2_sim::shm::part::NO_HANDLERS;

/// The way in which ranks are started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Launch {
    /// By the program itself, as processes over shared memory.
    Shm,
    /// By `onesided run`, over shared memory.
    Run,
    /// As several nodes on this machine, over libfabric.
    Cluster,
    /// As several hosts, with a script in place of ssh.
    Hosts,
}

impl Launch {
    pub(super) fn name(self) -> &'static str {
        match self {
            Launch::Shm => "shm",
            Launch::Run => "onesided run",
            Launch::Cluster => "cluster",
            Launch::Hosts => "hosts",
        }
    }

    /// The time that a job may take to end after a fault: guards, some ten times the usual time.
    pub(super) fn bound(self) -> Duration {
        Duration::from_secs(match self {
            Launch::Shm | Launch::Run => 15,
            Launch::Cluster | Launch::Hosts => 25,
        })
    }
}

/// Systems whose rounds are ranks of a job.
pub(super) const SYSTEMS: [&str; 8] = ["words", "lock", "recoverable", "prdma", "acp", "fmpl", "blacs", "xmp"];

/// Ranks of each job.
pub(super) const RANKS: u32 = 4;

/// Replaces ssh: options, `--`, the host and a line for its shell.
const SSH: &str = "#!/bin/sh\nwhile [ \"$1\" != -- ]; do shift; done\ncd /\nexec /bin/sh -c \"$3\"\n";

/// The environment of cases.
pub(super) struct Environment {
    /// `torture_rank`.
    pub(super) program: PathBuf,
    /// `onesided`.
    pub(super) onesided: PathBuf,
    /// This program.
    pub(super) xtask: PathBuf,
    /// The reason why there are no clusters, if so.
    pub(super) no_cluster: Option<String>,
    pub(super) seed: u64,
    folder: TempDir,
}

impl Environment {
    /// Builds the programs, or takes those that are `built`.
    pub(super) fn new(seed: u64, built: bool) -> Result<Self, Box<dyn Error>> {
        let xtask = std::env::current_exe()?;
        let debug = xtask.parent().and_then(Path::parent).ok_or("this program has no directory")?.join("debug");
        if !built {
            build()?;
        }
        let (program, onesided) = (debug.join("examples/torture_rank"), debug.join("onesided"));
        for path in [&program, &onesided] {
            if !path.is_file() {
                return Err(format!("{} is not built; leave out --built", path.display()).into());
            }
        }
        let folder = tempfile::Builder::new().prefix("torture-bed-").tempdir()?;
        fs::set_permissions(folder.path(), fs::Permissions::from_mode(0o755))?;
        fs::write(folder.path().join("ssh"), SSH)?;
        fs::set_permissions(folder.path().join("ssh"), fs::Permissions::from_mode(0o755))?;
        fs::write(folder.path().join("hosts"), "near slots=2\nfar slots=2\n")?;
        let no_cluster = why_no_cluster(&program, folder.path());
        Ok(Environment { program, onesided, xtask, no_cluster, seed, folder })
    }

    pub(super) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns the reason why jobs of this kind can't be tried here, if so.
    pub(super) fn obstacle(&self, launch: Launch) -> Option<&str> {
        match launch {
            Launch::Shm | Launch::Run => None,
            Launch::Cluster | Launch::Hosts => self.no_cluster.as_deref(),
        }
    }

    /// Returns the launch of `torture_rank` with these ranks and arguments.
    pub(super) fn job(&self, launch: Launch, ranks: u32, words: &[&str]) -> Command {
        let ranks = ranks.to_string();
        let mut command = Command::new(if launch == Launch::Run { &self.onesided } else { &self.program });
        match launch {
            Launch::Run => {
                command.args(["run", "--ranks", &ranks, "--"]).arg(&self.program).args(words);
                return command;
            }
            Launch::Shm => {
                command.args(words).args(["--ranks", &ranks]);
            }
            Launch::Cluster => {
                command.args(words).args(["--ranks", &ranks, "--fabric", "cluster", "--ranks-per-node", "2"]);
                command.args(["--lease", "3", "--interface", "lo"]);
            }
            Launch::Hosts => {
                command.args(words).args(["--ranks", &ranks, "--fabric", "cluster", "--interface", "lo"]);
                command.args(["--lease", "3", "--hosts"]).arg(self.folder().join("hosts"));
                command.env("ONESIDED_SSH", self.folder().join("ssh"));
            }
        }
        // A program that is linked with libfabric has the handlers of its libraries from its load to `main`,
        // which may take long on a busy machine (`docs/cluster.md`).
        command.envs(NO_HANDLERS.map(|name| (name, "1")));
        command
    }
}

/// Builds `torture_rank`, with libfabric where it is installed, and `onesided`.
fn build() -> Result<(), Box<dyn Error>> {
    let cargo = |words: &[&str]| -> Result<(), Box<dyn Error>> {
        let built =
            Command::new("cargo").arg("build").args(words).status().map_err(|error| format!("cargo: {error}"))?;
        if built.success() { Ok(()) } else { Err("the programs can't be built".into()) }
    };
    cargo(&["--quiet", "--package", "onesided-cli", "--bin", "onesided"])?;
    if ofi::missing().is_none() {
        return ofi::examples(&["torture_rank"]).map(drop);
    }
    cargo(&["--quiet", "--package", "onesided-examples", "--example", "torture_rank"])
}

/// Tries a job of two nodes.
fn why_no_cluster(program: &Path, folder: &Path) -> Option<String> {
    let mut command = Command::new(program);
    command.args(["words", "--for", "0", "--fabric", "cluster", "--ranks", "2", "--ranks-per-node", "1"]);
    command.args(["--interface", "lo", "--report"]).arg(folder).stdin(Stdio::null());
    match command.output() {
        Ok(output) if output.status.success() => None,
        Ok(output) => {
            let said = String::from_utf8_lossy(&output.stderr);
            let line = said.lines().find(|line| line.contains("error")).unwrap_or("a job of two nodes fails");
            Some(format!("no clusters: {}", line.trim()))
        }
        Err(error) => Some(format!("no clusters: {error}")),
    }
}
