//! Ending a whole job from one of its ranks.

use super::Fabric;
use crate::Result;
use core::convert::Infallible;

impl Fabric {
    /// Ends the whole job: all ranks, in any state. The job fails with `text`, the number of this
    /// rank and the exit code `code`; a code of 0 counts as 1, since a job that was aborted has not
    /// succeeded.
    ///
    /// It never returns `Ok`. A program exits with `fabric.abort(text, code)?`, so its destructors
    /// run as after any other error. (A method that did not return at all would have to end the
    /// process, including the threads of other ranks, or leave the caller's stack by a panic that
    /// destructors and `catch_unwind` may observe; a future that stays pending would block
    /// executors that are not part of the job.)
    ///
    /// The effect on the ranks depends on how they run; if several ranks abort, one of the aborts
    /// takes effect:
    /// * Processes are killed by their launcher, within a second, whether or not they call the
    ///   fabric. Until then they behave like threads.
    /// * Threads can't be ended from outside. Every wait of every rank, and every operation, fails
    ///   with [`FabricError::Aborted`](crate::FabricError::Aborted), which contains this rank;
    ///   waits for time end early. The job ends when all programs have returned.
    /// * In virtual time, no rank is polled again once the calling rank returns or waits.
    ///
    /// ```
    /// use rdma_fabric::{Fabric, ProgramResult};
    ///
    /// async fn read(fabric: Fabric, file: Option<&str>) -> ProgramResult<usize> {
    ///     let Some(file) = file else { match fabric.abort("no file", 3)? {} };
    ///     Ok(file.len())
    /// }
    /// ```
    ///
    /// # Errors
    /// Always: [`FabricError::Aborted`](crate::FabricError::Aborted), or
    /// [`FabricError::Unsupported`](crate::FabricError::Unsupported) where the provider can't do
    /// it; a rank whose program returns that error is then lost like any other that fails.
    #[cold]
    pub fn abort(&self, text: &str, code: i32) -> Result<Infallible> {
        Err(self.provider().abort(text, if code == 0 { 1 } else { code }))
    }
}
