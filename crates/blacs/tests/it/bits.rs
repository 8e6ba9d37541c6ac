//! The bits of combined matrices where operands do not commute: NaNs with payloads, signed zeros,
//! infinities, sums that round.
//!
//! The result depends on the order of operands. All receivers of a result must obtain the same
//! bits, and the same bits on every run.

use crate::harness::{SCOPES, everywhere, topologies};
use blacs::{Blacs, BlacsError, Combine, Element, Grid, MatrixMut, Order, Parameters, Scope, Topology, Winners};
use rdma_fabric::{Fabric, ProgramResult, bytemuck::cast_slice};

/// Elements whose bits differ between processes.
trait Awkward: Element {
    fn of(case: usize, process: usize) -> Self;
}

const CASES: usize = 9;

macro_rules! awkward {
    ($($element:ty, $bits:ty, $quiet:expr;)*) => {$(
        impl Awkward for $element {
            fn of(case: usize, process: usize) -> Self {
                let nan = |payload: usize| <$element>::from_bits(<$element>::INFINITY.to_bits() | $quiet | payload as $bits);
                let odd = process % 2 == 1;
                match case {
                    0 => nan(process + 1),
                    1 if process == 1 => nan(7),
                    1 => process as $element,
                    2 => if odd { -0.0 } else { 0.0 },
                    3 => [<$element>::INFINITY, <$element>::NEG_INFINITY, 1.0, nan(5)][process % 4],
                    4 => if odd { -2.5 } else { 2.5 },
                    5 => if odd { -nan(process + 1) } else { nan(process + 1) },
                    6 => [1e30, 1.0, -1e30, 3.0][process % 4],
                    7 => if odd { nan(process + 1) } else { 4.0 - process as $element },
                    _ => process as $element,
                }
            }
        }

        impl Awkward for [$element; 2] {
            fn of(case: usize, process: usize) -> Self {
                [<$element>::of(case, process), <$element>::of((case + 2) % CASES, process + 1)]
            }
        }
    )*};
}
awkward! {
    f32, u32, 1 << 22;
    f64, u64, 1 << 51;
}

/// Combines all cases, to one process or to all; returns the bits, and the winners if requested.
async fn combined<T: Awkward>(
    grid: &Grid,
    (scope, topology): (Scope, Topology),
    combine: Combine,
    winners: bool,
    to: Option<(usize, usize)>,
) -> Result<(Vec<u8>, Vec<i32>), BlacsError> {
    let me = grid.row() * grid.columns() + grid.column();
    let mut memory: Vec<T> = (0..CASES).map(|case| T::of(case, me)).collect();
    let (mut rows, mut columns) = (vec![-1; CASES], vec![-1; CASES]);
    let found = winners.then_some(Winners { rows: &mut rows, columns: &mut columns, leading: CASES });
    let a = MatrixMut::new(&mut memory, CASES, 1, CASES)?;
    match combine {
        Combine::Sum => grid.sum(scope, topology, a, to).await?,
        Combine::AbsMax => grid.amax(scope, topology, a, found, to).await?,
        Combine::AbsMin => grid.amin(scope, topology, a, found, to).await?,
    }
    rows.append(&mut columns);
    Ok((cast_slice(&memory).to_vec(), rows))
}

/// The final contents at each process of a grid, in a fixed order.
type Results = Vec<(String, Scope, Vec<u8>, Vec<i32>)>;

async fn all_of<T: Awkward>(grid: &Grid, results: &mut Results) -> ProgramResult<()> {
    for scope in SCOPES {
        for topology in topologies() {
            for (combine, winners) in [
                (Combine::Sum, false),
                (Combine::AbsMax, false),
                (Combine::AbsMin, false),
                (Combine::AbsMax, true),
                (Combine::AbsMin, true),
            ] {
                let name = format!("{:?}, {scope:?}, {topology:?}, {combine:?}, winners: {winners}", T::PRECISION);
                let (bits, found) = combined::<T>(grid, (scope, topology), combine, winners, None).await?;
                let again = combined::<T>(grid, (scope, topology), combine, winners, None).await?;
                assert_eq!((&bits, &found), (&again.0, &again.1), "{name}, the second time");
                results.push((name.clone(), scope, bits, found));
                let to = (grid.rows() - 1, grid.columns() - 1);
                let first = combined::<T>(grid, (scope, topology), combine, winners, Some(to)).await?;
                let again = combined::<T>(grid, (scope, topology), combine, winners, Some(to)).await?;
                assert_eq!(first, again, "{name}, to one process, the second time");
            }
        }
    }
    Ok(())
}

fn all_have_the_same_bits((rows, columns): (usize, usize), coherent: bool) {
    let outs = everywhere(rows * columns, &async |fabric: Fabric| -> ProgramResult<Results> {
        let mut blacs = Blacs::begin(&fabric).await?;
        let mut grid = blacs.grid(Order::RowMajor, rows, columns).await?.expect("all processes");
        grid.set_parameters(Parameters { coherent, ..Parameters::default() })?;
        let mut results = Vec::new();
        all_of::<f32>(&grid, &mut results).await?;
        all_of::<f64>(&grid, &mut results).await?;
        all_of::<[f32; 2]>(&grid, &mut results).await?;
        all_of::<[f64; 2]>(&grid, &mut results).await?;
        grid.exit().await?;
        blacs.exit().await?;
        Ok(results)
    });
    for (process, results) in outs.iter().enumerate() {
        for (at, (name, scope, bits, found)) in results.iter().enumerate() {
            // The first process of the same scope.
            let first = match scope {
                Scope::Row => process / columns * columns,
                Scope::Column => process % columns,
                Scope::All => 0,
            };
            let (_, _, expected, winners) = &outs[first][at];
            assert_eq!(bits, expected, "{name}: bits of process {process} and of process {first}");
            assert_eq!(found, winners, "{name}: winners of process {process} and of process {first}");
        }
    }
}

#[test]
fn all_members_of_a_combine_have_the_same_bits() {
    all_have_the_same_bits((2, 2), false);
    all_have_the_same_bits((2, 4), false);
}

#[test]
fn so_they_have_where_their_number_is_not_a_power_of_two() {
    all_have_the_same_bits((1, 3), false);
}

#[test]
fn so_they_have_along_trees() {
    all_have_the_same_bits((2, 2), true);
}

/// The premise of these tests: a different order of operands yields different bits.
#[test]
fn operands_do_not_commute_here() {
    let sums = |case| (f64::of(case, 0) + f64::of(case, 1), f64::of(case, 1) + f64::of(case, 0));
    let (one, other) = std::hint::black_box(sums(0));
    if cfg!(any(target_arch = "x86_64", target_arch = "aarch64")) {
        assert_ne!(one.to_bits(), other.to_bits(), "the sum of two NaNs has the payload of the first one");
    }
}
