//! The ends of ranks' processes.

use std::{fmt, os::unix::process::ExitStatusExt, process::ExitStatus};
use tofu2_sim::shm::part::SignalName;

/// The end of a rank's process, as its launcher observes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum RankEnd {
    /// With this code.
    Exited(i32),
    /// By this signal.
    Killed(i32),
    /// Unknown, for example because its host is unreachable.
    Unheard(String),
}

impl RankEnd {
    pub(super) fn is_good(&self) -> bool {
        *self == RankEnd::Exited(0)
    }

    /// Returns the exit code, or 128 + signal, as shells do; 1 if it is unknown.
    pub(super) fn code(&self) -> i32 {
        match self {
            RankEnd::Exited(code) => *code,
            RankEnd::Killed(signal) => 128 + signal,
            RankEnd::Unheard(_) => 1,
        }
    }
}

impl From<ExitStatus> for RankEnd {
    fn from(status: ExitStatus) -> Self {
        match status.signal() {
            Some(signal) => RankEnd::Killed(signal),
            None => RankEnd::Exited(status.code().unwrap_or(1)),
        }
    }
}

impl fmt::Display for RankEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RankEnd::Exited(0) => f.write_str("ended well"),
            RankEnd::Exited(code) => write!(f, "exited with {code}"),
            RankEnd::Killed(signal) => write!(f, "killed by {}", SignalName(*signal)),
            RankEnd::Unheard(why) => f.write_str(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_those_of_shells() {
        assert_eq!(RankEnd::from(ExitStatus::from_raw(3 << 8)), RankEnd::Exited(3));
        let killed = RankEnd::from(ExitStatus::from_raw(9));
        assert_eq!((killed.code(), &*killed.to_string()), (137, "killed by signal 9 (SIGKILL)"));
        assert!(RankEnd::Exited(0).is_good() && !killed.is_good());
        assert_eq!(RankEnd::Unheard("its host is gone".into()).code(), 1);
    }
}
