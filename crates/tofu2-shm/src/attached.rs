//! Attached processes: ranks in processes whose `main` belongs to other code, such as a C program
//! that calls a library. No code of this crate calls an attached process's program or sees it
//! return: the end of its process determines how it ended.

use super::{
    endpoint::Endpoint,
    job::Job,
    memory::allocator::Pages,
    options::{JobOptions, SegmentBytes},
};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rdma_fabric::{Fabric, FabricError, Rank};
use std::env::{self, VarError};

/// The environment variable with the number of bytes that an attached process without a launcher
/// can register.
pub const SEGMENT_VARIABLE: &str = "ONESIDED_SEGMENT_BYTES";

/// Returns the rank that this process is, as an *attached process*: for a library whose callers own
/// `main`, such as a C library, between its "open" and "close" calls.
///
/// An attached process started by a [`Launcher`](crate::Launcher) is a rank of that job, as
/// with [`from_env`](crate::from_env), except for its end. It has left when the last clone of
/// its fabric and its last region are dropped, or when the process has ended with code 0, by C's
/// `exit` or by returning from `main`; operations that it detached end with the process. So the
/// fabric may be kept in a static, which is never dropped. An attached process that is ended by a
/// signal, or that ends with another code, is lost.
///
/// Until the process has ended, its peers wait for all its outstanding operations. Memory that it
/// allocated remains afterwards, if it was not dropped; existing memory that it registered
/// disappears with the process ([`FabricError::StaleRegion`]).
///
/// If the process was started by a command such as a script, the exit code of that command replaces
/// its own: an attached process has left when its command has ended with 0, even if it was killed
/// and the script ignored that, or still runs.
///
/// Without a launcher ([`JOB_VARIABLE`](crate::JOB_VARIABLE) not set) the attached process is
/// the only rank of a separate job, in private memory, with
/// [`DEFAULT_SEGMENT_BYTES`](crate::DEFAULT_SEGMENT_BYTES) to register, or the number in
/// [`SEGMENT_VARIABLE`] ([`SegmentBytes`]). [Aborting](Fabric::abort) such a job does not end the
/// process, and no watchdog detects a wait that only the rank itself could end.
///
/// The files that stay open in the process have descriptors from 3 on, even if the program was
/// started with closed standard streams, and are closed on exec, except for the one inherited from
/// the launcher.
///
/// A process that an attached process forks is not the rank, though it has a copy of the rank's
/// handles. It may end by `_exit` or execute another program, without any effect on the job; it
/// must neither use a handle nor drop one.
///
/// # Errors
/// [`FabricError::RankTaken`] if another process, or this one, is already the rank.
/// [`FabricError::Setting`] if a variable is malformed, or refers to a file that is not the job's,
/// so that a damaged job never turns into many one-rank jobs. [`FabricError::Corrupt`],
/// [`FabricError::System`]; [`FabricError::Unsupported`] under a launcher on systems other than
/// Linux.
pub fn attach_process() -> Result<Fabric, FabricError> {
    #[cfg(target_os = "linux")]
    let rank = super::processes::attach::from_env(super::job::holder::Holder::Attached)?.map(Endpoint::fabric);
    #[cfg(not(target_os = "linux"))]
    let rank = super::processes::launcher::from_env()?;
    match rank {
        Some(rank) => Ok(rank),
        None => alone().map(Endpoint::fabric),
    }
}

/// Makes this process the only rank of a job.
fn alone() -> Result<Endpoint, FabricError> {
    static TAKEN: AtomicBool = AtomicBool::new(false);
    let mut options = JobOptions::new(1);
    if let Some(SegmentBytes(bytes)) = segment_bytes()? {
        options.segment_bytes = bytes;
    }
    let job = Job::of_threads_with(options.plan(0)?, options.queues)?;
    let rank = Rank::new(0);
    if TAKEN.swap(true, Relaxed) {
        return Err(FabricError::RankTaken { rank });
    }
    Endpoint::new(job, rank, Pages::Private)
}

/// Returns the value of [`SEGMENT_VARIABLE`].
fn segment_bytes() -> Result<Option<SegmentBytes>, FabricError> {
    match env::var(SEGMENT_VARIABLE) {
        Ok(text) => text
            .parse()
            .map(Some)
            .map_err(|problem| FabricError::setting(SEGMENT_VARIABLE, format!("`{text}`: {problem}"))),
        Err(VarError::NotPresent) => Ok(None),
        Err(problem) => Err(FabricError::setting(SEGMENT_VARIABLE, problem.to_string())),
    }
}
