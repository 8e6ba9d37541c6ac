//! Why an operation of a table failed.

use rdma_fabric::{FabricError, Rank};
use rma_lock::LockError;

/// An operation of a table that did not do what it was asked to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TableError {
    /// The fabric failed underneath.
    #[error(transparent)]
    Fabric(#[from] FabricError),
    /// The lock of a volume.
    #[error(transparent)]
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
