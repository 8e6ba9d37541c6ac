//! Data that is protected by a lock, with accesses that loom tracks.

use crate::RankHandle;
use loom::cell::UnsafeCell;
use rdma_fabric::Fabric;
use std::sync::Mutex;

/// Models memory that holders of a lock put to and get from. Loom reports any two accesses, at
/// least one of them a write, that are not ordered by release and acquire; a count of the holders
/// inside detects overlapping holds.
#[derive(Debug)]
pub struct DataCell {
    access: UnsafeCell<()>,
    /// The numbers of writers and readers inside, and of the writes so far. Loom does not track
    /// this.
    inside: Mutex<Inside>,
}

#[derive(Debug, Default)]
struct Inside {
    writers: usize,
    readers: usize,
    most_readers: usize,
    writes: u64,
}

impl DataCell {
    /// Creates a cell without writes. Call this inside a loom model.
    #[allow(clippy::new_without_default, reason = "outside a model there is none")]
    pub fn new() -> Self {
        DataCell { access: UnsafeCell::new(()), inside: Mutex::default() }
    }

    fn inside<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        change(&mut self.inside.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Records that a holder of the exclusive lock has entered and put the data. Returns the number
    /// of this write, counted from 1.
    ///
    /// # Panics
    /// If another holder is inside.
    pub fn enter_write(&self, fabric: &Fabric) -> u64 {
        let writes = self.inside(|i| {
            i.writers += 1;
            i.writes += 1;
            (i.writers == 1 && i.readers == 0).then_some(i.writes)
        });
        let writes = writes.expect("mutual exclusion: a writer is not alone");
        let handle = RankHandle::of(fabric);
        handle.job().data_put(handle.actor());
        self.access.with_mut(|_| ());
        writes
    }

    /// Records that the writer is about to release the lock.
    ///
    /// # Panics
    /// If another holder has entered.
    pub fn leave_write(&self) {
        let alone = self.inside(|i| {
            i.writers -= 1;
            i.writers == 0 && i.readers == 0
        });
        assert!(alone, "mutual exclusion: somebody came in on a writer");
    }

    /// Records that a holder of the shared lock has entered and got the data. Returns the number of
    /// writes that it must observe.
    ///
    /// # Panics
    /// If a writer is inside.
    pub fn enter_read(&self) -> u64 {
        let writes = self.inside(|i| {
            i.readers += 1;
            i.most_readers = i.most_readers.max(i.readers);
            (i.writers == 0).then_some(i.writes)
        });
        self.access.with(|_| ());
        writes.expect("mutual exclusion: a reader met a writer")
    }

    /// Records that a reader is about to release the lock.
    pub fn leave_read(&self) {
        self.inside(|i| i.readers -= 1);
    }

    /// Returns the largest number of readers that were inside at the same time.
    pub fn most_readers(&self) -> usize {
        self.inside(|i| i.most_readers)
    }
}
