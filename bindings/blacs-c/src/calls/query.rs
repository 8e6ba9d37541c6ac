//! The routines that return properties of a grid, and the barrier.

use super::awaited::{WaitingFor as _, others};
use crate::{
    arguments::Integers,
    boundary::Call,
    int::{Int, int},
    letters::scope,
    library::enter,
};
use onesided::block_on_short;

/// The number of a process, or the coordinate of a position, that does not exist.
const NONE: Int = -1;

/// Returns the extents of the grid and the caller's position. A context that is not open has neither.
pub(crate) fn gridinfo(
    _: &'static str,
    context: Int,
    rows: Integers,
    columns: Integers,
    row: Integers,
    column: Integers,
) {
    let told = enter().contexts.grid(context).map(|grid| [grid.rows(), grid.columns(), grid.row(), grid.column()]);
    let told = told.map_or([NONE; 4], |told| told.map(int));
    [rows, columns, row, column].into_iter().zip(told).for_each(|(place, value)| place.set(0, value));
}

pub(crate) fn pnum(routine: &'static str, context: Int, row: Int, column: Int) -> Int {
    Call { routine, context }.run(|library| {
        let grid = library.contexts.open(context)?;
        let place = usize::try_from(row).ok().zip(usize::try_from(column).ok());
        Ok(place.and_then(|(row, column)| grid.number(row, column)).map_or(NONE, int))
    })
}

pub(crate) fn pcoord(routine: &'static str, context: Int, number: Int, row: Integers, column: Integers) {
    let place = Call { routine, context }.run(|library| {
        let grid = library.contexts.open(context)?;
        Ok(usize::try_from(number).ok().and_then(|number| grid.coordinates(number)))
    });
    let (place_row, place_column) = place.map_or((NONE, NONE), |(row, column)| (int(row), int(column)));
    row.set(0, place_row);
    column.set(0, place_column);
}

pub(crate) fn barrier(routine: &'static str, context: Int, letter: u8) {
    Call { routine, context }.run(|library| {
        let grid = library.contexts.open(context)?;
        let scope = scope(letter)?;
        block_on_short(grid.barrier(scope)).waiting_for(|| format!("{} to enter the barrier", others(grid, scope)))
    });
}
