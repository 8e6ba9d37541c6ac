//! The words of the protocols between ranks, as a trait, so that the protocols can run over loom's
//! words.

use core::sync::atomic::{AtomicU64, Ordering};
use rdma_fabric::access;

/// A shared word. The tests implement it for loom's words.
pub(crate) trait Word {
    fn load(&self, order: Ordering) -> u64;
    fn store(&self, value: u64, order: Ordering);
    /// Stores `new` if the word holds `current`; otherwise returns its value.
    fn replace(&self, current: u64, new: u64, success: Ordering, failure: Ordering) -> Result<(), u64>;
    /// Hints that the word will be written soon.
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
