//! A heat solver on a grid of ranks. The network exchanges the halos while the interior is
//! computed.
//!
//! ```text
//! cargo example heat_2d --release -- --ranks 4
//! cargo example heat_2d --release -- --ranks 4 --picture heat.pgm
//! cargo example heat_2d --release -- --ranks 6 --fabric virt
//! ```
//!
//! A tile and its halos are one buffer: rows are sent from it and received in it as they are,
//! columns as vectors. There are two, the field before a step and the field after it, and an
//! exchange for each. A step starts the exchange, computes the cells that need no halo, waits, and
//! computes the border, all on views of the buffers: over shared memory, the buffers themselves. At
//! the edges of the plate there is no neighbour, and the halo keeps its initial values. In virtual
//! time a cell takes a nanosecond. At the end every rank compares its tile, bit by bit, with the
//! same plate computed by one loop.
//!
//! `--help` lists its options.

use onesided::{
    Fabric, Group, Program, ProgramResult, Rank,
    prdma::{Buffer, Cartesian, Layout, Neighbourhood, Options, Rows, topology::dims_create},
};
use std::{ffi::OsString, fs, io, ops::Range, path::PathBuf, process::ExitCode, time::Duration};

/// The fraction of the difference to its neighbours by which a cell changes in a step.
const RATE: f64 = 0.2;

/// The time per cell in virtual time. In wall-clock time, the computation itself takes time.
const CELL: Duration = Duration::from_nanos(1);

/// The temperatures around the plate: `HOT` along the middle third of its upper edge, `WARM` along
/// its left edge, and 0 elsewhere.
const HOT: f64 = 100.0;
const WARM: f64 = 50.0;

/// A rectangle of the plate with a halo of one cell around; row 0 is the upper halo.
#[derive(Clone, Copy, Debug)]
struct Tile {
    /// The position on the plate of the first cell inside.
    at: [usize; 2],
    /// Rows and columns inside.
    rows: usize,
    columns: usize,
    /// Cells of the plate in each direction.
    side: usize,
}

impl Tile {
    /// Returns the tile of one member; some tiles are one cell longer if the side does not divide
    /// evenly.
    fn of(grid: &Cartesian, member: usize, side: usize) -> ProgramResult<Tile> {
        let at = grid.coordinates(member)?;
        let part = |dim: usize| {
            let cut = |number: usize| number * side / grid.dims()[dim];
            cut(at[dim])..cut(at[dim] + 1)
        };
        let (rows, columns) = (part(0), part(1));
        if rows.is_empty() || columns.is_empty() {
            return Err(format!("{} members are too many for a plate of {side} by {side}", grid.members()).into());
        }
        Ok(Tile { at: [rows.start, columns.start], rows: rows.len(), columns: columns.len(), side })
    }

    /// Returns a tile that covers the whole plate.
    fn plate(side: usize) -> Tile {
        Tile { at: [0, 0], rows: side, columns: side, side }
    }

    fn width(&self) -> usize {
        self.columns + 2
    }

    fn cells(&self) -> usize {
        (self.rows + 2) * self.width()
    }

    /// Creates the initial field: cold inside, with the constant temperatures around the plate.
    fn at_first(&self) -> Vec<f64> {
        let mut field = vec![0.0; self.cells()];
        let [top, left] = self.at;
        for (number, cell) in field.iter_mut().enumerate() {
            // One more than on the plate: 0 is above it, or to its left.
            let (row, column) = (top + number / self.width(), left + number % self.width());
            if row == 0 && (self.side / 3..2 * self.side / 3).contains(&column) {
                *cell = HOT;
            } else if column == 0 {
                *cell = WARM;
            }
        }
        field
    }

    /// Computes one step for these rows and columns of the field. The rows that `old` returns begin at column `first`.
    fn step<'f>(
        &self,
        (old, first): (impl Fn(usize) -> &'f [f64], usize),
        new: &mut [f64],
        rows: Range<usize>,
        columns: Range<usize>,
    ) {
        for row in rows {
            let [above, here, below] = [row - 1, row, row + 1].map(&old);
            let new = &mut new[row * self.width()..];
            for column in columns.clone() {
                let at = column - first;
                let around = above[at] + below[at] + here[at - 1] + here[at + 1];
                new[column] = here[at] + RATE * (around - 4.0 * here[at]);
            }
        }
    }

    /// Computes the cells that need no halo, from rows without it.
    fn inside(&self, old: &Rows<'_, f64>, new: &mut [f64]) {
        if self.rows > 2 && self.columns > 2 {
            self.step((|row| old.row(&[row - 1]), 1), new, 2..self.rows, 2..self.columns);
        }
    }

    /// Returns the number of cells that need no halo.
    fn cells_inside(&self) -> u32 {
        (self.rows.saturating_sub(2) * self.columns.saturating_sub(2)) as u32
    }

    /// Computes the cells that need the halo.
    fn border(&self, old: &[f64], new: &mut [f64]) {
        let (rows, columns) = (self.rows, self.columns);
        let row = |row: usize| &old[row * self.width()..];
        self.step((row, 0), new, 1..2, 1..columns + 1);
        self.step((row, 0), new, rows..rows + 1, 1..columns + 1);
        self.step((row, 0), new, 1..rows + 1, 1..2);
        self.step((row, 0), new, 1..rows + 1, columns..columns + 1);
    }

    /// Returns the layouts that are sent in, and received from, the four directions: up, down,
    /// left, right.
    fn halos(&self) -> ProgramResult<([Layout; 4], [Layout; 4])> {
        let (rows, columns) = (self.rows, self.columns);
        let row = |row: usize| Layout::contiguous::<f64>(row * self.width() + 1, columns);
        let column = |column: usize| Layout::vector::<f64>(self.width() + column, rows, 1, self.width());
        let sent = [row(1)?, row(rows)?, column(1)?, column(columns)?];
        Ok((sent, [row(0)?, row(rows + 1)?, column(0)?, column(columns + 1)?]))
    }

    /// Computes the whole plate in one loop.
    fn alone(side: usize, steps: u32) -> Vec<f64> {
        let plate = Tile::plate(side);
        let mut old = plate.at_first();
        let mut new = old.clone();
        for _ in 0..steps {
            plate.step((|row| &old[row * plate.width()..], 0), &mut new, 1..side + 1, 1..side + 1);
            std::mem::swap(&mut old, &mut new);
        }
        old
    }
}

/// Solves the problem, checks the result and draws it.
async fn heat_2d(fabric: Fabric, side: usize, steps: u32, picture: Option<PathBuf>) -> ProgramResult<()> {
    let world = Group::world(&fabric).await?;
    let grid = Cartesian::new(&dims_create(world.len(), 2)?, &[false, false])?;
    let tile = Tile::of(&grid, world.me(), side)?;
    let topology = grid.topology(world.me());
    let mut hood = Neighbourhood::new(world, topology).await?;
    let (sent, received) = tile.halos()?;
    let (mut fields, options) = (Vec::new(), Options::auto(&fabric.caps()));
    for _ in 0..2 {
        let field = Buffer::<f64>::in_place(&fabric, tile.cells())?;
        field.view_mut(0..tile.cells())?.copy_from_slice(&tile.at_first());
        let halo = hood.alltoallw_init(&field, &sent, &field, &received, &options).await?;
        fields.push((field, halo));
    }
    let [(mut old, mut old_halo), (mut new, mut new_halo)]: [_; 2] = fields.try_into().expect("two");

    hood.group_mut().barrier().await?;
    let begin = fabric.now();
    let (width, columns) = (tile.width(), tile.columns);
    for _ in 0..steps {
        let mut next = new.view_mut(0..tile.cells())?;
        old_halo.start().await?;
        // The sent cells may be read during the exchange; the halo may not.
        tile.inside(&old.rows(width + 1, columns, &[(tile.rows, width)])?, &mut next);
        fabric.compute(CELL * tile.cells_inside()).await;
        old_halo.wait().await?;
        tile.border(&old.view(0..tile.cells())?, &mut next);
        fabric.compute(CELL * ((tile.rows * columns) as u32 - tile.cells_inside())).await;
        drop(next);
        std::mem::swap(&mut old, &mut new);
        std::mem::swap(&mut old_halo, &mut new_halo);
    }
    let took = (fabric.now() - begin) / steps.max(1);
    hood.group_mut().barrier().await?;

    let (plate, old) = (Tile::alone(side, steps), old.view(0..tile.cells())?);
    for row in 0..tile.rows {
        let (here, there) = ((row + 1) * width + 1, (tile.at[0] + row + 1) * (side + 2) + tile.at[1] + 1);
        let same = old[here..here + columns].iter().zip(&plate[there..]).all(|(a, b)| a.to_bits() == b.to_bits());
        if !same {
            return Err(format!("{}: row {row} of the tile is not that of one loop", fabric.rank()).into());
        }
    }
    let pixels = gather(&fabric, &grid, side, &tile, &old).await?;
    if fabric.rank() == Rank::new(0) {
        let [rows, columns] = [grid.dims()[0], grid.dims()[1]];
        println!(
            "{side} by {side} cells on {rows} by {columns} ranks, form {}: {took:?} a step; {steps} steps, the same as one loop bit by bit",
            old_halo.form()
        );
        if let Some(path) = &picture {
            write_pgm(path, side, &pixels)?;
            println!("picture: {}", path.display());
        }
    }
    Ok(())
}

/// Returns the plate as grey pixels on rank 0, and nothing on other ranks. Collective.
async fn gather(fabric: &Fabric, grid: &Cartesian, side: usize, tile: &Tile, field: &[f64]) -> ProgramResult<Vec<u8>> {
    let most = side.div_ceil(grid.dims()[0]) * side.div_ceil(grid.dims()[1]);
    let window = fabric.alloc_symmetric(most.next_multiple_of(8)).await?;
    let inside = |row: usize| &field[(row + 1) * tile.width() + 1..][..tile.columns];
    let grey: Vec<u8> = (0..tile.rows).flat_map(inside).map(|cell| (cell / HOT * 255.0) as u8).collect();
    fabric.write(&window.span::<u8>(fabric, 0, grey.len())?, &grey)?;
    let mut world = Group::world(fabric).await?;
    world.barrier().await?;
    let mut pixels = Vec::new();
    if fabric.rank() == Rank::new(0) {
        pixels.resize(side * side, 0);
        for member in 0..grid.members() {
            let tile = Tile::of(grid, member, side)?;
            let there = window.at(Rank::new(member as u32), 0);
            let span = fabric.remote_span::<u8>(there, tile.rows * tile.columns)?;
            let part = fabric.get(&span, vec![0; tile.rows * tile.columns]).await?;
            for (row, part) in part.chunks(tile.columns).enumerate() {
                pixels[(tile.at[0] + row) * side + tile.at[1]..][..tile.columns].copy_from_slice(part);
            }
        }
    }
    world.barrier().await?;
    Ok(pixels)
}

fn write_pgm(path: &PathBuf, side: usize, pixels: &[u8]) -> io::Result<()> {
    let mut file = format!("P5\n{side} {side}\n255\n").into_bytes();
    file.extend_from_slice(pixels);
    fs::write(path, file)
}

const USAGE: &str = "\
A heat solver on a grid of ranks, compared bit by bit with one loop in the end.

  --side N             cells of the plate in each direction (96)
  --steps N            steps (400)
  --picture FILE       write the plate as a picture (PGM, grey)
";

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let side = rest.opt_value_from_str("--side")?.unwrap_or(96);
        let steps = rest.opt_value_from_str("--steps")?.unwrap_or(400);
        let picture: Option<PathBuf> = rest.opt_value_from_str("--picture")?;
        Ok(async move |fabric| heat_2d(fabric, side, steps, picture.clone()).await)
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
