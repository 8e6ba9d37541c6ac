//! The cores on which the ranks of a measurement run.

use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use std::io;

/// Returns the cores that the calling thread may use, at least one.
///
/// # Errors
/// Of the system call.
pub fn allowed_cores() -> io::Result<Vec<usize>> {
    let set = sched_getaffinity(None)?;
    Ok((0..CpuSet::MAX_CPU).filter(|&core| set.is_set(core)).collect())
}

/// Lets the calling thread run on `core` only.
///
/// # Errors
/// If there is no such core, or the thread may not use it.
pub fn pin(core: usize) -> io::Result<()> {
    if core >= CpuSet::MAX_CPU {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, format!("there is no core {core}")));
    }
    let mut set = CpuSet::new();
    set.set(core);
    Ok(sched_setaffinity(None, &set)?)
}

/// Lets the calling thread, that of rank `rank`, run on one of the cores that it may use: on its own if there are as many
/// as ranks. A thread of rank 1 that the scheduler puts beside that of rank 0 would wait for whole time slices.
///
/// # Errors
/// As [`pin`].
pub fn pin_rank(rank: usize) -> io::Result<()> {
    let allowed = allowed_cores()?;
    pin(allowed[rank % allowed.len()])
}
