//! A product of matrices on a grid of processes (SUMMA): step by step, a panel of columns of A is sent along the rows
//! of the grid, a panel of rows of B is sent along its columns, and each process multiplies the panels that it
//! received.
//!
//! ```text
//! cargo example matmul_summa --release -- --ranks 4
//! cargo example matmul_summa --release -- --ranks 6 --fabric virt --size 240 --panel 20 --topology i
//! ```
//!
//! The product is checked against a serial one. In virtual time no time is charged for multiplications, so the printed
//! time is that of the broadcasts.

use onesided::{
    Fabric, Program, ProgramResult,
    blacs::{Blacs, Grid, Matrix, MatrixMut, Order, Scope, Topology},
};
use std::{ffi::OsString, ops::Range, process::ExitCode};

/// Returns an element of A, and of B. They are small integers, so sums are exact in any order.
fn element(matrix: usize, i: usize, j: usize) -> f64 {
    ((3 * i + 5 * j + 7 * matrix + i * j) % 11) as f64 - 5.0
}

/// Returns the part of `size` rows or columns that belongs to row or column `n` of the grid.
fn part(size: usize, parts: usize, n: usize) -> Range<usize> {
    size * n / parts..size * (n + 1) / parts
}

/// Returns the row or column of the grid whose part contains `n`, and the end of that part.
fn owner(size: usize, parts: usize, n: usize) -> (usize, usize) {
    let owner = (0..parts).find(|owner| part(size, parts, *owner).contains(&n)).expect("a part for each row");
    (owner, part(size, parts, owner).end)
}

/// Returns a block of A or B in column-major order.
fn block(matrix: usize, rows: &Range<usize>, columns: &Range<usize>) -> Vec<f64> {
    let elements = columns.clone().flat_map(|j| rows.clone().map(move |i| element(matrix, i, j)));
    elements.collect()
}

/// Adds the product of `a` (m x k) and `b` (k x n) to `c` (m x n).
fn multiply(c: &mut [f64], a: &[f64], b: &[f64], m: usize, k: usize) {
    if m == 0 {
        return;
    }
    for (c, b) in c.chunks_exact_mut(m).zip(b.chunks_exact(k)) {
        // Four columns of A at a time, so that an element of C is loaded and stored once for them.
        let (fours, rest) = b.as_chunks::<4>();
        for (a, b) in a.chunks_exact(4 * m).zip(fours) {
            let [a0, a1, a2, a3] = [0, 1, 2, 3].map(|column| &a[column * m..][..m]);
            for (i, c) in c.iter_mut().enumerate() {
                *c += a0[i] * b[0] + a1[i] * b[1] + a2[i] * b[2] + a3[i] * b[3];
            }
        }
        for (a, b) in a[4 * m * fours.len()..].chunks_exact(m).zip(rest) {
            c.iter_mut().zip(a).for_each(|(c, a)| *c += a * b);
        }
    }
}

/// The caller's part of the product.
struct Summa<'a> {
    grid: &'a Grid,
    topology: Topology,
    size: usize,
    rows: Range<usize>,
    columns: Range<usize>,
    /// The caller's blocks of A and B, in column-major order.
    a: Vec<f64>,
    b: Vec<f64>,
    c: Vec<f64>,
}

impl Summa<'_> {
    /// Multiplies, by panels of up to `panel` columns of A and rows of B; returns the number of panels.
    async fn run(&mut self, panel: usize) -> ProgramResult<usize> {
        let Summa { grid, topology, size, ref a, ref b, .. } = *self;
        let (m, n) = (self.rows.len(), self.columns.len());
        // A is cut like the grid's columns, and B like its rows.
        let (a_left, b_top, leading) = (self.columns.start, self.rows.start, m.max(1));
        let (mut a_room, mut b_room) = (vec![0.0; m * panel], vec![0.0; panel * n]);
        let (mut at, mut panels) = (0, 0);
        while at < size {
            let ((column, a_end), (row, b_end)) = (owner(size, grid.columns(), at), owner(size, grid.rows(), at));
            let k = panel.min(a_end - at).min(b_end - at);
            let a_panel = if grid.column() == column {
                // Whole columns, which are contiguous.
                let panel = &a[(at - a_left) * m..][..m * k];
                grid.broadcast_send(Scope::Row, topology, Matrix::new(panel, m, k, m)?).await?;
                panel
            } else {
                let panel = MatrixMut::new(&mut a_room[..m * k], m, k, m)?;
                grid.broadcast_recv(Scope::Row, topology, panel, (grid.row(), column)).await?;
                &a_room[..m * k]
            };
            let b_panel = &mut b_room[..k * n];
            if grid.row() == row {
                // Some rows of each column: the elements between them are not sent.
                let rows = &b[at - b_top..];
                grid.broadcast_send(Scope::Column, topology, Matrix::new(rows, k, n, leading)?).await?;
                b_panel
                    .chunks_exact_mut(k)
                    .zip(rows.chunks(leading))
                    .for_each(|(to, from)| to.copy_from_slice(&from[..k]));
            } else {
                let panel = MatrixMut::new(b_panel, k, n, k)?;
                grid.broadcast_recv(Scope::Column, topology, panel, (row, grid.column())).await?;
            }
            multiply(&mut self.c, a_panel, b_panel, m, k);
            (at, panels) = (at + k, panels + 1);
        }
        Ok(panels)
    }

    /// Returns the largest difference from the serial product, over all processes.
    async fn difference(&self) -> ProgramResult<f64> {
        let all = 0..self.size;
        let (a, b) = (block(0, &self.rows, &all), block(1, &all, &self.columns));
        let mut expected = vec![0.0; self.c.len()];
        multiply(&mut expected, &a, &b, self.rows.len(), self.size);
        let differences = self.c.iter().zip(expected).map(|(found, expected)| (found - expected).abs());
        let mut greatest = [differences.fold(0.0, f64::max)];
        self.grid.amax(Scope::All, Topology::Default, MatrixMut::new(&mut greatest, 1, 1, 1)?, None, None).await?;
        Ok(greatest[0])
    }
}

async fn matmul(fabric: Fabric, size: usize, panel: usize, topology: Topology) -> ProgramResult<()> {
    let mut blacs = Blacs::begin(&fabric).await?;
    let ranks = blacs.processes();
    // As square as possible.
    let rows = (1..=ranks).take_while(|rows| rows * rows <= ranks).filter(|rows| ranks % rows == 0).last().unwrap_or(1);
    let grid = blacs.grid(Order::RowMajor, rows, ranks / rows).await?.ok_or("a process without a place")?;
    let (mine, columns) = (part(size, rows, grid.row()), part(size, grid.columns(), grid.column()));
    let c = vec![0.0; mine.len() * columns.len()];
    let (a, b) = (block(0, &mine, &columns), block(1, &mine, &columns));
    let mut summa = Summa { grid: &grid, topology, size, rows: mine, columns, a, b, c };
    grid.barrier(Scope::All).await?;
    let begin = fabric.now();
    let panels = summa.run(panel).await?;
    grid.barrier(Scope::All).await?;
    let took = fabric.now() - begin;
    let difference = summa.difference().await?;
    if difference > 0.0 {
        return Err(format!("the product differs from the serial one by {difference}").into());
    }
    if grid.me() == (0, 0) {
        println!(
            "{rows} x {} processes, matrices of {size} x {size}, {panels} panels: {took:?} a product, equal to the serial product",
            grid.columns()
        );
    }
    grid.exit().await?;
    Ok(blacs.exit().await?)
}

const USAGE: &str = "\
Product of two square matrices on a grid of processes, by broadcasts along its rows and columns.

  --size N             rows and columns of the matrices (300)
  --panel N            columns of A and rows of B that are broadcast at once, at most (32)
  --topology LETTER    how broadcasts go: ' ', i, d, s, m, 1 to 9, t, f, h (' ')
";

fn topology(letter: &str) -> Result<Topology, String> {
    match letter.as_bytes() {
        [letter] => Topology::from_letter(*letter),
        _ => None,
    }
    .ok_or_else(|| format!("`{letter}` is no topology"))
}

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let size = rest.opt_value_from_str("--size")?.unwrap_or(300);
        let panel: usize = rest.opt_value_from_str("--panel")?.unwrap_or(32);
        let topology = rest.opt_value_from_fn("--topology", topology)?.unwrap_or_default();
        Ok(async move |fabric| matmul(fabric, size, panel.max(1), topology).await)
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
