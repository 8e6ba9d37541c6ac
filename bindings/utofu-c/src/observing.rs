//! Counters and traces of this rank, for `onesided run --stats` and `--trace`.
//!
//! # Safety
//! The function that C's `exit` calls takes locks that no thread holds while it ends the process, and
//! does not unwind.

#![allow(unsafe_code)]

use observe::{Gathering, ObserveError, RecordWriter, Recorder, observed, observed_queue};
use rdma_fabric::{Fabric, control_queue::Queue};
use std::sync::OnceLock;

/// The records of this process, and where they are written when it ends.
static RECORDS: OnceLock<(Gathering, RecordWriter)> = OnceLock::new();

/// Starts to observe `fabric`, if the launcher asks for it.
///
/// # Errors
/// [`ObserveError::Variable`].
pub(crate) fn start(fabric: &Fabric) -> Result<Option<Recorder>, ObserveError> {
    let Some(writer) = RecordWriter::from_env()? else { return Ok(None) };
    let gathering = Gathering::new(writer.detail, 1);
    let recorder = gathering.begin(fabric.rank());
    if RECORDS.set((gathering, writer)).is_ok() {
        // SAFETY: the function has the required signature and meets the module's rule.
        unsafe { libc::atexit(write) };
    }
    Ok(Some(recorder))
}

extern "C" fn write() {
    if let Some((gathering, writer)) = RECORDS.get()
        && let Err(error) = writer.write(&gathering.records())
    {
        crate::job::report(&format!("utofu: error: {error}\n"));
    }
}

/// Returns the fabric for calls that are to be recorded.
pub(crate) fn fabric(fabric: &Fabric, recorder: Option<&Recorder>) -> Fabric {
    recorder.map_or_else(|| fabric.clone(), |recorder| observed(fabric, recorder.clone()))
}

/// Returns a queue whose commands are recorded.
pub(crate) fn queue(fabric: &Fabric, recorder: Option<&Recorder>, queue: Box<dyn Queue>) -> Box<dyn Queue> {
    match recorder {
        None => queue,
        Some(recorder) => observed_queue(fabric, queue, recorder.clone()),
    }
}
