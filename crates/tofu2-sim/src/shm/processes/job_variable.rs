//! What the launcher tells a rank about its job: one environment variable, strict to read.

use rdma_fabric::FabricError;
use std::{fmt, os::fd::RawFd, str::FromStr};

use super::super::launcher::JOB_VARIABLE;

/// The variable's content: `2 rank=0 ranks=2 segment_bytes=1048576 control=3 segments=4,5 outbox=6 inboxes=7,8`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct JobVariable {
    pub(super) rank: u32,
    pub(super) ranks: usize,
    /// Length of each segment's heap, in bytes.
    pub(super) segment_bytes: usize,
    pub(super) control: RawFd,
    /// One per rank, in rank order.
    pub(super) segments: Vec<RawFd>,
    /// See [`super::peer_memory`].
    pub(super) outbox: RawFd,
    /// One per rank, in rank order.
    pub(super) inboxes: Vec<RawFd>,
}

/// Version of the format.
const VERSION: &str = "2";

pub(super) fn malformed(problem: impl Into<String>) -> FabricError {
    FabricError::Setting { name: JOB_VARIABLE, problem: problem.into() }
}

impl fmt::Display for JobVariable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let JobVariable { rank, ranks, segment_bytes, control, segments, outbox, inboxes } = self;
        let list = |files: &[RawFd]| files.iter().map(RawFd::to_string).collect::<Vec<_>>().join(",");
        write!(
            f,
            "{VERSION} rank={rank} ranks={ranks} segment_bytes={segment_bytes} control={control} segments={} \
             outbox={outbox} inboxes={}",
            list(segments),
            list(inboxes)
        )
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
            control: number("control", field("control")?)?,
            segments: field("segments")?.split(',').map(|fd| number("segments", fd)).collect::<Result<_, _>>()?,
            outbox: number("outbox", field("outbox")?)?,
            inboxes: field("inboxes")?.split(',').map(|fd| number("inboxes", fd)).collect::<Result<_, _>>()?,
        };
        if let Some(more) = words.next() {
            return Err(malformed(format!("has {more:?} at its end")));
        }
        if variable.segments.len() != variable.ranks {
            return Err(malformed(format!("names {} segments for {} ranks", variable.segments.len(), variable.ranks)));
        }
        if variable.inboxes.len() != variable.ranks {
            return Err(malformed(format!("names {} inboxes for {} ranks", variable.inboxes.len(), variable.ranks)));
        }
        if variable.rank as usize >= variable.ranks {
            return Err(malformed(format!("is for rank {} of {} ranks", variable.rank, variable.ranks)));
        }
        let mut files = variable.segments.clone();
        files.extend(&variable.inboxes);
        files.extend([variable.control, variable.outbox]);
        files.sort_unstable();
        if files[0] < 3 || files.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(malformed("names a standard stream, or one file twice"));
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
        let variable = JobVariable {
            rank: 2,
            ranks: 3,
            segment_bytes: 1 << 20,
            control: 3,
            segments: vec![4, 9, 5],
            outbox: 6,
            inboxes: vec![7, 8, 10],
        };
        assert_eq!(variable.to_string().parse(), Ok(variable));
    }

    #[test]
    fn anything_else_is_refused() {
        let good = "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8";
        assert!(good.parse::<JobVariable>().is_ok());
        let wrong = [
            "",
            "2",
            "1 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=7 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5",
            "2 rank=2 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=1 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,4 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=4 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=0 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=-3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=-1 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=0 segment_bytes=64 control=3 segments= outbox=6 inboxes=",
            "2 ranks=2 rank=0 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5 outbox=6 inboxes=7,8 x",
            "2 rank=0 ranks=2 segment_bytes=64 control=3 segments=4,5, outbox=6 inboxes=7,8",
        ];
        for text in wrong {
            let error = text.parse::<JobVariable>().unwrap_err();
            assert!(matches!(error, FabricError::Setting { name: JOB_VARIABLE, .. }), "{text:?}: {error}");
        }
    }
}
