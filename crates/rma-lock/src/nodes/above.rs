//! What stands above the levels: what the first in takes for all, and the last out gives back.

use crate::{AnonymousShared, Guard, Result, lock::OURS};
use core::{fmt, future::Future};
use rdma_fabric::Time;

/// A shared hold of something, which any rank may end.
pub(crate) trait Above: fmt::Debug + 'static {
    /// Hold it. Dropping the future takes back what it has done; when it fails nothing is held.
    fn enter(&self, deadline: Time) -> impl Future<Output = Result<()>>;

    /// Hold it if that needs no wait.
    fn try_enter(&self) -> impl Future<Output = Result<bool>>;

    /// End a hold. Waits for nothing but operations. If the future is dropped the rest is done in the background.
    fn leave(&self) -> impl Future<Output = Result<()>>;
}

/// A lock, held shared.
pub(crate) struct SharedOf<L>(pub(crate) L);

impl<L: fmt::Debug> fmt::Debug for SharedOf<L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<L: AnonymousShared> Above for SharedOf<L> {
    async fn enter(&self, deadline: Time) -> Result<()> {
        L::hand_over(self.0.read_before(deadline).await?, OURS);
        Ok(())
    }

    async fn try_enter(&self) -> Result<bool> {
        Ok(self.0.try_read().await?.map(|guard| L::hand_over(guard, OURS)).is_some())
    }

    async fn leave(&self) -> Result<()> {
        self.0.adopt_shared(OURS).release().await
    }
}
