//! The routines that initialize the library and create contexts.

use super::awaited::WaitingFor as _;
use crate::{
    arguments::Integers,
    boundary::{Call, NO_CONTEXT},
    error::{CallError, Result},
    int::{Int, int},
    library::Library,
};
use blacs::{BlacsError, Grid, GridMap, Order};
use fmpl::FmplError;
use onesided::block_on_short;
use rdma_fabric::FabricError;

pub(crate) fn pinfo(routine: &'static str, number: Integers, processes: Integers) {
    let (me, all) = Call { routine, context: NO_CONTEXT }.run(|library| {
        let blacs = library.begun()?;
        Ok((blacs.me(), blacs.processes()))
    });
    number.set(0, int(me));
    processes.set(0, int(all));
}

pub(crate) fn gridinit(routine: &'static str, context: Integers, order: u8, rows: Int, columns: Int) {
    let system = context.get(0);
    let call = Call { routine, context: NO_CONTEXT };
    let made = call.run(|library| {
        let (grid_rows, grid_columns) = grid_extents(rows, columns)?;
        let order = major(order, call, library);
        let (blacs, contexts) = library.parts()?;
        let grid = match contexts.parent(system)? {
            None => block_on_short(blacs.grid(order, grid_rows, grid_columns)),
            Some(parent) => block_on_short(blacs.grid_of(parent, order, grid_rows, grid_columns)),
        };
        keep(library, grid)
    });
    context.set(0, made);
}

pub(crate) fn gridmap(
    routine: &'static str,
    context: Integers,
    processes: Integers,
    leading: Int,
    rows: Int,
    columns: Int,
) {
    let system = context.get(0);
    let made = Call { routine, context: NO_CONTEXT }.run(|library| {
        let (blacs, contexts) = library.parts()?;
        let map = map_of(processes, leading, rows, columns, blacs.processes())?;
        let grid = match contexts.parent(system)? {
            None => block_on_short(blacs.map(&map)),
            Some(parent) => block_on_short(blacs.map_of(parent, &map)),
        };
        keep(library, grid)
    });
    context.set(0, made);
}

/// Returns the context of a new grid; `NO_CONTEXT` if this process is not in it.
fn keep(library: &mut Library, made: Result<Option<Grid>, BlacsError>) -> Result<Int> {
    let grid = made.map_err(|error| match error {
        BlacsError::Fmpl(FmplError::Fabric(full)) if is_full(&full) => {
            CallError::NoRoomForContext { open: library.contexts.count(), full }
        }
        error => error.into(),
    });
    let grid = grid.waiting_for(|| "the other processes to make the grid".to_owned())?;
    Ok(grid.map_or(NO_CONTEXT, |grid| library.contexts.add(grid)))
}

/// Returns whether the error would not have occurred with one fewer grid.
fn is_full(error: &FabricError) -> bool {
    use FabricError::{OutOfMachineMemory, OutOfMemory, TooManyRegions};
    matches!(error, TooManyRegions { .. } | OutOfMemory(_) | OutOfMachineMemory(_))
}

/// Returns the order that a letter stands for.
fn major(letter: u8, call: Call, library: &Library) -> Order {
    if !letter.eq_ignore_ascii_case(&b'r') && !letter.eq_ignore_ascii_case(&b'c') {
        let order = char::from(letter);
        call.warn(library, format_args!("ORDER is '{order}', but must be one of r, c: r is assumed"));
    }
    Order::from_letter(letter)
}

fn grid_extents(rows: Int, columns: Int) -> Result<(usize, usize)> {
    match (usize::try_from(rows), usize::try_from(columns)) {
        (Ok(grid_rows @ 1..), Ok(grid_columns @ 1..)) => Ok((grid_rows, grid_columns)),
        _ => Err(CallError::NoGrid { rows, columns }),
    }
}

/// Reads a map: process numbers, column by column. A grid has at most `most` processes.
fn map_of(numbers: Integers, leading: Int, rows: Int, columns: Int, most: usize) -> Result<GridMap> {
    let (grid_rows, grid_columns) = grid_extents(rows, columns)?;
    if grid_rows.saturating_mul(grid_columns) > most {
        return Err(BlacsError::TooFewProcesses { rows: grid_rows, columns: grid_columns, processes: most }.into());
    }
    let apart = usize::try_from(leading).ok().filter(|apart| *apart >= grid_rows);
    let apart = apart.ok_or(CallError::ShortMap { rows, leading })?;
    let mut wrong = None;
    let map = GridMap::new(grid_rows, grid_columns, |row, column| {
        let number = numbers.get(column * apart + row);
        usize::try_from(number).unwrap_or_else(|_| {
            wrong = Some(CallError::NoProcess { row, column, number });
            usize::MAX
        })
    });
    wrong.map_or(Ok(()), Err)?;
    Ok(map?)
}
