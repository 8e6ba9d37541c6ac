//! The end of a rank's process.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};

/// The outcome of a reaped process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Exited(i32),
    Killed(i32),
    /// Unknown, because other code reaped it.
    Unknown,
}

/// The exit code for a rank whose own is unknown or does not reflect the rank's failure.
pub(crate) const UNKNOWN: i32 = 1;

impl End {
    pub(crate) fn of(status: ExitStatus) -> Self {
        match (status.code(), status.signal()) {
            (Some(code), _) => End::Exited(code),
            (None, Some(signal)) => End::Killed(signal),
            (None, None) => End::Unknown,
        }
    }

    /// Returns the exit code, or 128 + signal, as shells do.
    pub(crate) fn code(self) -> i32 {
        match self {
            End::Exited(code) => code,
            End::Killed(signal) => 128 + signal,
            End::Unknown => UNKNOWN,
        }
    }

    /// Describes the end. `lost` is true if its rank was lost; `sent` is the signal that the
    /// launcher sent it last.
    pub(crate) fn in_words(self, lost: bool, sent: Option<i32>) -> String {
        match self {
            End::Exited(0) if lost => "exited with 0 before its end".to_owned(),
            End::Exited(0) => "ended well".to_owned(),
            End::Exited(code) => format!("exited with {code}"),
            End::Killed(signal) if sent == Some(signal) => {
                format!("killed by {}, which the launcher sent", SignalName(signal))
            }
            End::Killed(signal) => format!("killed by {}", SignalName(signal)),
            End::Unknown => "was reaped by another process: how it ended is unknown".to_owned(),
        }
    }
}

/// A signal in messages: its number and, if it is a common one, its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SignalName(pub i32);

impl fmt::Display for SignalName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "signal {}", self.0)?;
        match signal_hook::low_level::signal_name(self.0) {
            Some(name) => write!(f, " ({name})"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn signals_have_names_and_senders() {
        assert_eq!(End::of(ExitStatus::from_raw(9)).in_words(true, None), "killed by signal 9 (SIGKILL)");
        assert_eq!(End::Killed(15).in_words(true, Some(15)), "killed by signal 15 (SIGTERM), which the launcher sent");
        assert_eq!(End::Killed(6).in_words(true, Some(15)), "killed by signal 6 (SIGABRT)");
        assert_eq!(End::of(ExitStatus::from_raw(0)).in_words(true, None), "exited with 0 before its end");
        assert_eq!(End::of(ExitStatus::from_raw(3 << 8)).in_words(true, None), "exited with 3");
        assert_eq!((End::Killed(9).code(), End::Exited(7).code(), End::Unknown.code()), (137, 7, 1));
    }
}
