//! Why ranks can't be started on the hosts that a file lists.

use std::{io, path::PathBuf, time::Duration};

/// Ranks could not be started on hosts.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum HostsError {
    /// The file can't be read.
    #[error("--hosts: {}: {problem}", path.display())]
    Unreadable { path: PathBuf, problem: String },
    /// A line is not of the form `HOST slots=N`.
    #[error("--hosts: {}, line {line}: {problem}", path.display())]
    Line { path: PathBuf, line: usize, problem: BadLine },
    /// The hosts have fewer slots than the job has ranks.
    #[error("--hosts: {} has {slots} slots for {ranks} ranks; a line is `HOST slots=N`", path.display())]
    TooFewSlots { path: PathBuf, slots: usize, ranks: usize },
    /// `--ranks-per-node` and `--hosts` both assign ranks to nodes.
    #[error("--ranks-per-node: the file of --hosts says how many ranks each host has")]
    RanksPerNode,
    /// The command of `ONESIDED_SSH` can't be executed.
    #[error("{command} can't be executed: {cause}")]
    NoSsh { command: String, cause: io::Error },
    /// The launcher or an agent lacks something, such as memory for a thread.
    #[error("ranks can't be started on hosts: {cause}")]
    Launcher { cause: io::Error },
    /// The host was not reached.
    #[error("host {host} can't be reached: {said}")]
    Unreachable { host: String, said: String },
    /// The host has no such program, or it can't be executed there.
    #[error("host {host} can't execute {}: {said}", program.display())]
    NoProgram { host: String, program: PathBuf, said: String },
    /// The program was executed there, but did not start ranks.
    #[error("the program on host {host} ended with {code} before it started ranks: {said}")]
    NoAgent { host: String, code: i32, said: String },
    /// The program on that host sent nothing in time.
    #[error("no message from host {host} within {within:?}: {said}")]
    Silent { host: String, within: Duration, said: String },
    /// The program on that host could not start its ranks.
    #[error("host {host}: {problem}")]
    Start { host: String, problem: String },
    /// The variable with the instructions of a launcher for an agent is malformed.
    #[error("{} is malformed: {text}", super::plan::AGENT)]
    Plan { text: String },
}

/// Why a line does not name a host.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum BadLine {
    /// ssh would interpret the name as an option, or it contains characters that names can't
    /// contain.
    #[error("`{0}` is not the name of a host")]
    Name(String),
    /// The word after the name is not `slots=N`.
    #[error("`{0}` is not of the form `slots=N`, N at least 1")]
    Slots(String),
    /// The line has more words.
    #[error("`{0}` is too much; a line is `HOST slots=N`")]
    More(String),
}
