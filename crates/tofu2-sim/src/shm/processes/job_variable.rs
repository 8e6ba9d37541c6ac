//! What the launcher tells a rank about its job: one environment variable, strict to read.

use rdma_fabric::FabricError;
use std::{fmt, os::fd::RawFd, str::FromStr};

use super::super::launcher::JOB_VARIABLE;

/// The variable's content: `3 rank=0 ranks=2 segment_bytes=1048576 memory=3 job=1f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobVariable {
    pub(super) rank: u32,
    pub(super) ranks: usize,
    /// Length of each segment's heap, in bytes.
    pub(super) segment_bytes: usize,
    /// Under which number the process has inherited the job's file.
    pub(super) memory: RawFd,
    /// Which job it is; the file says the same.
    pub(super) job: u64,
}

/// Version of the format.
const VERSION: &str = "3";

pub(super) fn malformed(problem: impl Into<String>) -> FabricError {
    FabricError::setting(JOB_VARIABLE, problem)
}

impl fmt::Display for JobVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobVariable { rank, ranks, segment_bytes, memory, job } = self;
        write!(f, "{VERSION} rank={rank} ranks={ranks} segment_bytes={segment_bytes} memory={memory} job={job:x}")
    }
}

impl FromStr for JobVariable {
    type Err = FabricError;

    fn from_str(text: &str) -> Result<Self, FabricError> {
        let mut words = text.split(' ');
        if words.next() != Some(VERSION) {
            return Err(malformed(format!("is not of version {VERSION}, which this program was built for")));
        }
        let mut field = |name: &str| {
            let word = words.next().unwrap_or_default();
            word.strip_prefix(name)
                .and_then(|rest| rest.strip_prefix('='))
                .ok_or_else(|| malformed(format!("has {word:?} where {name}=... should be")))
        };
        let variable = JobVariable {
            rank: number("rank", field("rank")?)?,
            ranks: number("ranks", field("ranks")?)?,
            segment_bytes: number("segment_bytes", field("segment_bytes")?)?,
            memory: number("memory", field("memory")?)?,
            job: {
                let text = field("job")?;
                u64::from_str_radix(text, 16).map_err(|_| malformed(format!("has {text:?} for job")))?
            },
        };
        if let Some(more) = words.next() {
            return Err(malformed(format!("has {more:?} at its end")));
        }
        if variable.rank as usize >= variable.ranks {
            return Err(malformed(format!("is for rank {} of {} ranks", variable.rank, variable.ranks)));
        }
        if variable.memory < 3 {
            return Err(malformed("names a standard stream"));
        }
        Ok(variable)
    }
}

fn number<T: FromStr>(name: &str, text: &str) -> Result<T, FabricError> {
    text.parse().map_err(|_| malformed(format!("has {text:?} for {name}")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_is_read() {
        let variable = JobVariable { rank: 2, ranks: 3, segment_bytes: 1 << 20, memory: 9, job: u64::MAX - 1 };
        assert_eq!(variable.to_string().parse(), Ok(variable));
    }

    #[test]
    fn anything_else_is_refused() {
        let good = "3 rank=0 ranks=2 segment_bytes=64 memory=3 job=f";
        assert!(good.parse::<JobVariable>().is_ok());
        let wrong = [
            "",
            "3",
            "2 rank=0 ranks=2 segment_bytes=64 memory=3 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=3",
            "3 rank=0 ranks=2 segment_bytes=64 job=f",
            "3 rank=2 ranks=2 segment_bytes=64 memory=3 job=f",
            "3 rank=0 ranks=0 segment_bytes=64 memory=3 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=2 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=-3 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=3,4 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=3 job=",
            "3 rank=0 ranks=2 segment_bytes=64 memory=3 job=fffffffffffffffff",
            "3 rank=-1 ranks=2 segment_bytes=64 memory=3 job=f",
            "3 ranks=2 rank=0 segment_bytes=64 memory=3 job=f",
            "3 rank=0 ranks=2 segment_bytes=64 memory=3 job=f x",
        ];
        for text in wrong {
            let error = text.parse::<JobVariable>().unwrap_err();
            assert!(
                matches!(&error, FabricError::Setting(setting) if setting.name == JOB_VARIABLE),
                "{text:?}: {error}"
            );
        }
    }
}
