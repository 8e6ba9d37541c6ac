//! How a process that a launcher started finds its job.

use super::super::{
    control::Control,
    endpoint::Endpoint,
    job::Job,
    launcher::JOB_VARIABLE,
    layout,
    mapping::{MappedFile, Mapping},
    own::Pages,
};
use super::{
    desk::Desk,
    inherit,
    job_variable::{JobVariable, malformed},
    memory_file,
    peer_memory::PeerMemories,
    start::monotonic_ns,
};
use core::{sync::atomic::Ordering::Relaxed, time::Duration};
use rdma_fabric::{FabricError, Rank};
use std::{sync::Arc, time::Instant};

/// See [`super::super::from_env`].
pub(in super::super) fn from_env() -> Result<Option<Endpoint>, FabricError> {
    let Some(text) = std::env::var_os(JOB_VARIABLE) else { return Ok(None) };
    let variable: JobVariable = text.to_str().ok_or_else(|| malformed("is no text"))?.parse()?;
    attach(&variable).map(Some)
}

fn attach(variable: &JobVariable) -> Result<Endpoint, FabricError> {
    layout::check_page(rustix::param::page_size())?;
    let JobVariable { rank, ranks, segment_bytes, memory, job } = *variable;
    let len = layout::segment_at(ranks, segment_bytes, ranks)
        .ok_or_else(|| malformed("has too many ranks or too long segments"))?;
    let wrong = |problem| malformed(format!("names file {memory}, which {problem}"));
    let file = inherit::open_anew(memory).map_err(wrong)?;
    memory_file::examine(&file, len).map_err(wrong)?;
    let whole = MappedFile::new(&file, len)?;
    let control_bytes = layout::control_bytes(ranks).ok_or_else(|| malformed("has too many ranks"))?;
    let control = Mapping::of_file(&whole, 0, control_bytes, control_bytes);
    let (control, plan) = Control::open(control, ranks, segment_bytes)?;
    if control.word(layout::JOB).load(Relaxed) != job {
        return Err(wrong("is another job's"));
    }
    let desk = Desk::of(&control);
    if !control.take(rank as usize) {
        return Err(FabricError::RankTaken { rank: Rank::new(rank) });
    }
    let segments = plan.segments_in(&whole);
    let age = Duration::from_nanos(monotonic_ns().saturating_sub(plan.start_ns));
    let start = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let peers = PeerMemories::new(desk, Rank::new(rank), ranks);
    let pages = Pages::File { file, heap_at: plan.segment_at(rank as usize) + layout::HEAP };
    let job = Arc::new(Job::new(control, plan, segments, start).of_processes(peers));
    let endpoint = Endpoint::new(job.clone(), Rank::new(rank), pages)?;
    job.attached();
    Ok(endpoint)
}
