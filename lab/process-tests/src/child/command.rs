//! Commands that start children, outside of any job that surrounds the test.

use std::{
    env,
    ffi::OsStr,
    process::{Command, Stdio},
};

/// The variables of jobs of ours, one of which may surround the test.
const SETTINGS: &str = "ONESIDED_";

/// Returns the command that runs this program with `words`, outside of any job of ours. Its standard input
/// and output are pipes.
///
/// # Panics
/// If the system does not report the path of this program.
pub fn this_program<W: AsRef<OsStr>>(words: impl IntoIterator<Item = W>) -> Command {
    program(env::current_exe().expect("the path of this program"), words)
}

/// Returns the command that runs the program at `path` with `words`, like [`this_program`].
pub fn program<W: AsRef<OsStr>>(path: impl AsRef<OsStr>, words: impl IntoIterator<Item = W>) -> Command {
    let mut command = Command::new(path);
    command.args(words).stdin(Stdio::piped()).stdout(Stdio::piped());
    for (setting, _) in env::vars_os().filter(|(name, _)| name.to_string_lossy().starts_with(SETTINGS)) {
        command.env_remove(setting);
    }
    command
}
