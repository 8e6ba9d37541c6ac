//! Sums, and the largest and smallest elements by magnitude.

use super::{
    awaited::{WaitingFor as _, others},
    coordinates,
    described::Described,
};
use crate::{
    arguments::Integers,
    boundary::Call,
    error::Result,
    int::{Int, extent, int},
    letters::{scope, topology},
    library::Library,
    matrix::Sink,
};
use blacs::{Combine, Grid, Precision, Scope};
use onesided::block_on_short;

/// As destination, all processes; as leading dimension, no arrays.
const NO: Int = -1;

pub(crate) fn gsum2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    row: Int,
    column: Int,
) {
    let (call, described) = (Call { routine, context }, Described::rectangle(m, n, lda));
    call.run(|library| {
        combine(library, call, Combine::Sum, precision, (scope, top), described, a, None, (row, column))
    });
}

pub(crate) fn gamx2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    rows: Integers,
    columns: Integers,
    ldia: Int,
    row: Int,
    column: Int,
) {
    let (call, described) = (Call { routine, context }, Described::rectangle(m, n, lda));
    extremes(call, Combine::AbsMax, precision, (scope, top), described, a, (rows, columns, ldia), (row, column));
}

pub(crate) fn gamn2d(
    routine: &'static str,
    precision: Precision,
    context: Int,
    scope: u8,
    top: u8,
    m: Int,
    n: Int,
    a: Sink,
    lda: Int,
    rows: Integers,
    columns: Integers,
    ldia: Int,
    row: Int,
    column: Int,
) {
    let (call, described) = (Call { routine, context }, Described::rectangle(m, n, lda));
    extremes(call, Combine::AbsMin, precision, (scope, top), described, a, (rows, columns, ldia), (row, column));
}

type Winners<'a> = dyn FnMut(usize, usize, (usize, usize)) + 'a;

fn extremes(
    call: Call,
    kind: Combine,
    precision: Precision,
    letters: (u8, u8),
    described: Described,
    a: Sink,
    (rows, columns, ldia): (Integers, Integers, Int),
    to: (Int, Int),
) {
    let leading = extent(ldia);
    let mut write = |i: usize, j: usize, (row, column): (usize, usize)| {
        // Arrays that are too short receive only the elements for which they have room.
        if i < leading {
            rows.set(j * leading + i, int(row));
            columns.set(j * leading + i, int(column));
        }
    };
    call.run(|library| {
        let m = described.rows();
        if ldia != NO && ldia < m {
            call.warn(library, format_args!("LDIA is {ldia}, less than M = {m}: rows from {leading} on get no places"));
        }
        let winners = (ldia != NO).then_some(&mut write as &mut Winners<'_>);
        combine(library, call, kind, precision, letters, described, a, winners, to)
    });
}

fn combine<'a>(
    library: &Library,
    call: Call,
    kind: Combine,
    precision: Precision,
    (letter, top): (u8, u8),
    described: Described,
    a: Sink,
    winners: Option<&'a mut Winners<'a>>,
    to: (Int, Int),
) -> Result<()> {
    let grid = library.contexts.open(call.context)?;
    let (scope, top, shape) = (scope(letter)?, topology(top)?, &described.shape(call, library)?);
    let to = destination(grid, scope, to)?;
    let mut a = library.lent(a, shape, precision);
    let combined = block_on_short(grid.combine_bytes(scope, top, kind, precision, shape, &mut a, winners, to));
    combined.waiting_for(|| format!("{} to combine", others(grid, scope)))
}

/// Returns the process that receives the result; `None` if all do. Within a row, only the column
/// counts, and within a column only the row.
fn destination(grid: &Grid, scope: Scope, (row, column): (Int, Int)) -> Result<Option<(usize, usize)>> {
    if row == NO || column == NO {
        return Ok(None);
    }
    let (row, column) = match scope {
        Scope::Row => (int(grid.row()), column),
        Scope::Column => (row, int(grid.column())),
        Scope::All => (row, column),
    };
    coordinates(grid, row, column).map(Some)
}
