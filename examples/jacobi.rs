//! A heat solver on a distributed array: each step reflects the array, then computes all cells of the
//! node from views of the old and the new field.
//!
//! ```text
//! cargo example jacobi --release -- --ranks 4
//! cargo example jacobi --release -- --ranks 4 --side 512 --steps 1000
//! cargo example jacobi --release -- --ranks 6 --fabric virt
//! ```
//!
//! It solves the problem of `heat_2d`, which overlaps the exchange with the computation. In virtual
//! time a cell takes a nanosecond. At the end every rank compares its cells, bit by bit, with the same
//! plate computed by one loop.
//!
//! `--help` lists its options.

use onesided::{
    Fabric, Group, Program, ProgramResult,
    prdma::topology::dims_create,
    xmp::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Shadow, Template},
};
use std::{ffi::OsString, mem, process::ExitCode, time::Duration};

/// The fraction of the difference to its neighbours by which a cell changes in a step.
const RATE: f64 = 0.2;

/// The time per cell in virtual time. In wall-clock time, the computation itself takes time.
const CELL: Duration = Duration::from_nanos(1);

/// Returns the temperature beside the plate: hot along the middle third of its upper edge, warm along
/// its left edge, and 0 elsewhere.
fn around(side: i64, row: i64, column: i64) -> f64 {
    match (row, column) {
        (-1, column) if (side / 3..2 * side / 3).contains(&(column + 1)) => 100.0,
        (_, -1) => 50.0,
        _ => 0.0,
    }
}

/// Computes a step of all cells but those at the bounds, of fields whose rows are `width` apart.
fn step(old: &[f64], new: &mut [f64], width: usize) {
    let rows = old.len() / width;
    for row in 1..rows - 1 {
        // Slices of one length, so that one comparison bounds all indices and the loop vectorises.
        let [above, here, below] = [row - 1, row, row + 1].map(|row| &old[row * width..][..width]);
        let new = &mut new[row * width..][..width];
        for column in 1..width - 1 {
            let around = above[column] + below[column] + here[column - 1] + here[column + 1];
            new[column] = here[column] + RATE * (around - 4.0 * here[column]);
        }
    }
}

/// Computes the whole plate in one loop; returns it with the cells around it.
fn alone(side: i64, steps: u32) -> Vec<f64> {
    let width = side + 2;
    let mut old: Vec<f64> = (0..width * width).map(|at| around(side, at / width - 1, at % width - 1)).collect();
    let mut new = old.clone();
    for _ in 0..steps {
        step(&old, &mut new, width as usize);
        mem::swap(&mut old, &mut new);
    }
    old
}

/// Solves the problem and checks the result.
async fn jacobi(fabric: Fabric, side: i64, steps: u32) -> ProgramResult<()> {
    let group = Group::world(&fabric).await?;
    let nodes = Nodes::new(&dims_create(group.len(), 2)?, Order::LastFastest)?;
    let template = Template::new(&[0..side, 0..side], &[Format::Block, Format::Block], &nodes)?;
    let mapping = template.align(&[0..side, 0..side], &[Align::with(0), Align::with(1)])?;
    let mapping = mapping.shadow(&[Shadow::of(1), Shadow::of(1)])?;
    let mut set = NodeSet::new(group, nodes)?;
    let (mut old, mut new): (Array<f64>, Array<f64>) = (set.array(&mapping)?, set.array(&mapping)?);
    for field in [&old, &new] {
        field.fill_boundary(|index| around(side, index[0], index[1]))?;
    }
    set.barrier().await?;

    let begin = fabric.now();
    let (whole, width) = (Reflect::whole(), old.strides()[0]);
    let cells: usize = old.extents().iter().map(|extent| extent - 2).product();
    for _ in 0..steps {
        set.reflect(&old, &whole).await?;
        step(&old.view()?, &mut new.view_mut()?, width);
        fabric.compute(CELL * cells as u32).await;
        mem::swap(&mut old, &mut new);
    }
    let took = (fabric.now() - begin) / steps.max(1);
    set.barrier().await?;

    let expected = alone(side, steps);
    let at = |index: &[i64]| ((index[0] + 1) * (side + 2) + index[1] + 1) as usize;
    if let Some((index, _)) = old.owned()?.iter().find(|(index, heat)| heat.to_bits() != expected[at(index)].to_bits())
    {
        return Err(format!("node {}: cell {index:?} is not that of one loop", set.me()).into());
    }
    if set.me() == 0 {
        println!(
            "{side} by {side} cells on {} nodes: {took:?} a step; {steps} steps, the same as one loop",
            set.nodes().size()
        );
    }
    Ok(set.barrier().await?)
}

const USAGE: &str = "\
A heat solver on a distributed array, compared bit by bit with one loop in the end.

  --side N             cells of the plate in each direction (96)
  --steps N            steps (400)
";

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let side = rest.opt_value_from_str::<_, u32>("--side")?.unwrap_or(96);
        let steps = rest.opt_value_from_str("--steps")?.unwrap_or(400);
        Ok(async move |fabric| jacobi(fabric, side.into(), steps).await)
    };
    let program = told().map_err(|error: pico_args::Error| error.to_string())?;
    match &rest.finish()[..] {
        [] => Ok(program),
        more => Err(format!("there is no {more:?}; --help says what there is")),
    }
}

fn main() -> ExitCode {
    onesided::launch_with(USAGE, program)
}
