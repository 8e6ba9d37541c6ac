//! Sums, and the greatest and least magnitudes, over all processes of a scope.

use crate::harness::{Guarded, Number, SCOPES, everywhere, large_shapes, shapes, topologies};
use blacs::{Blacs, Grid, Order, Scope, Shape, Topology, Winners};
use rdma_fabric::{Fabric, ProgramResult};

/// One combine of each kind.
struct Round<'a> {
    grid: &'a Grid,
    scope: Scope,
    topology: Topology,
    shape: Shape,
    turn: usize,
    /// Whether all members receive the result.
    everywhere: bool,
}

impl Round<'_> {
    /// Returns the coordinates of the scope's members.
    fn members(&self) -> Vec<(usize, usize)> {
        let (rows, columns, (row, column)) = (self.grid.rows(), self.grid.columns(), self.grid.me());
        match self.scope {
            Scope::Row => (0..columns).map(|column| (row, column)).collect(),
            Scope::Column => (0..rows).map(|row| (row, column)).collect(),
            Scope::All => (0..rows).flat_map(|row| (0..columns).map(move |column| (row, column))).collect(),
        }
    }

    /// Returns a member's contribution: numbers whose magnitudes differ between members at each
    /// position.
    fn number(&self, (row, column): (usize, usize), i: usize, j: usize) -> i32 {
        let who = row * self.grid.columns() + column;
        let magnitude = 1 + (who + i + 2 * j + self.turn) % (self.grid.rows() * self.grid.columns());
        if (who + i + j).is_multiple_of(2) { magnitude as i32 } else { -(magnitude as i32) }
    }

    async fn play<T: Number>(&self) -> ProgramResult<()> {
        let Round { grid, scope, topology, shape, .. } = *self;
        let (to_row, to_column) = (self.turn % grid.rows(), self.turn / 2 % grid.columns());
        let to = (!self.everywhere).then_some((to_row, to_column));
        let gets = match scope {
            _ if self.everywhere => true,
            Scope::Row => to_column == grid.column(),
            Scope::Column => to_row == grid.row(),
            Scope::All => (to_row, to_column) == grid.me(),
        };
        let members = self.members();
        let mine = |i, j| self.number(grid.me(), i, j);
        let what = (scope, topology, T::PRECISION, to);

        let mut a = Guarded::<T>::new(shape, mine);
        grid.sum(scope, topology, a.get_mut(), to).await?;
        match gets {
            true => a.check(|i, j| members.iter().map(|member| self.number(*member, i, j)).sum(), ("sum", what)),
            false => a.check(mine, ("untouched", what)),
        }

        for greatest in [true, false] {
            let winner = |i, j| {
                let magnitude = |member: &&(usize, usize)| self.number(**member, i, j).abs();
                let of = members.iter();
                *if greatest { of.max_by_key(magnitude) } else { of.min_by_key(magnitude) }.expect("a member")
            };
            let leading = shape.rows() + self.turn % 3;
            let cells = leading.max(1) * shape.columns() + 2;
            let (mut rows, mut columns) = (vec![-7; cells], vec![-8; cells]);
            for asks in [true, false] {
                let winners = Winners { rows: &mut rows, columns: &mut columns, leading };
                let winners = asks.then_some(winners);
                let mut a = Guarded::<T>::new(shape, mine);
                match greatest {
                    true => grid.amax(scope, topology, a.get_mut(), winners, to).await?,
                    false => grid.amin(scope, topology, a.get_mut(), winners, to).await?,
                }
                match gets {
                    true => a.check(|i, j| self.number(winner(i, j), i, j), ("magnitudes", greatest, asks, what)),
                    false => a.check(mine, ("untouched", what)),
                }
            }
            let leading = leading.max(shape.rows()).max(1);
            let (mut expected_rows, mut expected_columns) = (vec![-7; cells], vec![-8; cells]);
            if gets {
                for (i, j) in crate::harness::places(&shape) {
                    let (row, column) = winner(i, j);
                    expected_rows[j * leading + i] = row as i32;
                    expected_columns[j * leading + i] = column as i32;
                }
            }
            assert_eq!((rows, columns), (expected_rows, expected_columns), "{what:?} {shape:?}");
        }
        Ok(())
    }
}

async fn all(fabric: Fabric, rows: usize, columns: usize) -> ProgramResult<()> {
    let mut blacs = Blacs::begin(&fabric).await?;
    let mut grid = blacs.grid(Order::RowMajor, rows, columns).await?.expect("all processes");
    let (shapes, mut turn) = (shapes(), 0);
    for (rings, coherent) in [(1i32, false), (-2, true), (3, false)] {
        let mut parameters = grid.parameters();
        (parameters.combine_rings, parameters.combine_branches) = (rings, rings.unsigned_abs() as usize + 1);
        parameters.coherent = coherent;
        grid.set_parameters(parameters)?;
        for scope in SCOPES {
            for topology in topologies() {
                let by_parameters = matches!(topology, Topology::MultiRing | Topology::GeneralTree);
                if rings != 1 && !by_parameters && !(coherent && topology == Topology::Hypercube) {
                    continue;
                }
                for everywhere in [true, false] {
                    for _ in 0..2 {
                        let shape = shapes[turn % shapes.len()];
                        let round = Round { grid: &grid, scope, topology, shape, turn, everywhere };
                        match turn / 2 % 6 {
                            0 => round.play::<i32>().await?,
                            1 => round.play::<i64>().await?,
                            2 => round.play::<f32>().await?,
                            3 => round.play::<f64>().await?,
                            4 => round.play::<[f32; 2]>().await?,
                            _ => round.play::<[f64; 2]>().await?,
                        }
                        turn += 1;
                    }
                    // Otherwise each topology would always be tested with the same shapes.
                    turn += 5;
                }
            }
        }
    }
    for (n, shape) in large_shapes().into_iter().enumerate() {
        let round =
            Round { grid: &grid, scope: Scope::All, topology: Topology::Default, shape, turn, everywhere: n % 2 == 0 };
        round.play::<f64>().await?;
    }
    grid.exit().await?;
    Ok(blacs.exit().await?)
}

#[test]
fn every_topology_combines_every_shape_of_a_scope() {
    for (rows, columns) in [(1, 1), (2, 2), (3, 2), (1, 5)] {
        everywhere(rows * columns, &async |fabric: Fabric| -> ProgramResult<()> { all(fabric, rows, columns).await });
    }
}

/// All shapes and precisions, with one topology.
#[test]
fn every_shape_is_combined_in_every_precision() {
    everywhere(4, &async |fabric: Fabric| -> ProgramResult<()> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::ColumnMajor, 2, 2).await?.expect("all processes");
        for (turn, shape) in shapes().into_iter().enumerate() {
            let (scope, everywhere) = (SCOPES[turn % 3], turn % 2 == 0);
            let round = Round { grid: &grid, scope, topology: Topology::Default, shape, turn, everywhere };
            round.play::<i32>().await?;
            round.play::<i64>().await?;
            round.play::<f32>().await?;
            round.play::<f64>().await?;
            round.play::<[f32; 2]>().await?;
            round.play::<[f64; 2]>().await?;
        }
        grid.exit().await?;
        Ok(blacs.exit().await?)
    });
}

/// Numbers whose sum depends on the order of additions.
fn rough(who: usize, at: usize) -> f64 {
    let mut random = fastrand::Rng::with_seed(who as u64 * 1000 + at as u64);
    random.f64() * 2f64.powi(random.i32(-27..37))
}

/// The members start at different times. The bits must not depend on that, nor differ between the
/// receivers of the result.
#[test]
fn sums_have_the_same_bits_each_time_and_everywhere() {
    let outs = everywhere(6, &async |fabric: Fabric| -> ProgramResult<Vec<u64>> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 1, 6).await?.expect("all processes");
        let mut first: Option<Vec<u64>> = None;
        let mut all = Vec::new();
        for topology in topologies() {
            for round in 0..4 {
                let late = (grid.column() * (2 * round + 1)) % 6;
                grid.fabric().sleep(std::time::Duration::from_micros(30 * late as u64)).await;
                let mut values: Vec<f64> = (0..20).map(|at| rough(grid.column(), at)).collect();
                grid.sum(Scope::Row, topology, blacs::MatrixMut::new(&mut values, 4, 5, 4)?, None).await?;
                let bits: Vec<u64> = values.into_iter().map(f64::to_bits).collect();
                match &first {
                    Some(first) => assert_eq!(*first, bits, "{topology:?}"),
                    None => first = Some(bits),
                }
            }
            all.extend(first.take().expect("four rounds"));
        }
        grid.exit().await?;
        blacs.exit().await?;
        Ok(all)
    });
    assert!(outs.iter().all(|out| *out == outs[0]), "members have different bits");
}

/// In an exchange of eight members, all have the same bits, because operands are taken in the order of
/// their numbers.
#[test]
fn an_exchange_gives_all_the_same_bits() {
    let outs = everywhere(8, &async |fabric: Fabric| -> ProgramResult<Vec<u64>> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let grid = blacs.grid(Order::RowMajor, 2, 4).await?.expect("all processes");
        let me = 4 * grid.row() + grid.column();
        let mut values: Vec<f64> = (0..20).map(|at| rough(me, at)).collect();
        grid.sum(Scope::All, Topology::Hypercube, blacs::MatrixMut::new(&mut values, 4, 5, 4)?, None).await?;
        grid.exit().await?;
        blacs.exit().await?;
        Ok(values.into_iter().map(f64::to_bits).collect())
    });
    let all: Vec<Vec<f64>> = (0..8).map(|who| (0..20).map(|at| rough(who, at)).collect()).collect();
    let at = |n: usize| {
        ((all[0][n] + all[1][n]) + (all[2][n] + all[3][n])) + ((all[4][n] + all[5][n]) + (all[6][n] + all[7][n]))
    };
    let expected: Vec<u64> = (0..20).map(|n| at(n).to_bits()).collect();
    assert!(outs.iter().all(|out| *out == expected));
}
