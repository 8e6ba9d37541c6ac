//! How a process that a launcher started finds its job.

use super::super::{
    control::Control, endpoint::Endpoint, job::Job, launcher::JOB_VARIABLE, layout, mapping::Mapping, own::Pages,
};
use super::{
    inherit,
    job_variable::{JobVariable, malformed},
    memory_file,
    peer_memory::PeerMemories,
    start::monotonic_ns,
};
use core::{
    sync::atomic::{AtomicBool, Ordering::SeqCst},
    time::Duration,
};
use rdma_fabric::{FabricError, Rank};
use std::{
    os::fd::{OwnedFd, RawFd},
    sync::Arc,
    time::Instant,
};

/// See [`Endpoint::from_env`].
pub(in super::super) fn from_env() -> Result<Option<Endpoint>, FabricError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let Some(text) = std::env::var_os(JOB_VARIABLE) else { return Ok(None) };
    let variable: JobVariable = text.to_str().ok_or_else(|| malformed("is no text"))?.parse()?;
    if TAKEN.swap(true, SeqCst) {
        return Err(malformed("was used before in this process"));
    }
    attach(&variable).map(Some)
}

fn attach(variable: &JobVariable) -> Result<Endpoint, FabricError> {
    let nobody = inherit::NoOwnFiles::new()
        .ok_or_else(|| malformed("was inherited by a process that has launched a job of its own"))?;
    layout::check_page(rustix::param::page_size())?;
    let JobVariable { ranks, segment_bytes, .. } = *variable;
    let control_bytes = layout::control_bytes(ranks).ok_or_else(|| malformed("has too many ranks"))?;
    let bytes = layout::segment_bytes(segment_bytes).ok_or_else(|| malformed("has too long segments"))?;
    let take = |fd: RawFd, len: usize| -> Result<OwnedFd, FabricError> {
        let file =
            inherit::adopt(fd, &nobody).map_err(|problem| malformed(format!("names file {fd}, which {problem}")))?;
        memory_file::examine(&file, len).map_err(|problem| malformed(format!("names file {fd}, which {problem}")))?;
        Ok(file)
    };
    // All of them first: a file that is wrong must not leave others open across an exec.
    let control = take(variable.control, control_bytes)?;
    let files = variable.segments.iter().map(|&fd| take(fd, bytes)).collect::<Result<Vec<_>, _>>()?;
    let socket = |fd: RawFd| {
        inherit::adopt_socket(fd, &control).map_err(|problem| malformed(format!("names file {fd}, which {problem}")))
    };
    let outbox = socket(variable.outbox)?;
    let inboxes = variable.inboxes.iter().map(|&fd| socket(fd)).collect::<Result<Vec<_>, _>>()?;
    let control = Mapping::of_file(&control, control_bytes, control_bytes)?;
    let (control, plan) = Control::open(control, ranks, segment_bytes)?;
    let segments =
        files.iter().map(|file| Mapping::of_file(file, bytes, layout::HEAP)).collect::<Result<Box<[_]>, _>>()?;
    let age = Duration::from_nanos(monotonic_ns().saturating_sub(plan.start_ns));
    let start = Instant::now().checked_sub(age).unwrap_or_else(Instant::now);
    let own = files.into_iter().nth(variable.rank as usize).ok_or_else(|| malformed("names no own segment"))?;
    let peers = PeerMemories::new(outbox, inboxes);
    let job = Arc::new(Job::new(control, plan, segments, start).of_processes(peers));
    let endpoint = Endpoint::new(job.clone(), Rank::new(variable.rank), Pages::File(own))?;
    job.attached();
    Ok(endpoint)
}
