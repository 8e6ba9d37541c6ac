//! The choice among several elements of the same magnitude.

use crate::harness::{everywhere, topologies};
use blacs::{Blacs, MatrixMut, Order, Scope, Winners};
use rdma_fabric::{Fabric, ProgramResult};

/// Regardless of the topology, the contributor nearest to the destination wins, and the result has
/// its sign.
#[test]
fn the_nearest_of_those_with_the_same_magnitude_wins() {
    // By column: those with 5 win, those with 4 lose, in each direction.
    let contributed = [4, -5, 5, -5, 4];
    everywhere(5, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 5).await?.expect("all processes");
        let me = grid.column();
        for topology in topologies() {
            for (to, nearest, least) in
                [(None, 1, 0), (Some(0), 1, 0), (Some(1), 1, 4), (Some(2), 2, 4), (Some(3), 3, 4), (Some(4), 1, 4)]
            {
                for (greatest, winner) in [(true, nearest), (false, least)] {
                    let (mut a, mut row, mut column) = ([contributed[me]], [-1], [-1]);
                    let winners = Some(Winners { rows: &mut row, columns: &mut column, leading: 1 });
                    let (matrix, there) = (MatrixMut::new(&mut a, 1, 1, 1)?, to.map(|to| (0, to)));
                    match greatest {
                        true => grid.amax(Scope::Row, topology, matrix, winners, there).await?,
                        false => grid.amin(Scope::Row, topology, matrix, winners, there).await?,
                    }
                    let expected = match to.is_none_or(|to| to == me) {
                        true => (contributed[winner], 0, winner as i32),
                        false => (contributed[me], -1, -1),
                    };
                    assert_eq!((a[0], row[0], column[0]), expected, "{topology:?} to {to:?}, greatest: {greatest}");
                }
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

#[test]
fn without_winners_the_greater_value_is_kept_of_those_with_the_same_magnitude() {
    everywhere(3, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::ColumnMajor, 3, 1).await?.expect("all processes");
        let me = grid.row();
        for topology in topologies() {
            for greatest in [true, false] {
                let (mut i, mut s) = ([[-5, 5, -5][me], i32::MIN], [[-0.0f32, -0.0, 0.0][me], [2.5, -2.5, -2.5][me]]);
                let c = [[-4.0, 3.0], [4.0, -3.0], [3.0, 4.0]];
                let mut c = [c[me], [[1.0, -6.0], [1.0, 6.0], [-1.0, 6.0]][me]];
                if greatest {
                    grid.amax(Scope::Column, topology, MatrixMut::new(&mut i, 1, 2, 1)?, None, None).await?;
                    grid.amax(Scope::Column, topology, MatrixMut::new(&mut s, 2, 1, 2)?, None, None).await?;
                    grid.amax(Scope::Column, topology, MatrixMut::new(&mut c, 1, 2, 1)?, None, None).await?;
                } else {
                    grid.amin(Scope::Column, topology, MatrixMut::new(&mut i, 1, 2, 1)?, None, None).await?;
                    grid.amin(Scope::Column, topology, MatrixMut::new(&mut s, 2, 1, 2)?, None, None).await?;
                    grid.amin(Scope::Column, topology, MatrixMut::new(&mut c, 1, 2, 1)?, None, None).await?;
                }
                assert_eq!(i, [5, i32::MIN], "{topology:?}");
                assert_eq!((s[0].to_bits(), s[1]), (0, 2.5), "{topology:?}");
                assert_eq!(c, [[4.0, -3.0], [1.0, 6.0]], "{topology:?}");
            }
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// The least integer has no positive counterpart, but it has the greatest magnitude.
#[test]
fn magnitudes_of_integers_do_not_overflow() {
    everywhere(2, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 2).await?.expect("all processes");
        let mut a = [[i32::MIN, i32::MAX][grid.column()]];
        grid.amax(Scope::All, Default::default(), MatrixMut::new(&mut a, 1, 1, 1)?, None, None).await?;
        assert_eq!(a, [i32::MIN]);
        let mut a = [[i64::MIN, i64::MAX][grid.column()]];
        grid.amin(Scope::All, Default::default(), MatrixMut::new(&mut a, 1, 1, 1)?, None, None).await?;
        assert_eq!(a, [i64::MAX]);
        let mut a = [i32::MAX, 1];
        grid.sum(Scope::All, Default::default(), MatrixMut::new(&mut a, 2, 1, 2)?, None).await?;
        assert_eq!(a, [-2, 2]);
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}
