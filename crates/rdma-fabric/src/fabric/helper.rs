//! Helpers: tasks that a rank runs alongside its program, each on a separate core.

use super::{Fabric, ProgramResult};
use crate::Result;
use core::future::Future;

impl Fabric {
    /// Runs `task` alongside the program on a separate core: a thread in wall-clock time, an
    /// additional CPU of the rank in virtual time. `name` identifies it in errors, threads and
    /// timelines. For libraries whose communication continues while the program computes.
    ///
    /// The helper is the same rank. Its fabric reaches the same memory as the program's fabric, and
    /// has no [hooks](Fabric::wait_hook). Operations, waits, [computations](Fabric::compute)
    /// and [charges](Fabric::charge) of the helper take the helper's time and not the program's, no
    /// matter which handle of the rank it uses. Program and helper communicate through the rank's
    /// own memory: a store, put or atomic by one ends a [wait](Fabric::wait_until) of the other.
    /// Such a wait depends on the rank itself ([`Deps::One`](crate::Deps::One)), because under
    /// [`Deps::All`](crate::Deps::All) no rank depends on itself. A helper may start helpers.
    ///
    /// A future that was first polled by one of them may be polled to completion by another; a
    /// flush covers the puts of the task that polled it first.
    ///
    /// Notices belong to the program: a helper's request for one is refused. A control queue
    /// belongs to the task that opened it or to which it was passed.
    ///
    /// # End
    /// When the program has returned, the future of each helper is dropped at its next wait that
    /// does not complete immediately, and only then has the rank left. Regions and queues of the
    /// rank that the helper uses until then should be shared with it (`Arc`), because those that
    /// the program drops are no longer usable by the helper. A helper that returns `Ok` earlier has
    /// simply ended. One that returns an error or panics before the program has returned causes the
    /// loss of the rank: pending waits of the rank end with
    /// [`FabricError::HelperFailed`](crate::FabricError::HelperFailed), and when the program has
    /// returned, with any result, the rank is lost. The job's error contains the helper's name.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`](crate::FabricError::Unsupported) if
    /// [`Caps::helpers`](crate::Caps::helpers) is false, or if nothing ends the rank's helpers (a
    /// process that uses its fabric without the provider's `run_rank`);
    /// [`FabricError::System`](crate::FabricError::System).
    ///
    /// ```
    /// use rdma_fabric::{Deps, Fabric, ProgramResult};
    /// use std::sync::Arc;
    ///
    /// async fn run(fabric: Fabric) -> ProgramResult<()> {
    ///     let region = Arc::new(fabric.alloc(16)?);
    ///     let (asked, answered) = (region.word::<u64>(&fabric, 0)?, region.word::<u64>(&fabric, 8)?);
    ///     let shared = Arc::clone(&region);
    ///     fabric.helper("answers", move |fabric| async move {
    ///         let (asked, answered) = (shared.word::<u64>(&fabric, 0)?, shared.word::<u64>(&fabric, 8)?);
    ///         let question = fabric.wait_until(&asked, Deps::One(fabric.rank()), |asked| asked > 0).await?;
    ///         fabric.store(&answered, question + 1)?;
    ///         Ok(())
    ///     })?;
    ///     fabric.store(&asked, 41)?;
    ///     assert_eq!(fabric.wait_until(&answered, Deps::One(fabric.rank()), |it| it > 0).await?, 42);
    ///     Ok(())
    /// }
    /// # tofu2_sim::shm::Threads::new(2).run(&run).unwrap();
    /// # tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 2).run(&run).unwrap();
    /// ```
    pub fn helper<Fut>(&self, name: &'static str, task: impl FnOnce(Fabric) -> Fut + Send + 'static) -> Result<()>
    where
        Fut: Future<Output = ProgramResult<()>> + 'static,
    {
        self.provider().helper(self, name, Box::new(move |fabric| Box::pin(task(fabric))))
    }
}
