//! A hidden subcommand that applies limits to its own process and then executes a command.

use clap::Args;
use rustix::process::{Resource, Rlimit, setrlimit};
use std::process::ExitCode;
use std::{error::Error, ffi::OsString, fs, os::unix::process::CommandExt, path::PathBuf, process::Command};

#[derive(Debug, Args)]
pub(crate) struct LimitOptions {
    #[arg(long)]
    address_space: Option<u64>,
    #[arg(long)]
    descriptors: Option<u64>,
    #[arg(long)]
    processes: Option<u64>,
    /// Control groups to join.
    #[arg(long)]
    group: Vec<PathBuf>,
    #[arg(required = true, last = true)]
    command: Vec<OsString>,
}

/// Executes the command under these limits; returns only if it can't.
pub(crate) fn be_limited(options: &LimitOptions) -> Result<ExitCode, Box<dyn Error>> {
    for group in &options.group {
        let path = group.join("cgroup.procs");
        fs::write(&path, std::process::id().to_string()).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    let limits = [
        (Resource::As, options.address_space),
        (Resource::Nofile, options.descriptors),
        (Resource::Nproc, options.processes),
    ];
    for (resource, limit) in limits {
        if limit.is_some() {
            setrlimit(resource, Rlimit { current: limit, maximum: limit })?;
        }
    }
    let [program, rest @ ..] = &options.command[..] else { return Err("there is no command".into()) };
    let error = Command::new(program).args(rest).exec();
    Err(format!("{}: {error}", program.display()).into())
}

/// Limits of a case.
#[derive(Clone, Debug, Default)]
pub(super) struct Limits {
    pub(super) address_space: Option<u64>,
    pub(super) descriptors: Option<u64>,
    pub(super) processes: Option<u64>,
    pub(super) groups: Vec<PathBuf>,
}

impl Limits {
    /// Returns `command` under these limits, executed by `xtask`, with its environment.
    pub(super) fn around(&self, xtask: &std::path::Path, command: &Command) -> Command {
        let mut limited = Command::new(xtask);
        limited.arg("torture-limit");
        let limits = [
            ("--address-space", self.address_space),
            ("--descriptors", self.descriptors),
            ("--processes", self.processes),
        ];
        for (name, limit) in limits {
            limited.args(limit.into_iter().flat_map(|limit| [name.to_owned(), limit.to_string()]));
        }
        for group in &self.groups {
            limited.arg("--group").arg(group);
        }
        limited.arg("--").arg(command.get_program()).args(command.get_args());
        for (name, value) in command.get_envs() {
            if let Some(value) = value {
                limited.env(name, value);
            }
        }
        limited
    }
}
