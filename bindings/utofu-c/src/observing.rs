//! Counters and traces of this rank, for `onesided run --stats` and `--trace`.
//!
//! # Safety
//! The function that C's `exit` calls takes locks that no thread holds while it ends the process, and
//! does not unwind.

#![allow(unsafe_code)]

use observe::{ObserveError, ProcessRecord, Recorder, observed_queue};
use rdma_fabric::{Fabric, Rank, control_queue::Queue};
use std::sync::OnceLock;

/// The record of this process.
static RECORD: OnceLock<ProcessRecord> = OnceLock::new();

/// Starts to record this rank, if the launcher asks for it.
///
/// # Errors
/// [`ObserveError::Variable`].
pub(crate) fn start(rank: Rank) -> Result<Option<Recorder>, ObserveError> {
    let Some(record) = ProcessRecord::from_env(rank)? else { return Ok(None) };
    let recorder = record.recorder().clone();
    if RECORD.set(record).is_ok() {
        // SAFETY: the function has the required signature and meets the module's rule.
        unsafe { libc::atexit(write) };
    }
    Ok(Some(recorder))
}

extern "C" fn write() {
    if let Some(Err(error)) = RECORD.get().map(ProcessRecord::write) {
        crate::job::report(&format!("utofu: error: {error}\n"));
    }
}

/// Returns a queue whose commands are recorded.
pub(crate) fn queue(fabric: &Fabric, recorder: Option<&Recorder>, queue: Box<dyn Queue>) -> Box<dyn Queue> {
    match recorder {
        None => queue,
        Some(recorder) => observed_queue(fabric, queue, recorder.clone()),
    }
}
