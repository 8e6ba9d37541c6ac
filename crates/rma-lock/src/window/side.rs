//! A rank's side of a window, but for its lock.

use super::{error::WindowResult, jobs::Jobs, meeting::Meeting, memory::WindowMemory, open::Open, words::Words};
use core::sync::atomic::{AtomicBool, Ordering::Relaxed};
use rdma_fabric::{Fabric, Pod, Rank, Result};
use std::sync::Mutex;

pub(super) struct Core<T: Pod> {
    pub(super) fabric: Fabric,
    pub(super) memory: WindowMemory<T>,
    pub(super) words: Words,
    pub(super) meeting: Meeting,
    pub(super) jobs: Jobs<T>,
    pub(super) open: Open,
    /// Members that were told of an exposure and have not completed, as far as this rank knows.
    pub(super) exposed: Mutex<Vec<Rank>>,
    /// Whether puts from registered memory may still read it.
    pub(super) reads_registered: AtomicBool,
}

impl<T: Pod> Core<T> {
    /// Wait until what this rank did at `rank`, or everywhere, is visible there.
    pub(super) async fn flush(&self, rank: Option<Rank>) -> Result<()> {
        let settled = self.jobs.settle(&self.fabric, rank).await;
        let flushed = match rank {
            Some(rank) => self.fabric.flush(rank).await,
            None => {
                self.reads_registered.store(false, Relaxed);
                self.fabric.flush_all().await
            }
        };
        settled.and(flushed)
    }

    /// Wait until the buffers of what this rank did at `rank`, or everywhere, may be reused.
    pub(super) async fn flush_local(&self, rank: Option<Rank>) -> Result<()> {
        match self.reads_registered.load(Relaxed) {
            true => self.flush(rank).await,
            false => self.jobs.settle(&self.fabric, rank).await,
        }
    }

    /// [`Core::flush`] of all ranks, then meet the others, even if the flush failed: they wait for it.
    pub(super) async fn fence(&self) -> WindowResult<()> {
        let flushed = self.flush(None).await;
        self.meeting.meet(&self.fabric, &self.words).await?;
        Ok(flushed?)
    }
}
