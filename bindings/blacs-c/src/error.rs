//! Errors, each of which ends the job.

use crate::int::Int;
use blacs::BlacsError;
use fmpl::FmplError;
use rdma_fabric::FabricError;

/// The result of a routine.
pub(crate) type Result<T, E = CallError> = core::result::Result<T, E>;

/// The error of a failed call.
#[derive(Debug, thiserror::Error)]
pub(crate) enum CallError {
    #[error("there is no context {0}: it was not made, or has been exited")]
    NoContext(Int),
    #[error("there is no system context {0}: 0 is that of all processes, blacs_get(context, 10, ...) gives others")]
    NoSystemContext(Int),
    #[error("{what} is '{letter}', but must be one of {allowed}")]
    BadLetter { what: &'static str, letter: char, allowed: &'static str },
    #[error("a grid has at least one row and one column, not {rows} x {columns}")]
    NoGrid { rows: Int, columns: Int },
    #[error("{full}; {open} contexts are open, and blacs_gridexit gives back what one of them takes")]
    NoRoomForContext { open: usize, full: FabricError },
    #[error("usermap({row},{column}) is {number}, which is not a process number")]
    NoProcess { row: usize, column: usize, number: Int },
    #[error("usermap has columns of {rows} rows, but its leading dimension is {leading}")]
    ShortMap { rows: Int, leading: Int },
    #[error("process {{{row},{column}}} is outside the grid of {rows} x {columns}")]
    OutsideGrid { row: Int, column: Int, rows: usize, columns: usize },
    #[error("{name} is {extent}, but must not be negative")]
    NegativeExtent { name: &'static str, extent: Int },
    #[error("LDA is {leading}, but must be at least M = {rows}")]
    ShortColumns { leading: Int, rows: Int },
    #[error("deadlock: {waiting} ranks wait and nothing can happen any more; this one waits for {awaited}")]
    Deadlock { waiting: usize, awaited: String },
    #[error("blacs_exit(0) has ended the library in this process")]
    Ended,
    #[error(transparent)]
    Blacs(#[from] BlacsError),
    #[error(transparent)]
    Fabric(#[from] FabricError),
}

impl CallError {
    /// Returns the underlying fabric error, if there is one.
    pub(crate) fn of_fabric(&self) -> Option<&FabricError> {
        match self {
            CallError::Fabric(error)
            | CallError::NoRoomForContext { full: error, .. }
            | CallError::Blacs(BlacsError::Fmpl(
                FmplError::Fabric(error) | FmplError::SpoolFull { cause: error, .. },
            )) => Some(error),
            _ => None,
        }
    }
}
