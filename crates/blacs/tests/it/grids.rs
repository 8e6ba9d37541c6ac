//! The positions of processes, and grids that are disjoint, overlap or are nested.

use crate::harness::everywhere;
use blacs::{Blacs, BlacsError, Grid, GridMap, Matrix, MatrixMut, Options, Order, Scope, Threads, Topology};
use rdma_fabric::{Fabric, ProgramResult};

/// Adds up the numbers of the processes of a scope.
async fn total(grid: &Grid, scope: Scope, number: usize) -> ProgramResult<usize> {
    let mut a = [number as i32];
    grid.sum(scope, Topology::Default, MatrixMut::new(&mut a, 1, 1, 1)?, None).await?;
    Ok(a[0] as usize)
}

#[test]
fn processes_stand_in_the_order_asked_for() {
    everywhere(7, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin_with(&fabric, Options::default().threads(Threads::Many)).await?;
        let me = blacs.me();
        assert_eq!((me, blacs.processes()), (fabric.rank().index(), 7));
        for order in [Order::RowMajor, Order::ColumnMajor] {
            let number = |row, column| match order {
                Order::RowMajor => 3 * row + column,
                Order::ColumnMajor => 2 * column + row,
            };
            let grid = blacs.grid(order, 2, 3).await?;
            assert_eq!(grid.is_some(), me < 6);
            let Some(grid) = grid else { continue };
            assert_eq!((grid.rows(), grid.columns(), grid.me()), (2, 3, (grid.row(), grid.column())));
            for row in 0..2 {
                for column in 0..3 {
                    assert_eq!(grid.number(row, column), Some(number(row, column)));
                    assert_eq!(grid.coordinates(number(row, column)), Some((row, column)));
                }
            }
            assert_eq!((grid.number(2, 0), grid.number(0, 3), grid.coordinates(6)), (None, None, None));
            assert_eq!(grid.number(grid.row(), grid.column()), Some(me));
            let row: usize = (0..3).map(|column| number(grid.row(), column)).sum();
            let column: usize = (0..2).map(|row| number(row, grid.column())).sum();
            assert_eq!(total(&grid, Scope::Row, me).await?, row);
            assert_eq!(total(&grid, Scope::Column, me).await?, column);
            assert_eq!(total(&grid, Scope::All, me).await?, 15);
            grid.exit().await?;
        }
        Ok(blacs.exit().await?)
    });
}

#[test]
fn grids_overlap_and_their_messages_never_meet() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let me = blacs.me();
        let square = blacs.grid(Order::RowMajor, 2, 2).await?.expect("all processes");
        let line = blacs.map(&GridMap::new(1, 4, |_, column| 3 - column)?).await?.expect("all processes");
        let some = blacs.map(&GridMap::new(3, 1, |row, _| [2, 0, 3][row])?).await?;
        assert_eq!(some.is_some(), me != 1);
        // Each process sends to each one in both grids, and receives in another order.
        for to in 0..4 {
            square.send(Matrix::new(&[100 + me as i64], 1, 1, 1)?, (to / 2, to % 2)).await?;
            line.send(Matrix::new(&[200 + me as i64], 1, 1, 1)?, (0, 3 - to)).await?;
        }
        if let Some(some) = &some {
            assert_eq!(total(some, Scope::Column, me).await?, 5);
            assert_eq!(some.coordinates(me), Some(some.me()));
        }
        for from in 0..4 {
            let (mut of_line, mut of_square) = ([0i64], [0i64]);
            line.recv(MatrixMut::new(&mut of_line, 1, 1, 1)?, (0, 3 - from)).await?;
            square.recv(MatrixMut::new(&mut of_square, 1, 1, 1)?, (from / 2, from % 2)).await?;
            assert_eq!((of_line[0], of_square[0]), (200 + from as i64, 100 + from as i64));
        }
        line.exit().await?;
        if let Some(some) = some {
            some.exit().await?;
        }
        square.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn processes_may_give_maps_that_name_different_processes() {
    everywhere(5, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let me = blacs.me();
        // Each row of a 2 x 2 grid becomes a grid; the last process is in none.
        let first = if me < 4 { me / 2 * 2 } else { 0 };
        let grid = blacs.map(&GridMap::new(1, 2, |_, column| first + column)?).await?;
        assert_eq!(grid.is_some(), me < 4);
        if let Some(grid) = grid {
            assert_eq!(total(&grid, Scope::All, me).await?, 2 * first + 1);
            grid.exit().await?;
        }
        Ok(blacs.exit().await?)
    });
}

#[test]
fn a_grid_is_made_of_another_ones_processes() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        // Ranks 5, 4, 3 and 2; the other ranks take no part in the following calls.
        let outer = blacs.map(&GridMap::new(2, 2, |row, column| 5 - 2 * row - column)?).await?;
        if let Some(mut outer) = outer {
            let (row, column) = outer.me();
            let number = 2 * row + column;
            let wrong = blacs.grid_of(&mut outer, Order::RowMajor, 5, 1).await.err();
            assert_eq!(wrong, Some(BlacsError::TooFewProcesses { rows: 5, columns: 1, processes: 4 }));
            let inner = blacs.grid_of(&mut outer, Order::ColumnMajor, 3, 1).await?;
            assert_eq!(inner.is_some(), number < 3);
            if let Some(mut inner) = inner {
                assert_eq!((inner.me(), inner.number(inner.row(), 0)), ((number, 0), Some(number)));
                assert_eq!(total(&inner, Scope::Column, number).await?, 3);
                let last = blacs.map_of(&mut inner, &GridMap::new(1, 2, |_, column| 2 - column)?).await?;
                assert_eq!(last.is_some(), number > 0);
                if let Some(last) = last {
                    assert_eq!(last.coordinates(number), Some(last.me()));
                    assert_eq!(total(&last, Scope::Row, number).await?, 3);
                    last.exit().await?;
                }
                inner.exit().await?;
            }
            assert_eq!(total(&outer, Scope::All, number).await?, 6);
            outer.exit().await?;
        }
        Ok(blacs.exit().await?)
    });
}

/// The requests conflict: the processes that agree get their grid if they are all of its members.
#[test]
fn a_differing_grid_is_reported() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let (rows, columns) = if blacs.me() < 2 { (1, 2) } else { (2, 2) };
        match blacs.grid(Order::RowMajor, rows, columns).await {
            Ok(Some(grid)) if blacs.me() < 2 => {
                assert_eq!(total(&grid, Scope::All, 1).await?, 2);
                grid.exit().await?;
            }
            Err(error) => {
                assert!(blacs.me() >= 2);
                assert_eq!(error, BlacsError::DifferentGrids { rows: 2, columns: 2, members: 2 });
            }
            other => panic!("{other:?}"),
        }
        Ok(blacs.exit().await?)
    });
}
