//! Data protected by a lock, watched by loom.

use crate::Seat;
use loom::cell::UnsafeCell;
use rdma_fabric::Fabric;
use std::sync::Mutex;

/// Stands for memory that holders of a lock put to and get from. Loom reports any two accesses, one
/// of them a write, that no chain of release and acquire orders; a count of the holders inside
/// detects overlap.
#[derive(Debug)]
pub struct DataCell {
    access: UnsafeCell<()>,
    /// The writers and readers inside, and the writes so far. Loom does not see this.
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
    /// Creates a cell that nobody has written. Call it inside a loom model.
    #[allow(clippy::new_without_default, reason = "outside a model there is none")]
    pub fn new() -> Self {
        DataCell { access: UnsafeCell::new(()), inside: Mutex::default() }
    }

    fn inside<T>(&self, change: impl FnOnce(&mut Inside) -> T) -> T {
        change(&mut self.inside.lock().unwrap_or_else(|poisoned| poisoned.into_inner()))
    }

    /// Records that a holder of the exclusive lock has come in and put the data. Returns the number
    /// of this write, counted from 1.
    ///
    /// # Panics
    /// If anybody else is inside.
    pub fn enter_write(&self, fabric: &Fabric) -> u64 {
        let writes = self.inside(|i| {
            i.writers += 1;
            i.writes += 1;
            (i.writers == 1 && i.readers == 0).then_some(i.writes)
        });
        let writes = writes.expect("mutual exclusion: a writer is not alone");
        let seat = Seat::of(fabric);
        seat.job().data_put(seat.actor());
        self.access.with_mut(|_| ());
        writes
    }

    /// Records that the writer is about to release the lock.
    ///
    /// # Panics
    /// If anybody else has come in.
    pub fn leave_write(&self) {
        let alone = self.inside(|i| {
            i.writers -= 1;
            i.writers == 0 && i.readers == 0
        });
        assert!(alone, "mutual exclusion: somebody came in on a writer");
    }

    /// Records that a holder of the shared lock has come in and got the data. Returns how many
    /// writes it must see.
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

    /// Returns the largest number of readers that were ever inside together.
    pub fn most_readers(&self) -> usize {
        self.inside(|i| i.most_readers)
    }
}
