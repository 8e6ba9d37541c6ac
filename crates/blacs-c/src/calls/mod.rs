//! What the routines do, whichever language calls them.
//!
//! The names of routines and arguments are BLACS's own, as are the long lists of arguments.

pub(crate) mod broadcast;
pub(crate) mod combine;
pub(crate) mod handles;
pub(crate) mod memory;
pub(crate) mod parameters;
pub(crate) mod point;
pub(crate) mod query;
pub(crate) mod setup;
pub(crate) mod teardown;

use crate::{
    error::{CallError, Result},
    int::{Int, extent},
};
use blacs::{Diag, Grid, Shape, Uplo};

/// Returns the shape of a rectangle. A leading dimension that is too small counts as the number of
/// rows.
fn rectangle(rows: Int, columns: Int, leading: Int) -> Shape {
    Shape::general(extent(rows), extent(columns), extent(leading))
}

/// Returns the shape of a trapezoid within such a rectangle.
fn trapezoid(uplo: u8, diag: u8, rows: Int, columns: Int, leading: Int) -> Shape {
    let (uplo, diag) = (Uplo::from_letter(uplo), Diag::from_letter(diag));
    Shape::trapezoid(uplo, diag, extent(rows), extent(columns), extent(leading))
}

/// Returns the coordinates of a process, of which the library below checks only whether they are
/// too large.
fn coordinates(grid: &Grid, row: Int, column: Int) -> Result<(usize, usize)> {
    match (usize::try_from(row), usize::try_from(column)) {
        (Ok(row), Ok(column)) => Ok((row, column)),
        _ => Err(CallError::OutsideGrid { row, column, rows: grid.rows(), columns: grid.columns() }),
    }
}
