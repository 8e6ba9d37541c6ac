//! The memory of a rank that other nodes access.

use super::Part;
use crate::memory::Mapping;
use core::{
    any::Any,
    fmt,
    ops::Range,
    ptr::NonNull,
    sync::atomic::{Ordering::SeqCst, fence},
};
use std::sync::Arc;

/// The heap of a rank's segment: the memory that contains all its regions.
#[derive(Clone)]
pub struct Heap {
    segment: Arc<Mapping>,
}

impl Heap {
    pub(super) fn of(segment: Arc<Mapping>) -> Self {
        Heap { segment }
    }

    /// Returns the address of its first byte.
    pub fn start(&self) -> NonNull<u8> {
        self.segment.heap().0
    }

    /// Returns its length in bytes.
    #[allow(clippy::len_without_is_empty)]
    pub fn len(&self) -> usize {
        self.segment.heap().1
    }

    /// Returns a handle that keeps the heap mapped, readable and writable.
    pub fn keep(&self) -> Arc<dyn Any + Send + Sync> {
        self.segment.clone()
    }
}

impl Part {
    /// Wakes the rank if it is parked, regardless of the awaited event, after its memory was
    /// written.
    pub fn wake(&self) {
        fence(SeqCst);
        self.endpoint.segment().ring();
    }

    /// Wakes the rank if it is parked and waits for one of these bytes of its heap, which were
    /// written. Ranges outside the heap have no effect.
    pub fn wake_for(&self, written: Range<u64>) {
        fence(SeqCst);
        self.endpoint.segment().ring_for_heap(written);
    }
}

impl fmt::Debug for Heap {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Heap({} bytes)", self.len())
    }
}
