//! A distributed hashtable whose volumes are protected by locks.
//!
//! The problem: many ranks insert into and look up in one table that lies in several ranks' memory,
//! and the CPUs of those ranks shall not be involved. The table is cut into *volumes*, each in one
//! rank's memory with a lock of its own beside it. A volume has the form of the hashtable of foMPI
//! (Gerstenberger, Besta and Hoefler, SC 2013, section 4.1): a table of cells, and a heap for keys
//! that find their cell taken. There atomics let ranks insert at once; here, as in the DHT
//! benchmark of Schmid, Besta and Hoefler (HPDC 2016), a lock does: an insert holds it exclusively,
//! a lookup shared.
//!
//! ```
//! use rdma_fabric::{Fabric, ProgramResult};
//! use repro::workloads::hashtable::{Hashtable, VolumeSize};
//! use rma_lock::locks::RpLock;
//!
//! /// Every rank inserts a key and finds it.
//! async fn insert_one(fabric: Fabric) -> ProgramResult<()> {
//!     let mut world = rdma_fabric::Group::world(&fabric).await?;
//!     let size = VolumeSize { buckets: 64, heap: 64 };
//!     let table = Hashtable::<RpLock>::symmetric(&mut world, 2, size, ()).await?;
//!     let key = u64::from(fabric.rank().number());
//!     table.insert(key, key + 1).await?;
//!     assert_eq!(table.get(key).await?, Some(key + 1));
//!     world.barrier().await?; // memory of a volume lives as long as its rank's table
//!     Ok(())
//! }
//! tofu2_sim::virt::Job::new(&tofu2_sim::virt::Platform::fx100(), 4).run(&insert_one).unwrap();
//! ```

mod cells;

pub use cells::{Cells, VolumeSize};

use rdma_fabric::{FabricError, Group, Rank};
use rma_lock::{Guard, LockError, RmaLock};

/// A table of `u64` keys with `u64` values. One value per rank refers to one table for all.
///
/// Memory of a volume is deregistered when its rank drops its table: meet in a barrier before.
#[derive(Debug)]
pub struct Hashtable<L> {
    /// At least one. A key's is told by its hash.
    volumes: Vec<(Cells, L)>,
}

impl<L: RmaLock> Hashtable<L> {
    /// A table of `volumes` volumes of `size`, spread evenly over the ranks of the job. Collective
    /// over `world`, which is the group of all ranks. Fewer than one volume are one.
    ///
    /// # Errors
    /// [`TableError::Fabric`] as [`Cells::collective`], [`TableError::Lock`] as
    /// [`rma_lock::Lock::symmetric_with`].
    pub async fn symmetric(
        world: &mut Group,
        volumes: usize,
        size: VolumeSize,
        options: L::Options,
    ) -> TableResult<Self> {
        let (count, ranks) = (volumes.max(1), world.len());
        let mut volumes = Vec::with_capacity(count);
        for volume in 0..count {
            let home = Rank::new((volume * ranks / count % ranks) as u32);
            let cells = Cells::collective(world, home, size).await?;
            volumes.push((cells, L::symmetric_with(world.fabric(), home, options.clone()).await?));
        }
        Ok(Hashtable { volumes })
    }

    /// Gives `key` this value; the one it had. Holds the volume's lock exclusively.
    ///
    /// # Errors
    /// As [`Cells::insert`], and [`TableError::Lock`]. The lock is released all the same.
    pub async fn insert(&self, key: u64, value: u64) -> TableResult<Option<u64>> {
        let (cells, lock) = self.volume(key);
        let guard = lock.write().await?;
        let before = cells.insert(key, value).await;
        guard.release().await?;
        before
    }

    /// Returns the value of `key`. Holds the volume's lock shared.
    ///
    /// # Errors
    /// As [`Cells::get`], and [`TableError::Lock`].
    pub async fn get(&self, key: u64) -> TableResult<Option<u64>> {
        let (cells, lock) = self.volume(key);
        let guard = lock.read().await?;
        let value = cells.get(key).await;
        guard.release().await?;
        value
    }

    /// Returns how many keys there are: volume after volume, each locked shared while it is
    /// counted.
    ///
    /// # Errors
    /// As [`Cells::count`], and [`TableError::Lock`].
    pub async fn count(&self) -> TableResult<u64> {
        let mut all = 0;
        for (cells, lock) in &self.volumes {
            let guard = lock.read().await?;
            let count = cells.count().await;
            guard.release().await?;
            all += count?;
        }
        Ok(all)
    }

    fn volume(&self, key: u64) -> &(Cells, L) {
        // The upper half chooses the bucket.
        let half = cells::hash(key) & 0xffff_ffff;
        &self.volumes[((half * self.volumes.len() as u64) >> 32) as usize]
    }
}

/// An operation of a table that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The fabric failed underneath.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// The lock of a volume.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// A key found its bucket taken and the heap full. Nothing was changed.
    #[error("the volume at {home} is full: all {heap} cells of its heap are used")]
    Full {
        /// Whose memory the volume is in.
        home: Rank,
        /// Cells of its heap.
        heap: u32,
    },
    /// A cell or the heap's count holds what no insert writes.
    #[error("the volume at {home} is corrupt: {what} of cell {cell} is {value}")]
    Corrupt {
        /// Whose memory the volume is in.
        home: Rank,
        /// Number of the cell, buckets first.
        cell: u64,
        /// Which of its words.
        what: &'static str,
        /// What that word holds.
        value: u64,
    },
}

/// Result of a table's operation.
pub type TableResult<T> = Result<T, TableError>;
