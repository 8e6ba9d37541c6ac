//! Words that the protocols between ranks are made of, so that loom may run these with its own.

use core::sync::atomic::{AtomicU64, Ordering};
use rdma_fabric::access;

/// A shared word; the tests implement it for loom's.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Makes it `new` if it holds `current`; what it holds otherwise.
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64>;
    /// Hints that it will be written soon.
    fn expect_store(&self) {}
}

impl Word for AtomicU64 {
    #[inline(always)]
    fn load(&self, order: Ordering) -> u64 {
        AtomicU64::load(self, order)
    }
    #[inline(always)]
    fn store(&self, value: u64, order: Ordering) {
        AtomicU64::store(self, value, order);
    }
    #[inline(always)]
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64> {
        self.compare_exchange(current, new, success, failure).map(drop)
    }
    #[inline(always)]
    fn expect_store(&self) {
        access::expect_store(self.as_ptr().cast());
    }
}
