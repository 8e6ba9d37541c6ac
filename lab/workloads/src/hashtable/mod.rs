//! A distributed hashtable whose volumes are protected by locks.
//!
//! Many ranks insert into, and look up in, one table that is stored in the memory of several ranks,
//! without involving the CPUs of those ranks. The table is split into *volumes*, each in one rank's
//! memory together with its own lock. A volume has the structure of foMPI's hashtable
//! (Gerstenberger, Besta and Hoefler, SC 2013, section 4.1): a table of cells, and a heap for keys
//! whose cell is taken. In foMPI, atomics permit concurrent inserts; here, as in the DHT benchmark
//! of Schmid, Besta and Hoefler (HPDC 2016), a lock protects a volume: an insert holds it
//! exclusively, a lookup shared.
//!
//! ```
//! use rdma_fabric::{Fabric, ProgramResult};
//! use workloads::hashtable::{Hashtable, VolumeSize};
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

/// A table of `u64` keys with `u64` values. Each rank has one value of this type; all of them refer
/// to the same table.
///
/// The memory of a volume is deregistered when its rank drops its table, so ranks have to pass a
/// barrier first.
#[derive(Debug)]
pub struct Hashtable<L> {
    /// At least one. The hash of a key selects its volume.
    volumes: Vec<(Cells, L)>,
}

impl<L: RmaLock> Hashtable<L> {
    /// Creates a table of `volumes` volumes of `size`, distributed evenly over the ranks of the
    /// job. Collective over `world`, which is the group of all ranks. The table has at least one
    /// volume.
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

    /// Sets the value of `key` and returns the previous one. Holds the volume's lock exclusively.
    ///
    /// # Errors
    /// The errors of [`Cells::insert`], and [`TableError::Lock`]. The lock is released even in case
    /// of an error.
    pub async fn insert(&self, key: u64, value: u64) -> TableResult<Option<u64>> {
        let (cells, lock) = self.volume(key);
        let guard = lock.write().await?;
        let before = cells.insert(key, value).await;
        guard.release().await?;
        before
    }

    /// Returns the value of `key`. Holds the volume's lock in shared mode.
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

    /// Returns the number of keys. Counts one volume after another, each locked in shared mode
    /// while it is counted.
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
        // The upper half selects the bucket.
        let half = cells::hash(key) & 0xffff_ffff;
        &self.volumes[((half * self.volumes.len() as u64) >> 32) as usize]
    }
}

/// A failed operation of a table.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The fabric failed.
    #[error("{0}")]
    Fabric(#[from] FabricError),
    /// The lock of a volume failed.
    #[error("{0}")]
    Lock(#[from] LockError),
    /// The bucket of a key is taken and the heap is full. The table is unchanged.
    #[error("the volume at {home} is full: all {heap} cells of its heap are used")]
    Full {
        /// The rank whose memory stores the volume.
        home: Rank,
        /// The number of cells of its heap.
        heap: u32,
    },
    /// A cell, or the heap's count, has a value that no insert writes.
    #[error("the volume at {home} is corrupt: {what} of cell {cell} is {value}")]
    Corrupt {
        /// The rank whose memory stores the volume.
        home: Rank,
        /// Number of the cell, buckets first.
        cell: u64,
        /// The word of the cell.
        what: &'static str,
        /// The value of the word.
        value: u64,
    },
}

/// The result of an operation of a table.
pub type TableResult<T> = Result<T, TableError>;
