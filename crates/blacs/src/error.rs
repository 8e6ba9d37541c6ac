//! Errors of this crate.

use fmpl::FmplError;
use rdma_fabric::FabricError;

/// The result of a call to this crate.
pub type Result<T, E = BlacsError> = core::result::Result<T, E>;

/// The error of a failed call. Unless a variant says otherwise, no data has moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlacsError {
    /// The underlying message layer failed.
    #[error("{0}")]
    Fmpl(#[from] FmplError),
    /// A grid has more positions than there are processes.
    #[error("a grid of {rows} x {columns} needs {} processes, but there are {processes}", .rows.saturating_mul(*.columns))]
    TooFewProcesses {
        /// The requested number of rows.
        rows: usize,
        /// The requested number of columns.
        columns: usize,
        /// The number of processes.
        processes: usize,
    },
    /// A grid has no rows or no columns.
    #[error("a grid of {rows} x {columns} has no places: it must have 1 row and 1 column at least")]
    BadExtent {
        /// The requested number of rows.
        rows: usize,
        /// The requested number of columns.
        columns: usize,
    },
    /// A map names a process twice.
    #[error("process {number} is at ({}, {}) of the map and at ({}, {})", .first.0, .first.1, .second.0, .second.1)]
    DuplicateProcess {
        /// The process's number.
        number: usize,
        /// Row and column of its first position, in row-major order.
        first: (usize, usize),
        /// Row and column of its second position.
        second: (usize, usize),
    },
    /// A map names a process that does not exist.
    #[error("the map names process {number}: there are processes 0 to {last}", last = .processes.saturating_sub(1))]
    NoSuchProcess {
        /// The number in the map.
        number: usize,
        /// The number of processes.
        processes: usize,
    },
    /// The processes of a grid have passed different extents, orders or maps.
    #[error("a grid of {rows} x {columns} was asked for by {members} of its processes only")]
    DifferentGrids {
        /// The number of rows requested by the caller.
        rows: usize,
        /// The number of columns requested by the caller.
        columns: usize,
        /// The number of processes whose requests match the caller's.
        members: usize,
    },
    /// The grid has no process at these coordinates.
    #[error("({row}, {column}) is outside the grid: it has {rows} rows and {columns} columns, counted from 0")]
    OutsideGrid {
        /// The requested row.
        row: usize,
        /// The requested column.
        column: usize,
        /// The grid's number of rows.
        rows: usize,
        /// The grid's number of columns.
        columns: usize,
    },
    /// The caller would receive a broadcast from itself.
    #[error("({row}, {column}) can't receive a broadcast from itself")]
    FromSelf {
        /// The caller's row.
        row: usize,
        /// The caller's column.
        column: usize,
    },
    /// The length of a message differs from that of the receiving matrix. The message counts as
    /// received; the contents of the matrix's shape are unspecified. The relays of a broadcast then
    /// forward an empty message, and the members of a combine send one, so that no process waits
    /// forever.
    #[error("({}, {}) has sent {sent} bytes, but {expected} are expected", .from.0, .from.1)]
    ShapeMismatch {
        /// Row and column of the sender, which may be a relay.
        from: (usize, usize),
        /// The length of the message in bytes.
        sent: usize,
        /// The length of the matrix in bytes.
        expected: usize,
    },
    /// A matrix does not fit into its memory.
    #[error("the matrix needs {needed} elements, but its memory has {elements}")]
    TooShort {
        /// The number of elements from its first to its last one.
        needed: usize,
        /// The number of elements in memory.
        elements: usize,
    },
    /// A parameter of a grid has an invalid value.
    #[error("{parameter} is {value}, but must be {allowed}")]
    BadParameter {
        /// The name of the parameter.
        parameter: &'static str,
        /// The allowed values.
        allowed: &'static str,
        /// The value given.
        value: i64,
    },
}

impl From<FabricError> for BlacsError {
    fn from(error: FabricError) -> Self {
        BlacsError::Fmpl(error.into())
    }
}
