//! The groups of the five papers' benchmarks: the published figures in virtual time, and operations between
//! threads of this machine.

mod published;
#[cfg(target_os = "linux")]
pub(crate) mod threads;

pub(crate) use published::{Reproduced, published};

use repro::progress::Progress;
use std::io::IsTerminal;

/// Returns a progress bar; without a terminal, a progress that prints nothing.
pub(crate) fn progress() -> Progress {
    if std::io::stderr().is_terminal() { Progress::stderr() } else { Progress::silent() }
}
