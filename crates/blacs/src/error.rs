//! Why a call failed.

use fmpl::FmplError;
use rdma_fabric::FabricError;

/// The result of a call to this crate.
pub type Result<T, E = BlacsError> = core::result::Result<T, E>;

/// A call that did not do what it was asked to. Unless a variant says otherwise, nothing has moved.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlacsError {
    /// The messages failed underneath.
    #[error("{0}")]
    Fmpl(#[from] FmplError),
    /// A grid has more places than there are processes.
    #[error("a grid of {rows} x {columns} needs {} processes, but there are {processes}", .rows.saturating_mul(*.columns))]
    TooFewProcesses {
        /// The rows asked for.
        rows: usize,
        /// The columns asked for.
        columns: usize,
        /// How many processes there are.
        processes: usize,
    },
    /// A grid has no rows or no columns.
    #[error("a grid of {rows} x {columns} has no places: it must have 1 row and 1 column at least")]
    BadExtent {
        /// The rows asked for.
        rows: usize,
        /// The columns asked for.
        columns: usize,
    },
    /// A map names a process twice.
    #[error("process {number} is at ({}, {}) of the map and at ({}, {})", .first.0, .first.1, .second.0, .second.1)]
    DuplicateProcess {
        /// The process's number.
        number: usize,
        /// Row and column of its first place, in row-major order.
        first: (usize, usize),
        /// Row and column of its second place.
        second: (usize, usize),
    },
    /// A map names a process that there is not.
    #[error("the map names process {number}: there are processes 0 to {last}", last = .processes.saturating_sub(1))]
    NoSuchProcess {
        /// The number in the map.
        number: usize,
        /// How many processes there are.
        processes: usize,
    },
    /// The processes of a grid have not given the same extents, order or map.
    #[error("a grid of {rows} x {columns} was asked for by {members} of its processes only")]
    DifferentGrids {
        /// The rows asked for here.
        rows: usize,
        /// The columns asked for here.
        columns: usize,
        /// How many processes have asked for what may be the same grid.
        members: usize,
    },
    /// There is nobody at these coordinates.
    #[error("({row}, {column}) is outside the grid: it has {rows} rows and {columns} columns, counted from 0")]
    OutsideGrid {
        /// The row asked for.
        row: usize,
        /// The column asked for.
        column: usize,
        /// The grid's rows.
        rows: usize,
        /// The grid's columns.
        columns: usize,
    },
    /// A broadcast is to be received from the process that calls.
    #[error("({row}, {column}) can't receive a broadcast from itself")]
    FromSelf {
        /// The caller's row.
        row: usize,
        /// The caller's column.
        column: usize,
    },
    /// A message has not the length of the matrix that was to receive it. The message counts as
    /// received; what is in the matrix's shape is not defined. Relays of a broadcast pass on an empty
    /// message then, and so do combines, so that nobody waits for ever.
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
        /// Elements from its first to its last one.
        needed: usize,
        /// Elements in memory.
        elements: usize,
    },
    /// A parameter of a grid has a value that it can't have.
    #[error("{parameter} is {value}, but must be {allowed}")]
    BadParameter {
        /// The parameter.
        parameter: &'static str,
        /// The values that it may have.
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
