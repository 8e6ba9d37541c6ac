//! Words with full barriers.

use crate::memory::word::Word;
use core::sync::atomic::{AtomicU64, Ordering::SeqCst};

/// A word in which advances are counted or commands announced. The tests implement it for loom's
/// words.
pub(crate) trait Fencing: Word {
    /// Adds, makes a full barrier, and returns the sum.
    fn add_and_fence(&self, more: u64) -> u64;
    /// Stores, and makes a full barrier.
    fn store_and_fence(&self, value: u64);
    /// Makes a full barrier right before a read-modify-write.
    fn fence_at_rmw(&self);
}

/// Makes a full barrier next to a read-modify-write, which is itself a full barrier on x86-64.
#[inline(always)]
fn fence_at_rmw() {
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    core::sync::atomic::fence(SeqCst);
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    core::sync::atomic::compiler_fence(SeqCst);
}

impl Fencing for AtomicU64 {
    #[inline(always)]
    fn add_and_fence(&self, more: u64) -> u64 {
        let sum = self.fetch_add(more, SeqCst).wrapping_add(more);
        fence_at_rmw();
        sum
    }
    #[inline(always)]
    fn store_and_fence(&self, value: u64) {
        self.swap(value, SeqCst);
        fence_at_rmw();
    }
    #[inline(always)]
    fn fence_at_rmw(&self) {
        fence_at_rmw();
    }
}
