//! Calls with invalid arguments, and mismatched calls.

use crate::harness::{everywhere, topologies};
use blacs::{
    Blacs, BlacsError, Combine, Diag, GridMap, Matrix, MatrixMut, Memory, MemoryMut, Order, Parameters, Precision,
    Scope, Shape, Topology, Uplo, Winners,
};
use rdma_fabric::{Fabric, ProgramResult};
use std::ops::Range;

#[test]
fn grids_that_there_can_not_be() {
    assert_eq!(GridMap::new(0, 2, |_, _| 0), Err(BlacsError::BadExtent { rows: 0, columns: 2 }));
    let twice = GridMap::new(2, 2, |row, column| [[4, 0], [1, 4]][row][column]);
    assert_eq!(twice, Err(BlacsError::DuplicateProcess { number: 4, first: (0, 0), second: (1, 1) }));
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let too_few = BlacsError::TooFewProcesses { rows: 3, columns: 1, processes: 2 };
        assert_eq!(too_few.to_string(), "a grid of 3 x 1 needs 3 processes, but there are 2");
        assert_eq!(blacs.grid(Order::RowMajor, 3, 1).await.err(), Some(too_few));
        let huge = BlacsError::TooFewProcesses { rows: usize::MAX, columns: 2, processes: 2 };
        assert_eq!(blacs.grid(Order::RowMajor, usize::MAX, 2).await.err(), Some(huge));
        let none = Some(BlacsError::BadExtent { rows: 1, columns: 0 });
        assert_eq!(blacs.grid(Order::ColumnMajor, 1, 0).await.err(), none);
        let stranger = blacs.map(&GridMap::new(1, 2, |_, column| 2 * column)?).await.err();
        assert_eq!(stranger, Some(BlacsError::NoSuchProcess { number: 2, processes: 2 }));
        // The failed calls have had no effect.
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn coordinates_outside_the_grid_are_refused() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        let outside = |row, column| Err(BlacsError::OutsideGrid { row, column, rows: 1, columns: 2 });
        let (mut a, all, default) = ([1.0], Scope::All, Topology::Default);
        assert_eq!(grid.send(Matrix::new(&a, 1, 1, 1)?, (0, 2)).await, outside(0, 2));
        assert_eq!(grid.recv(MatrixMut::new(&mut a, 1, 1, 1)?, (1, 0)).await, outside(1, 0));
        assert_eq!(grid.broadcast_recv(all, default, MatrixMut::new(&mut a, 1, 1, 1)?, (1, 1)).await, outside(1, 1));
        assert_eq!(grid.sum(all, default, MatrixMut::new(&mut a, 1, 1, 1)?, Some((7, 0))).await, outside(7, 0));
        assert_eq!(
            grid.amax(Scope::Row, default, MatrixMut::new(&mut a, 1, 1, 1)?, None, Some((0, 2))).await,
            outside(0, 2)
        );
        // In a row, only the column counts.
        grid.sum(Scope::Row, default, MatrixMut::new(&mut a, 1, 1, 1)?, Some((9, 1))).await?;
        assert_eq!(a, [if grid.column() == 1 { 2.0 } else { 1.0 }]);
        let (row, column) = grid.me();
        let itself = grid.broadcast_recv(Scope::Row, default, MatrixMut::new(&mut a, 1, 1, 1)?, (row, column)).await;
        assert_eq!(itself, Err(BlacsError::FromSelf { row, column }));
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn memory_that_is_too_short_is_refused() {
    let mut memory = [0; 10];
    let refused = |needed| BlacsError::TooShort { needed, elements: 10 };
    assert!(Matrix::new(&memory, 2, 3, 4).is_ok());
    assert_eq!(Matrix::new(&memory, 3, 3, 4).err(), Some(refused(11)));
    assert_eq!(MatrixMut::new(&mut memory, 4, 3, 1).err(), Some(refused(12)));
    assert_eq!(Matrix::new(&memory, usize::MAX, 2, 1).err(), Some(refused(usize::MAX)));
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 1).await?.expect("all processes");
        let (mut a, mut rows, mut columns) = ([1; 4], [0; 4], [0; 3]);
        let winners = Winners { rows: &mut rows, columns: &mut columns, leading: 2 };
        let amax =
            grid.amax(Scope::All, Topology::Default, MatrixMut::new(&mut a, 2, 2, 2)?, Some(winners), None).await;
        assert_eq!(amax, Err(BlacsError::TooShort { needed: 4, elements: 3 }));
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn parameters_are_checked_and_kept() {
    everywhere(1, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let mut grid = blacs.grid(Order::RowMajor, 1, 1).await?.expect("all processes");
        let defaults = grid.parameters();
        assert_eq!((defaults.broadcast_rings, defaults.broadcast_branches), (1, 1));
        assert_eq!((defaults.combine_rings, defaults.combine_branches), (1, 1));
        assert!(!defaults.repeatable && !defaults.coherent);
        for wrong in [
            Parameters { broadcast_rings: 0, ..defaults },
            Parameters { combine_rings: 0, ..defaults },
            Parameters { broadcast_branches: 0, ..defaults },
            Parameters { combine_branches: 0, ..defaults },
        ] {
            assert!(matches!(grid.set_parameters(wrong), Err(BlacsError::BadParameter { value: 0, .. })));
            assert_eq!(grid.parameters(), defaults);
        }
        let other = Parameters { combine_rings: -3, repeatable: true, ..defaults };
        grid.set_parameters(other)?;
        assert_eq!(grid.parameters(), other);
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn letters_mean_what_the_standard_says() {
    assert_eq!(
        [b'r', b'C', b'a', b'x'].map(Scope::from_letter),
        [Some(Scope::Row), Some(Scope::Column), Some(Scope::All), None]
    );
    assert_eq!(
        [b'c', b'C', b'r', b'?'].map(Order::from_letter),
        [Order::ColumnMajor, Order::ColumnMajor, Order::RowMajor, Order::RowMajor]
    );
    assert_eq!([b'u', b'U', b'l', b'?'].map(Uplo::from_letter), [Uplo::Upper, Uplo::Upper, Uplo::Lower, Uplo::Lower]);
    assert_eq!([b'u', b'U', b'n', b'?'].map(Diag::from_letter), [Diag::Unit, Diag::Unit, Diag::NonUnit, Diag::NonUnit]);
    assert_eq!(b"IDSMTFH".map(Topology::from_letter), b"idsmtfh".map(Topology::from_letter));
    assert_eq!(b"0x-".map(Topology::from_letter), [None; 3]);
}

/// The receiver receives an error, and the messages after it are not affected.
#[test]
fn a_message_of_another_length_is_an_error_at_the_receiver() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        for round in 0..40 {
            for (sent, expected) in [(3, 2), (2, 3), (0, 1), (1, 0), (2000, 1999), (1999, 2000)] {
                // In some rounds the receive is posted first.
                if round % 2 == grid.column() {
                    grid.fabric().sleep(std::time::Duration::from_micros(40)).await;
                }
                if grid.column() == 0 {
                    grid.send(Matrix::new(&vec![1.5; sent], sent, 1, sent)?, (0, 1)).await?;
                    grid.send(Matrix::new(&[2.5], 1, 1, 1)?, (0, 1)).await?;
                } else {
                    let mut a = vec![0.0; expected];
                    let received = grid.recv(MatrixMut::new(&mut a, expected, 1, expected)?, (0, 0)).await;
                    let (sent, expected) = (8 * sent, 8 * expected);
                    assert_eq!(received, Err(BlacsError::ShapeMismatch { from: (0, 0), sent, expected }));
                    let mut a = [0.0];
                    grid.recv(MatrixMut::new(&mut a, 1, 1, 1)?, (0, 0)).await?;
                    assert_eq!(a, [2.5]);
                }
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// No member waits forever, and the scope can be used afterwards.
#[test]
fn a_wrong_shape_is_reported_to_all_dependents() {
    everywhere(5, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 5).await?.expect("all processes");
        let me = grid.column();
        for topology in topologies() {
            for (sent, expected) in [(2, 3), (3, 2)] {
                if me == 1 {
                    grid.broadcast_send(Scope::Row, topology, Matrix::new(&[1.0; 3], sent, 1, sent)?).await?;
                } else {
                    let mut a = [0.0; 3];
                    let a = MatrixMut::new(&mut a, expected, 1, expected)?;
                    let received = grid.broadcast_recv(Scope::Row, topology, a, (0, 1)).await;
                    assert!(matches!(received, Err(BlacsError::ShapeMismatch { .. })), "{topology:?}: {received:?}");
                }
                // One member has a different shape; the result goes to all members or to the first
                // one.
                for to in [None, Some((0, 0))] {
                    let mine = if me == 3 { sent } else { expected };
                    let mut a = [1.0; 3];
                    let a = MatrixMut::new(&mut a, mine, 1, mine)?;
                    let combined = grid.sum(Scope::Row, topology, a, to).await;
                    if to.is_none() || me == 0 {
                        assert!(
                            matches!(combined, Err(BlacsError::ShapeMismatch { .. })),
                            "{topology:?}: {combined:?}"
                        );
                    }
                }
                let mut a = [1.0];
                grid.sum(Scope::Row, topology, MatrixMut::new(&mut a, 1, 1, 1)?, None).await?;
                assert_eq!(a, [5.0]);
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// Sizes never wrap around, whatever the arguments.
#[test]
fn sizes_without_sense_are_errors() {
    const MOST: usize = usize::MAX;
    for (rows, columns) in [(MOST, 1), (1, MOST), (MOST, MOST), (1 << 33, 1 << 33)] {
        let most = u32::MAX as usize;
        let error = GridMap::new(rows, columns, |row, _| row);
        assert_eq!(error, Err(BlacsError::TooFewProcesses { rows, columns, processes: most }));
    }
    let extents =
        [(MOST, MOST, MOST), (MOST, 2, 0), (2, MOST, MOST), (1, MOST, 1), (MOST / 2, 3, 1), (MOST - 1, MOST, 7)];
    for (rows, columns, leading) in extents {
        let shapes = [Uplo::Upper, Uplo::Lower].into_iter().flat_map(|uplo| {
            [Diag::Unit, Diag::NonUnit].map(move |diag| Shape::trapezoid(uplo, diag, rows, columns, leading))
        });
        for shape in shapes.chain([Shape::general(rows, columns, leading)]) {
            assert!(shape.elements() >= rows.min(columns) - 1, "{shape:?}");
            assert!(shape.extent() >= shape.elements().min(MOST / 2), "{shape:?}");
        }
        let too_short = |error| matches!(error, Some(BlacsError::TooShort { .. }));
        assert!(too_short(Matrix::new(&[0.0f64; 4], rows, columns, leading).err()));
        assert!(too_short(MatrixMut::new(&mut [0.0f64; 4], rows, columns, leading).err()));
    }
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        let too_short = |done: Result<(), BlacsError>| {
            let error = done.expect_err("a matrix that no memory has");
            assert!(matches!(error, BlacsError::TooShort { .. }), "{error}");
        };
        let (precision, all, default) = (Precision::Z, Scope::All, Topology::Default);
        for shape in [Shape::general(MOST, 1, MOST), Shape::general(MOST / 16, 2, 0), Shape::general(3, MOST / 3, 3)] {
            let mut memory = Nowhere;
            too_short(grid.send_bytes(precision, &shape, &memory, (0, 0)).await);
            too_short(grid.recv_bytes(precision, &shape, &mut memory, (0, 0)).await);
            too_short(grid.broadcast_send_bytes(all, default, precision, &shape, &memory).await);
            too_short(grid.broadcast_recv_bytes(all, default, precision, &shape, &mut memory, (0, 0)).await);
            let sum = Combine::Sum;
            too_short(grid.combine_bytes(all, default, sum, precision, &shape, &mut memory, None, None).await);
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// Memory whose bytes are never requested.
struct Nowhere;

impl Memory for Nowhere {
    fn bytes(&self, range: Range<usize>) -> &[u8] {
        panic!("bytes {range:?}")
    }
}

impl MemoryMut for Nowhere {
    fn bytes_mut(&mut self, range: Range<usize>) -> &mut [u8] {
        panic!("bytes {range:?}")
    }

    fn bytes(&self, range: Range<usize>) -> &[u8] {
        panic!("bytes {range:?}")
    }
}
