//! Broadcasts: matrices from one process to all processes of a scope.

use crate::harness::{Guarded, Number, SCOPES, everywhere, large_shapes, shapes, topologies};
use blacs::{Blacs, Grid, Order, Scope, Shape, Topology};
use rdma_fabric::{Fabric, ProgramResult};

/// Broadcasts a shape from one process of each scope.
pub(crate) async fn round<T: Number>(
    grid: &Grid,
    scope: Scope,
    topology: Topology,
    shape: Shape,
    turn: usize,
) -> ProgramResult<()> {
    let root = (turn % grid.rows(), turn / 2 % grid.columns());
    let is_root = match scope {
        Scope::Row => root.1 == grid.column(),
        Scope::Column => root.0 == grid.row(),
        Scope::All => root == grid.me(),
    };
    // The root in a row or column depends on the caller's position.
    let from = match scope {
        Scope::Row => grid.row(),
        Scope::Column => grid.column(),
        Scope::All => 7,
    };
    let number = |i: usize, j: usize| (1000 * from + 13 * turn + i + 10 * j) as i32;
    if is_root {
        let a = Guarded::<T>::new(shape, number);
        grid.broadcast_send(scope, topology, a.get()).await?;
        a.check(number, "the source");
    } else {
        let mut a = Guarded::<T>::empty(shape);
        grid.broadcast_recv(scope, topology, a.get_mut(), root).await?;
        a.check(number, (scope, topology, T::PRECISION, root));
    }
    Ok(())
}

pub(crate) async fn all(fabric: Fabric, rows: usize, columns: usize) -> ProgramResult<()> {
    let mut blacs = Blacs::begin(&fabric).await?;
    let mut grid = blacs.grid(Order::RowMajor, rows, columns).await?.expect("all processes");
    let (shapes, mut turn) = (shapes(), 0);
    for rings in [1i32, -2, 3] {
        let mut parameters = grid.parameters();
        (parameters.broadcast_rings, parameters.broadcast_branches) = (rings, rings.unsigned_abs() as usize + 1);
        grid.set_parameters(parameters)?;
        for scope in SCOPES {
            for topology in topologies() {
                if rings != 1 && !matches!(topology, Topology::MultiRing | Topology::GeneralTree) {
                    continue;
                }
                for _ in 0..6 {
                    let shape = shapes[turn % shapes.len()];
                    match turn % 6 {
                        0 => round::<i32>(&grid, scope, topology, shape, turn).await?,
                        1 => round::<i64>(&grid, scope, topology, shape, turn).await?,
                        2 => round::<f32>(&grid, scope, topology, shape, turn).await?,
                        3 => round::<f64>(&grid, scope, topology, shape, turn).await?,
                        4 => round::<[f32; 2]>(&grid, scope, topology, shape, turn).await?,
                        _ => round::<[f64; 2]>(&grid, scope, topology, shape, turn).await?,
                    }
                    turn += 1;
                }
            }
        }
    }
    for shape in large_shapes() {
        for scope in SCOPES {
            turn += 1;
            round::<f64>(&grid, scope, Topology::Default, shape, turn).await?;
            round::<f32>(&grid, scope, Topology::SplitRing, shape, turn).await?;
        }
    }
    grid.exit().await?;
    Ok(blacs.exit().await?)
}

#[test]
fn every_topology_brings_every_shape_to_all_of_a_scope() {
    for (rows, columns) in [(1, 1), (1, 2), (2, 2), (3, 2), (1, 5)] {
        everywhere(rows * columns, &async |fabric: Fabric| -> ProgramResult<()> { all(fabric, rows, columns).await });
    }
}

/// All shapes and precisions, with one topology.
#[test]
fn every_shape_is_broadcast_in_every_precision() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::ColumnMajor, 2, 2).await?.expect("all processes");
        for (turn, shape) in shapes().into_iter().enumerate() {
            for scope in SCOPES {
                round::<i32>(&grid, scope, Topology::Default, shape, turn).await?;
                round::<i64>(&grid, scope, Topology::Hypercube, shape, turn).await?;
                round::<f32>(&grid, scope, Topology::Default, shape, turn).await?;
                round::<f64>(&grid, scope, Topology::Full, shape, turn).await?;
                round::<[f32; 2]>(&grid, scope, Topology::Default, shape, turn).await?;
                round::<[f64; 2]>(&grid, scope, Topology::IncreasingRing, shape, turn).await?;
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// The root and the relays continue before the other processes have called.
#[test]
fn a_broadcast_is_no_barrier() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 4).await?.expect("all processes");
        let shape = Shape::general(100, 100, 100);
        for topology in [Topology::Full, Topology::IncreasingRing] {
            if grid.column() == 0 {
                for n in 0..5 {
                    let a = Guarded::<f64>::new(shape, |i, j| (n * 7 + i + j) as i32);
                    grid.broadcast_send(Scope::Row, topology, a.get()).await?;
                }
                grid.send(Guarded::<i32>::new(Shape::general(1, 1, 1), |_, _| 5).get(), (0, 3)).await?;
            } else {
                if grid.column() == 3 {
                    // This process only joins here.
                    let mut a = Guarded::<i32>::empty(Shape::general(1, 1, 1));
                    grid.recv(a.get_mut(), (0, 0)).await?;
                }
                for n in 0..5 {
                    let mut a = Guarded::<f64>::empty(shape);
                    grid.broadcast_recv(Scope::Row, topology, a.get_mut(), (0, 0)).await?;
                    a.check(|i, j| (n * 7 + i + j) as i32, n);
                }
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}
