//! Pending messages, and barriers.

use crate::harness::everywhere;
use blacs::{Blacs, Grid, Matrix, MatrixMut, Order, Scope, Topology};
use rdma_fabric::{Fabric, ProgramResult};
use std::time::Duration;

async fn send(grid: &Grid, number: i32, to: usize) -> ProgramResult<()> {
    Ok(grid.send(Matrix::new(&[number], 1, 1, 1)?, (0, to)).await?)
}

async fn expect(grid: &Grid, number: i32, from: usize) -> ProgramResult<()> {
    let mut found = [0];
    grid.recv(MatrixMut::new(&mut found, 1, 1, 1)?, (0, from)).await?;
    assert_eq!(found, [number]);
    Ok(())
}

#[test]
fn a_hundred_messages_wait_for_their_receives() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 3).await?.expect("all processes");
        let me = grid.column();
        for n in 0..100 {
            for to in 0..3 {
                send(&grid, 1000 * me as i32 + n, to).await?;
            }
        }
        for from in 0..3 {
            for n in 0..100 {
                expect(&grid, 1000 * from as i32 + n, from).await?;
            }
        }
        // The message counters have wrapped around.
        for n in 0..300 {
            send(&grid, n, (me + 1) % 3).await?;
            expect(&grid, n, (me + 2) % 3).await?;
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// The sender waits in another grid for the process that has to receive first.
#[test]
fn messages_do_not_depend_on_calls_of_other_grids() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let first = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        let second = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        for round in 0..4 {
            if first.column() == 0 {
                for n in 0..100 {
                    send(&first, n, 1).await?;
                }
            }
            if first.column() == 1 {
                for n in 0..100 {
                    expect(&first, n, 0).await?;
                }
            }
            match round {
                0 => second.barrier(Scope::All).await?,
                1 => second.barrier(Scope::Row).await?,
                2 => {
                    let mut a = [1.0];
                    second.sum(Scope::All, Topology::Default, MatrixMut::new(&mut a, 1, 1, 1)?, None).await?;
                }
                _ => blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes").exit().await?,
            }
        }
        second.exit().await?;
        first.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// Messages of pairs, rows, columns and of the whole grid are received in a different order than
/// they were sent.
#[test]
fn spaces_of_messages_are_independent() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 2, 2).await?.expect("all processes");
        let is_root = grid.me() == (0, 0);
        for round in 0..5 {
            if is_root {
                for (scope, number) in [(Scope::Row, 1), (Scope::Column, 2), (Scope::All, 3)] {
                    let a = [10 * round + number];
                    grid.broadcast_send(scope, Topology::Full, Matrix::new(&a, 1, 1, 1)?).await?;
                }
                for to in [(0, 1), (1, 0), (1, 1)] {
                    grid.send(Matrix::new(&[10 * round + 4], 1, 1, 1)?, to).await?;
                }
            } else {
                let mut a = [0];
                grid.recv(MatrixMut::new(&mut a, 1, 1, 1)?, (0, 0)).await?;
                assert_eq!(a, [10 * round + 4]);
                for (scope, number) in [(Scope::All, 3), (Scope::Column, 2), (Scope::Row, 1)] {
                    let takes_part = match scope {
                        Scope::All => true,
                        Scope::Row => grid.row() == 0,
                        Scope::Column => grid.column() == 0,
                    };
                    if takes_part {
                        grid.broadcast_recv(scope, Topology::Full, MatrixMut::new(&mut a, 1, 1, 1)?, (0, 0)).await?;
                        assert_eq!(a, [10 * round + number]);
                    }
                }
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// No member returns before the last one of its scope has entered; other processes need not enter.
#[test]
fn a_barrier_waits_for_its_scope_only() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 2, 2).await?.expect("all processes");
        grid.barrier(Scope::All).await?;
        for (scope, late) in [(Scope::Row, grid.column()), (Scope::Column, grid.row())] {
            let other = match scope {
                Scope::Row => (grid.row(), 1 - grid.column()),
                _ => (1 - grid.row(), grid.column()),
            };
            for round in 0..3 {
                let mut came = [grid.fabric().now().as_picos() as i64];
                if late == 1 {
                    grid.fabric().sleep(Duration::from_micros(300)).await;
                    came = [grid.fabric().now().as_picos() as i64];
                }
                grid.barrier(scope).await?;
                let left = grid.fabric().now().as_picos() as i64;
                grid.send(Matrix::new(&came, 1, 1, 1)?, other).await?;
                let mut theirs = [0i64];
                grid.recv(MatrixMut::new(&mut theirs, 1, 1, 1)?, other).await?;
                assert!(theirs[0] <= left, "{scope:?} round {round}: left {left}, the other came at {}", theirs[0]);
            }
        }
        // The first row synchronizes without the second one.
        if grid.row() == 0 {
            grid.barrier(Scope::Row).await?;
            grid.send(Matrix::new(&[1], 1, 1, 1)?, (1, grid.column())).await?;
        } else {
            grid.recv(MatrixMut::new(&mut [0], 1, 1, 1)?, (0, grid.column())).await?;
            grid.barrier(Scope::Row).await?;
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}
