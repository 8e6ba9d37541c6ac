//! Holds without a guard, for locks that are composed of other locks.

use super::RmaLock;
use crate::Result;
use rdma_fabric::{Time, provider::Boxed};

/// The argument of functions that only this crate may call: other crates cannot create it.
#[derive(Clone, Copy, Debug)]
pub struct OfThisCrate(());

/// The argument that this crate passes to its reserved functions.
pub(crate) const OURS: OfThisCrate = OfThisCrate(());

/// A lock whose words count readers without identifying them, so that one rank may end a shared
/// hold that another rank has taken. [`crate::locks::Aggregated`] requires this.
///
/// Ending a hold that does not exist would break every guarantee of the lock. So only the locks of
/// this crate can be held without a guard, and only by this crate:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::locks::AnonymousShared;
/// # async fn program<L: AnonymousShared>(lock: &L) {
/// lock.end_hold().await.unwrap();
/// # }
/// ```
pub trait AnonymousShared: RmaLock + Send + Sync {
    /// Takes a shared hold, which lasts until any rank [ends it](AnonymousShared::end_hold).
    /// Dropping the future undoes its effects; if it fails, there is no hold.
    #[doc(hidden)]
    fn hold(&self, deadline: Time, ours: OfThisCrate) -> Boxed<'_, Result<()>>;

    /// Takes a shared hold if that does not require waiting; returns whether it succeeded.
    #[doc(hidden)]
    fn try_hold(&self, ours: OfThisCrate) -> Boxed<'_, Result<bool>>;

    /// Ends a [hold](AnonymousShared::hold) of any rank, once, by a release of this rank. This
    /// flushes only this rank's puts, so other ranks' puts must already be visible. If the future
    /// is dropped, the rest is done in the background.
    #[doc(hidden)]
    fn end_hold(&self, ours: OfThisCrate) -> Boxed<'_, Result<()>>;
}

/// A lock whose exclusive hold can be kept without its guard, by a protocol that holds the lock for
/// longer than it can borrow it. [`crate::locks::IndicatorLock`] requires this.
///
/// As with [`AnonymousShared`], only the locks of this crate do this, and only for this crate:
/// ```compile_fail,E0061
/// # use rdma_fabric::Fabric; use rma_lock::locks::{BackOffLock, KeptExclusive};
/// # async fn program(lock: &BackOffLock) {
/// lock.end_kept(0).await.unwrap();
/// # }
/// ```
pub trait KeptExclusive: RmaLock + Send + Sync {
    /// Takes the lock exclusively without a guard; returns the state that its rank must keep for
    /// the hold. Dropping the future undoes its effects.
    #[doc(hidden)]
    fn keep(&self, deadline: Time, ours: OfThisCrate) -> Boxed<'_, Result<u64>>;

    /// Takes the lock exclusively without a guard, if that does not require waiting.
    #[doc(hidden)]
    fn try_keep(&self, ours: OfThisCrate) -> Boxed<'_, Result<Option<u64>>>;

    /// Ends a hold that this rank has [kept](KeptExclusive::keep), once. If the future is dropped,
    /// the rest is done in the background.
    #[doc(hidden)]
    fn end_kept(&self, kept: u64, ours: OfThisCrate) -> Boxed<'_, Result<()>>;
}
