//! The spool's size and time-out, which a program may change while it runs (paper, sections 2.6 and
//! 3.2.1).

use crate::{Communicator, Options, Result};
use core::time::Duration;

impl Communicator {
    /// Changes the size of the spool and its time-out (`fmpl_sendbuf_set`), on this rank and in this
    /// communicator; other communicators keep theirs. The initial values are those of
    /// [`Options::spool`].
    ///
    /// As in the paper (section 2.6), the time-out takes the place of MPI's send modes:
    ///
    /// | `time_out` | mode | a send completes |
    /// |---|---|---|
    /// | `Some(Duration::ZERO)` | buffered | when its receive was posted before, or the message is copied |
    /// | `None` | synchronous | when its receive is posted |
    /// | `Some(T)` | standard | when its receive is posted, at the latest after T, if the spool has room |
    ///
    /// A receive [of any index](Communicator::irecv_any_index) counts as the receive of the next
    /// message that no other receive takes, also of a synchronous send. [`Communicator::send_any`]
    /// completes when the message is copied, in synchronous mode when it is received.
    ///
    /// # Operations in progress
    /// * A send keeps the time-out with which it began.
    /// * Messages in the spool stay there, and are received as before; the memory of the old size
    ///   is given back to the fabric when the last of them has been received (which
    ///   [`Communicator::check_spool`] and later sends detect). Until then both sizes are
    ///   allocated.
    /// * A send that waits for room tries again when a message of the spool has been received.
    /// * [`Communicator::isend`] does not use the spool.
    ///
    /// A spool that [grows](Options::growing) still does so after the change.
    ///
    /// # Errors
    /// [`FmplError::Option`](crate::FmplError::Option) if the size is no size of memory;
    /// [`FmplError::Fabric`](crate::FmplError::Fabric) if memory runs out, in which case size and
    /// time-out are unchanged; [`FmplError::OtherThread`](crate::FmplError::OtherThread).
    ///
    /// ```
    /// use fmpl::Fmpl;
    /// use rdma_fabric::{Fabric, ProgramResult};
    /// use std::time::Duration;
    ///
    /// async fn modes(fabric: Fabric) -> ProgramResult<()> {
    ///     let fmpl = Fmpl::init(&fabric).await?;
    ///     let (world, late) = (fmpl.world(), Duration::from_millis(20));
    ///     let buffer = world.buffer::<u64>(1)?;
    ///     // A buffered send does not wait for its receive, a synchronous one does, and a standard one
    ///     // waits for a limited time.
    ///     let standard = Duration::from_millis(2);
    ///     let modes = [(Some(Duration::ZERO), Duration::ZERO), (None, late / 2), (Some(standard), standard)];
    ///     for (time_out, at_least) in modes {
    ///         world.set_spool(4096, time_out)?;
    ///         world.barrier().await?;
    ///         if world.me() == 0 {
    ///             let begun = fabric.now();
    ///             world.send(&[7u64], 1, 0).await?;
    ///             assert!(fabric.now() - begun >= at_least);
    ///         } else {
    ///             fabric.sleep(late).await;
    ///             assert_eq!(world.recv(&buffer, 0, 0).await?.bytes, 8);
    ///         }
    ///     }
    ///     Ok(fmpl.finalize().await?)
    /// }
    /// # checks::documented::run(2, &modes);
    /// ```
    pub fn set_spool(&self, bytes: usize, time_out: Option<Duration>) -> Result<()> {
        Options::check_spool(bytes)?;
        self.with(|state| {
            state.sweep(&self.fabric)?;
            state.spool.memory.resize(&self.fabric, bytes)?;
            state.spool.time_out = time_out;
            Ok(())
        })?
    }

    /// Changes the spool's time-out only, as [`Communicator::set_spool`] does.
    ///
    /// # Errors
    /// [`FmplError::OtherThread`](crate::FmplError::OtherThread).
    pub fn set_time_out(&self, time_out: Option<Duration>) -> Result<()> {
        self.with(|state| state.spool.time_out = time_out)
    }
}
