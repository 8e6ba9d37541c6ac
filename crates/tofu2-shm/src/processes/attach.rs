//! Attaching a process that a launcher started to its job, through one environment variable.

#![deny(clippy::arithmetic_side_effects)]

use super::{
    super::{
        endpoint::Endpoint,
        job::{Job, holder::Holder},
    },
    broker::BrokerAddress,
    descriptors::FIRST,
    inherit,
    launcher::{JOB_VARIABLE, VIRTUAL_JOB},
    memory_file,
    peer_memory::PeerMemories,
    start::monotonic_ns,
};
use crate::{
    job::Control,
    memory::{Mapping, allocator::Pages, layout, mapping::MappedFile},
};
use core::{sync::atomic::Ordering::Relaxed, time::Duration};
use rdma_fabric::{FabricError, Rank};
use std::{fmt, os::fd::RawFd, str::FromStr, sync::Arc, time::Instant};

/// Attaches to the job, as described at [`crate::from_env`]; as an attached process if
/// `process` is [`Holder::Attached`].
pub(crate) fn from_env(process: Holder) -> Result<Option<Endpoint>, FabricError> {
    let Some(text) = std::env::var_os(JOB_VARIABLE) else { return Ok(None) };
    let variable: JobVariable = text.to_str().ok_or_else(|| malformed("is no text"))?.parse()?;
    attach(&variable, process).map(Some)
}

/// Attaches to the job that a variable identifies.
pub(crate) fn attach(variable: &JobVariable, process: Holder) -> Result<Endpoint, FabricError> {
    layout::check_page(rustix::param::page_size())?;
    let JobVariable { rank, ranks, segment_bytes, memory, job } = *variable;
    let len = layout::segment_at(ranks, segment_bytes, ranks)
        .ok_or_else(|| malformed("has too many ranks or too long segments"))?;
    let wrong = |problem| malformed(format!("names file {memory}, which {problem}"));
    let file = inherit::reopen(memory).map_err(wrong)?;
    memory_file::examine(&file, len).map_err(wrong)?;
    let whole = MappedFile::new(&file, len)?;
    let control_bytes = layout::control_bytes(ranks).ok_or_else(|| malformed("has too many ranks"))?;
    let control = Mapping::of_file(&whole, 0, control_bytes, control_bytes);
    let (control, plan) = Control::open(control, ranks, segment_bytes)?;
    if control.word(layout::JOB).load(Relaxed) != job {
        return Err(wrong("is another job's"));
    }
    let broker = BrokerAddress::of(&control);
    if !control.take(rank as usize, process) {
        return Err(FabricError::RankTaken { rank: Rank::new(rank) });
    }
    let segments = plan.segments_in(&whole);
    let age = Duration::from_nanos(monotonic_ns().saturating_sub(plan.start_ns));
    let start = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let peers = PeerMemories::new(broker, Rank::new(rank), ranks);
    let pages = Pages::File { file, heap_at: plan.segment_at(rank as usize).saturating_add(layout::HEAP) };
    let job = Arc::new(Job::new(control, plan, segments, start).of_processes(peers));
    let endpoint = Endpoint::new(job.clone(), Rank::new(rank), pages)?;
    job.attached();
    Ok(endpoint)
}

// ----- the environment variable, parsed strictly -----

/// The variable's content: `3 rank=0 ranks=2 segment_bytes=1048576 memory=3 job=1f`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct JobVariable {
    pub(crate) rank: u32,
    pub(crate) ranks: usize,
    /// Length of each segment's heap, in bytes.
    pub(crate) segment_bytes: usize,
    /// The descriptor number under which the process has inherited the job's file.
    pub(crate) memory: RawFd,
    /// The job's number, which is also stored in the file.
    pub(crate) job: u64,
}

/// The version of the format.
const VERSION: &str = "3";

pub(crate) fn malformed(problem: impl Into<String>) -> FabricError {
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
        match words.next() {
            Some(VERSION) => {}
            Some(VIRTUAL_JOB) => {
                return Err(malformed(
                    "names a rank in virtual time, which this program cannot be: it needs ranks that share memory",
                ));
            }
            _ => return Err(malformed(format!("is not of version {VERSION}, which this program was built for"))),
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
        if variable.memory < FIRST {
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
    fn schedules_read_back_as_written() {
        let variable = JobVariable { rank: 2, ranks: 3, segment_bytes: 1 << 20, memory: 9, job: u64::MAX - 1 };
        assert_eq!(variable.to_string().parse(), Ok(variable));
    }

    #[test]
    fn a_job_in_virtual_time_is_refused_by_its_name() {
        let error = format!("{VIRTUAL_JOB} 1 rank=0 ranks=2 file=5").parse::<JobVariable>().unwrap_err();
        assert!(error.to_string().contains("virtual time"), "{error}");
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
