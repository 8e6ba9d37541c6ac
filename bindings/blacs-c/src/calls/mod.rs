//! The implementations of the routines, independent of the calling language.
//!
//! The names of routines and arguments are those of BLACS, as are the long argument lists.

pub(crate) mod awaited;
pub(crate) mod broadcast;
pub(crate) mod combine;
mod described;
pub(crate) mod handles;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod point;
pub(crate) mod query;
pub(crate) mod setup;
pub(crate) mod teardown;

use crate::{
    error::{CallError, Result},
    int::Int,
};
use blacs::Grid;

/// Returns the coordinates of a process. The crate `blacs` checks only whether they are too large.
fn coordinates(grid: &Grid, row: Int, column: Int) -> Result<(usize, usize)> {
    match (usize::try_from(row), usize::try_from(column)) {
        (Ok(row), Ok(column)) => Ok((row, column)),
        _ => Err(CallError::OutsideGrid { row, column, rows: grid.rows(), columns: grid.columns() }),
    }
}
