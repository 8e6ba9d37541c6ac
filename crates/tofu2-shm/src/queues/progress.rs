//! A thread that executes commands handed over to a rank's session queues while the rank computes.

use super::{executor::Executor, own::OwnQueues};
use crate::{
    job::Job,
    memory::{Mapping, layout},
    waiting::doorbell::Watch,
};
use core::sync::atomic::{AtomicBool, AtomicU32, Ordering::SeqCst};
use rdma_fabric::{FabricError, Rank, Result};
use std::sync::Arc;

/// A thread that executes commands handed over to a rank, for programs that compute for a long time
/// without making calls.
#[derive(Debug)]
pub(crate) struct ProgressThread {
    segment: Arc<Mapping>,
    closed: Arc<AtomicBool>,
    /// The thread, until it is joined.
    thread: Option<std::thread::JoinHandle<()>>,
}

impl ProgressThread {
    /// Starts the thread.
    ///
    /// # Errors
    /// [`FabricError::System`].
    pub(crate) fn start(
        job: Arc<Job>,
        me: Rank,
        segment: Arc<Mapping>,
        taken: Arc<AtomicU32>,
        queues: Arc<OwnQueues>,
    ) -> Result<Self> {
        let closed = Arc::new(AtomicBool::new(false));
        let mut progress = ProgressThread { segment: segment.clone(), closed: closed.clone(), thread: None };
        let run = move || {
            let executor = Executor { job: &job, me, segment: &segment, taken: &taken, queues: &queues };
            let mut seen = None;
            while !closed.load(SeqCst) {
                let changes = job.control.changes();
                if queues.serve(&executor, seen != Some(changes)) || seen != Some(changes) {
                    seen = Some(changes);
                    continue;
                }
                let parking = segment.prepare_park(Watch::Nothing);
                let pending = segment.word(layout::QUEUES_PENDING).load(SeqCst) != 0;
                let nobody = !queues.has_sessions();
                if (!pending || nobody) && !closed.load(SeqCst) && job.control.changes() == changes {
                    parking.park(job.longest_sleep());
                }
            }
        };
        let thread = std::thread::Builder::new().name(format!("queues of {me}")).spawn(run);
        let refused = |error: std::io::Error| FabricError::System {
            call: &"pthread_create",
            errno: error.raw_os_error().unwrap_or(0),
        };
        progress.thread = Some(thread.map_err(refused)?);
        Ok(progress)
    }
}

impl Drop for ProgressThread {
    /// Waits for the thread. If the process ended with a command half executed, the command's queue
    /// would wait until another rank noticed, although the rank has left properly.
    fn drop(&mut self) {
        self.closed.store(true, SeqCst);
        self.segment.ring();
        // The thread does not panic, and if it did, nothing could be done about it here.
        let _ = self.thread.take().map(std::thread::JoinHandle::join);
    }
}
