//! Libraries that libfabric brings along and that take signals for themselves.
//!
//! Those of InfiniPath and Omni-Path install handlers when they are loaded, before `main`. On SIGINT or
//! SIGTERM these end the process with code 1, whatever else would handle the signal. They don't if a
//! variable is set, which has to be there from the start.

use std::{env, os::unix::process::CommandExt, process::Command};

/// The variables.
pub(super) const VARIABLES: [&str; 2] = ["HFI_NO_BACKTRACE", "IPATH_NO_BACKTRACE"];

/// Executes this program again with the variables, in this process, unless they are set. Ranks inherit
/// them. If that is impossible, signals end the process as those libraries want.
pub(super) fn make_quiet() {
    if VARIABLES.iter().all(|name| env::var_os(name).is_some()) {
        return;
    }
    if let Ok(program) = env::current_exe() {
        let _ = Command::new(program).args(env::args_os().skip(1)).envs(VARIABLES.map(|name| (name, "1"))).exec();
    }
}
