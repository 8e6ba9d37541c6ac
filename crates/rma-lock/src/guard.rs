//! Proof of holding a lock.

use crate::{Result, RpLock};
use rdma_fabric::Fabric;

macro_rules! guard {
    ($(#[$doc:meta])* $name:ident, $field:ident, $leave:ident) => {
        $(#[$doc])*
        #[derive(Debug)]
        #[must_use = "a guard that is dropped without release leaves the lock taken"]
        pub struct $name<'a, F: Fabric> {
            lock: &'a RpLock<F>,
            /// What the release needs to know; taken by it, so that a drop can tell whether there was one.
            held: Option<$field>,
        }

        impl<'a, F: Fabric> $name<'a, F> {
            pub(crate) fn new(lock: &'a RpLock<F>, held: $field) -> Self {
                $name { lock, held: Some(held) }
            }

            /// The lock that is held.
            pub fn lock(&self) -> &'a RpLock<F> {
                self.lock
            }

            /// Make every put of this rank visible, then let go of the lock.
            ///
            /// # Errors
            /// [`crate::LockError::Fabric`]. The lock is then in an unknown state, and further calls
            /// on it fail.
            pub async fn release(mut self) -> Result<()> {
                match self.held.take() {
                    Some(held) => self.lock.$leave(held).await,
                    None => Ok(()),
                }
            }
        }

        impl<F: Fabric> Drop for $name<'_, F> {
            fn drop(&mut self) {
                if self.held.is_some() {
                    self.lock.report_leak();
                }
            }
        }
    };
}

guard! {
    /// Shared access: no writer is inside. Returned by [`RpLock::read`].
    ReadGuard, Reading, release_read
}
guard! {
    /// Exclusive access: nobody else is inside. Returned by [`RpLock::write`].
    WriteGuard, Writing, release_write
}

/// Held by a reader: nothing to remember, a reader's leave is anonymous.
#[derive(Debug)]
pub(crate) struct Reading;

/// Held by a writer: its queue node.
#[derive(Debug)]
pub(crate) struct Writing(pub(crate) crate::rp::NodeId);
