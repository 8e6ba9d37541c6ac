//! Matrices between two processes.

use crate::harness::{Guarded, Number, everywhere, large_shapes, shapes};
use blacs::{Blacs, Grid, Matrix, MatrixMut, Order, Shape};
use rdma_fabric::{Fabric, ProgramResult};

/// Sends each shape to the next process and receives one from the previous process.
async fn round<T: Number>(grid: &Grid, shapes: &[Shape]) -> ProgramResult<()> {
    let (row, column) = grid.me();
    let number = |row, column| (grid.number(row, column).expect("a process") * 1000) as i32;
    let next = ((row + 1) % grid.rows(), (column + 1) % grid.columns());
    let before = ((row + grid.rows() - 1) % grid.rows(), (column + grid.columns() - 1) % grid.columns());
    let (mine, theirs) = (number(row, column), number(before.0, before.1));
    for shape in shapes {
        let a = Guarded::<T>::new(*shape, |i, j| mine + (i + 10 * j) as i32 % 997);
        grid.send(a.get(), next).await?;
        let mut b = Guarded::<T>::empty(*shape);
        grid.recv(b.get_mut(), before).await?;
        b.check(|i, j| theirs + (i + 10 * j) as i32 % 997, T::PRECISION);
    }
    Ok(())
}

#[test]
fn every_shape_arrives_in_every_precision() {
    everywhere(6, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 2, 3).await?.expect("all processes");
        let shapes = shapes();
        round::<i32>(&grid, &shapes).await?;
        round::<i64>(&grid, &shapes).await?;
        round::<f32>(&grid, &shapes).await?;
        round::<f64>(&grid, &shapes).await?;
        round::<[f32; 2]>(&grid, &shapes).await?;
        round::<[f64; 2]>(&grid, &shapes).await?;
        round::<f64>(&grid, &large_shapes()).await?;
        round::<i32>(&grid, &large_shapes()).await?;
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn sender_and_receiver_agree_in_elements_only() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::ColumnMajor, 2, 1).await?.expect("all processes");
        let (flat, wide) = (Shape::general(12, 1, 20), Shape::general(3, 4, 7));
        if grid.row() == 0 {
            grid.send(Guarded::<f32>::new(flat, |i, _| i as i32).get(), (1, 0)).await?;
            grid.send(Guarded::<f32>::new(wide, |i, j| (10 * i + j) as i32).get(), (1, 0)).await?;
        } else {
            let mut a = Guarded::<f32>::empty(wide);
            grid.recv(a.get_mut(), (0, 0)).await?;
            a.check(|i, j| (i + 3 * j) as i32, "columns");
            let mut a = Guarded::<f32>::empty(flat);
            grid.recv(a.get_mut(), (0, 0)).await?;
            a.check(|i, _| (10 * (i % 3) + i / 3) as i32, "one column");
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn a_process_sends_to_itself() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 1).await?.expect("all processes");
        round::<f64>(&grid, &shapes()).await?;
        for n in 0..5 {
            grid.send(Matrix::new(&[n, n + 1], 2, 1, 2)?, (0, 0)).await?;
        }
        for n in 0..5 {
            let mut found = [0; 2];
            grid.recv(MatrixMut::new(&mut found, 2, 1, 2)?, (0, 0)).await?;
            assert_eq!(found, [n, n + 1]);
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn everyone_sends_first() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 3).await?.expect("all processes");
        // 200 KB each.
        let shape = Shape::general(250, 100, 251);
        for to in 0..3 {
            for n in 0..3 {
                let a = Guarded::<f64>::new(shape, |i, j| (100_000 * n + i + 250 * j + grid.column()) as i32);
                grid.send(a.get(), (0, to)).await?;
            }
        }
        for from in (0..3).rev() {
            for n in 0..3 {
                let mut a = Guarded::<f64>::empty(shape);
                grid.recv(a.get_mut(), (0, from)).await?;
                a.check(|i, j| (100_000 * n + i + 250 * j + from) as i32, n);
            }
        }
        grid.free_buffers(true).await?;
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn memory_of_the_fabric_is_sent_and_received() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        let region = fabric.alloc(8 * 6000)?;
        let span = region.span::<f64>(&fabric, 0, 6000)?;
        let mut values: Vec<f64> = (0..6000).map(f64::from).collect();
        for (rows, columns, leading) in [(3000, 2, 3000), (50, 100, 60), (1, 1, 1), (2, 0, 2)] {
            let shape = Shape::general(rows, columns, leading);
            if grid.column() == 0 {
                fabric.write(&span, &values)?;
                let a = Matrix::registered(&span, rows, columns, leading)?;
                grid.send(a, (0, 1)).await?;
            } else {
                values.fill(-1.0);
                fabric.write(&span, &values)?;
                grid.recv(MatrixMut::registered(&span, rows, columns, leading)?, (0, 0)).await?;
                fabric.read(&span, &mut values)?;
                let runs: Vec<_> = shape.runs().collect();
                for (at, value) in values.iter().enumerate() {
                    let is_inside = runs.iter().any(|run| run.contains(&at));
                    assert_eq!(*value, if is_inside { at as f64 } else { -1.0 }, "{shape:?}");
                }
            }
            // The sum of both ends is the same matrix twice.
            grid.sum(
                blacs::Scope::Row,
                Default::default(),
                MatrixMut::registered(&span, rows, columns, leading)?,
                None,
            )
            .await?;
            if grid.column() == 1 && rows > 1 && columns > 0 {
                fabric.read(&span, &mut values)?;
                assert_eq!(values[1], 2.0);
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}
