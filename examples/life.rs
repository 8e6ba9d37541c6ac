//! Conway's game of life on a torus that is distributed over ranks.
//!
//! ```text
//! cargo example life --release -- --ranks 4
//! cargo example life --release -- --ranks 4 --side 1000 --steps 1000 --picture life.pbm
//! cargo example life --release -- --ranks 6 --fabric virt
//! ```
//!
//! A rank has a block of the torus and a shadow of one cell around it, corners included: whether a
//! cell lives depends on all eight around it. Each step starts the update of the shadow, computes
//! the cells that don't need it, waits, and computes the others. All of it is done in place: rows
//! of views, no copies. In virtual time a cell takes a nanosecond.
//!
//! At the end every rank compares its block with the same torus computed by one loop. Before that,
//! a glider has to fly once around a small torus and return.
//!
//! `--help` lists its options.

use onesided::{
    Fabric, Group, Program, ProgramResult,
    prdma::topology::dims_create,
    xmp::{Align, Array, Format, NodeSet, Nodes, Order, Reflect, Section, Shadow, Split, Template, Widths},
};
use std::{ffi::OsString, fs, path::PathBuf, process::ExitCode, time::Duration};

/// The time per cell in virtual time. In wall-clock time, the computation itself takes time.
const CELL: Duration = Duration::from_nanos(1);

/// The widths of a reflect: one cell around the block, with the torus continuing at its bounds.
const AROUND: [Widths; 2] = [Widths::of(1).periodic(), Widths::of(1).periodic()];

/// The id of the update in progress.
const UPDATE: u64 = 1;

/// The cells of a glider, which moves by one row and one column in four steps.
const GLIDER: [[i64; 2]; 5] = [[0, 1], [1, 2], [2, 0], [2, 1], [2, 2]];

/// The side of the glider's torus.
const FLIGHT: i64 = 16;

/// The options of the command line.
#[derive(Clone, Debug)]
struct Options {
    side: i64,
    steps: u32,
    soup: u64,
    explain: bool,
    picture: Option<PathBuf>,
}

/// A distributed torus: the current generation, and the one that is being computed.
struct Torus {
    set: NodeSet,
    now: Array<u8>,
    next: Array<u8>,
    /// This node's cells: those that need no shadow, and the others.
    split: Split,
}

impl Torus {
    /// Distributes a torus whose live cells are those for which `first` is true.
    async fn new(fabric: &Fabric, side: i64, first: impl Fn(i64, i64) -> bool) -> ProgramResult<Torus> {
        let group = Group::world(fabric).await?;
        let nodes = Nodes::new(&dims_create(group.len(), 2)?, Order::LastFastest)?;
        let template = Template::new(&[0..side, 0..side], &[Format::Block, Format::Block], &nodes)?;
        let mapping = template.align(&[0..side, 0..side], &[Align::with(0), Align::with(1)])?;
        let mapping = mapping.shadow(&[Shadow::of(1), Shadow::of(1)])?;
        let set = NodeSet::new(group, nodes)?;
        let (now, next) = (set.array(&mapping)?, set.array(&mapping)?);
        now.fill(|index| u8::from(first(index[0], index[1])))?;
        let split = Split::new(&mapping, set.me(), &AROUND)?;
        Ok(Torus { set, now, next, split })
    }

    /// Computes one generation. Global.
    async fn step(&mut self) -> ProgramResult<()> {
        let cells = |sections: &[Section]| CELL * sections.iter().map(Section::cells).sum::<usize>() as u32;
        self.set.reflect_async(&self.now, &Reflect::widths(&AROUND), UPDATE).await?;
        for section in &self.split.inner {
            compute(&self.now, &self.next, section)?;
        }
        self.set.fabric().compute(cells(&self.split.inner)).await;
        self.set.wait_async(&[UPDATE]).await?;
        for section in &self.split.boundary {
            compute(&self.now, &self.next, section)?;
        }
        self.set.fabric().compute(cells(&self.split.boundary)).await;
        std::mem::swap(&mut self.now, &mut self.next);
        Ok(())
    }

    /// Returns an error, with `what` in its message, for the first own cell whose state differs
    /// from `expected`.
    fn compare(&self, what: &str, expected: impl Fn(i64, i64) -> bool) -> ProgramResult<()> {
        let other = |(index, cell): &(Vec<i64>, u8)| (*cell == 1) != expected(index[0], index[1]);
        match self.now.owned()?.into_iter().find(other) {
            None => Ok(()),
            Some((index, cell)) => Err(format!("node {}: cell {index:?} is {cell}: {what}", self.set.me()).into()),
        }
    }

    /// Returns all cells, at each node, row by row, by a reflect of a shadow that is the whole
    /// torus. Global.
    async fn gathered(&mut self, explain: bool) -> ProgramResult<Vec<u8>> {
        let mapping = self.now.mapping().clone().shadow(&[Shadow::Full, Shadow::Full])?;
        let all: Array<u8> = self.set.array(&mapping)?;
        all.fill(|index| self.now.get(index).expect("owned here as there"))?;
        self.set.reflect(&all, &Reflect::whole()).await?;
        if explain {
            explained(&mut self.set, &all, &Reflect::whole()).await?;
        }
        let cells = all.view()?.to_vec();
        self.set.barrier().await?;
        Ok(cells)
    }
}

/// Prints the pieces that node 0 sends and receives in a reflect. Global.
async fn explained(set: &mut NodeSet, array: &Array<u8>, reflect: &Reflect) -> ProgramResult<()> {
    let explanation = set.explain(array, reflect).await?;
    if set.me() == 0 {
        print!("{explanation}");
    }
    Ok(())
}

/// Computes a section of the next generation.
fn compute(now: &Array<u8>, next: &Array<u8>, section: &Section) -> ProgramResult<()> {
    let (starts, extents) = (&section.starts, &section.extents);
    let around = Section {
        starts: starts.iter().map(|start| start - 1).collect(),
        extents: extents.iter().map(|extent| extent + 2).collect(),
    };
    let (from, mut to) = (now.section(&around)?, next.section_mut(section)?);
    let (mut above, mut here) = (from.row(&[0]), from.row(&[1]));
    for row in 0..extents[0] {
        let below = from.row(&[row + 2]);
        compute_row([above, here, below], to.row_mut(&[row]));
        (above, here) = (here, below);
    }
    Ok(())
}

/// Computes a row of the next generation from three that begin and end one cell further.
fn compute_row(from: [&[u8]; 3], to: &mut [u8]) {
    // Slices of one length, so that the loop has no other bound and vectorises.
    let [above, here, below] = from.map(|row| &row[..to.len() + 2]);
    for (column, cell) in to.iter_mut().enumerate() {
        let three = |row: &[u8]| row[column] + row[column + 1] + row[column + 2];
        *cell = lives(here[column + 1], three(above) + three(here) + three(below));
    }
}

/// Returns whether a cell lives, given the number of live cells among it and its neighbours.
fn lives(cell: u8, nine: u8) -> u8 {
    u8::from(nine == 3 || cell == 1 && nine == 4)
}

/// Computes the whole torus in one loop.
fn alone(side: i64, steps: u32, first: impl Fn(i64, i64) -> bool) -> Vec<u8> {
    let side = side as usize;
    let mut now: Vec<u8> = (0..side * side).map(|at| u8::from(first((at / side) as i64, (at % side) as i64))).collect();
    let mut next = now.clone();
    // A row between copies of its last and of its first cell.
    let around = |now: &[u8], row: usize| {
        let row = &now[row * side..][..side];
        [&row[side - 1..], row, &row[..1]].concat()
    };
    for _ in 0..steps {
        for (row, next) in next.chunks_exact_mut(side).enumerate() {
            let rows = [(row + side - 1) % side, row, (row + 1) % side].map(|row| around(&now, row));
            compute_row(rows.each_ref().map(|row| &row[..]), next);
        }
        std::mem::swap(&mut now, &mut next);
    }
    now
}

/// Returns whether a cell is initially alive: about one in three is, depending on the number of the
/// soup.
fn chance(soup: u64, row: i64, column: i64) -> bool {
    fastrand::Rng::with_seed(soup ^ (row as u64) << 32 ^ column as u64).u8(..3) == 0
}

/// Sends a glider around a torus, and checks its position half-way and at the end.
async fn fly(fabric: &Fabric) -> ProgramResult<()> {
    let glider = |row, column| GLIDER.contains(&[row, column]);
    let mut torus = Torus::new(fabric, FLIGHT, glider).await?;
    for half in 1..=2 {
        for _ in 0..4 * FLIGHT / 2 {
            torus.step().await?;
        }
        let back = |at: i64| (at - half * FLIGHT / 2).rem_euclid(FLIGHT);
        torus.compare("the glider is elsewhere", |row, column| glider(back(row), back(column)))?;
    }
    Ok(torus.set.barrier().await?)
}

/// Plays, checks the result and draws it.
async fn life(fabric: Fabric, options: Options) -> ProgramResult<()> {
    let Options { side, steps, soup, explain, picture } = options;
    fly(&fabric).await?;
    let first = |row, column| chance(soup, row, column);
    let mut torus = Torus::new(&fabric, side, first).await?;
    if explain {
        explained(&mut torus.set, &torus.now, &Reflect::widths(&AROUND)).await?;
    }
    torus.set.barrier().await?;
    let begin = fabric.now();
    for _ in 0..steps {
        torus.step().await?;
    }
    let took = (fabric.now() - begin) / steps.max(1);
    torus.set.barrier().await?;

    let expected = alone(side, steps, first);
    torus.compare("one loop says otherwise", |row, column| expected[(row * side + column) as usize] == 1)?;
    let cells = torus.gathered(explain).await?;
    if cells != expected {
        return Err(format!("node {}: the gathered torus is another", torus.set.me()).into());
    }
    if torus.set.me() == 0 {
        let (nodes, living) = (torus.set.nodes().extents(), cells.iter().filter(|cell| **cell == 1).count());
        println!(
            "{side} by {side} cells on {} by {} nodes: {took:?} a step; after {steps} steps {living} live, the same as \
             in one loop; a glider came back",
            nodes[0], nodes[1]
        );
        if let Some(path) = &picture {
            let rows = cells.chunks(side.max(1) as usize);
            let rows = rows.map(|row| row.iter().map(|cell| char::from(b'0' + cell)).collect::<String>() + "\n");
            fs::write(path, format!("P1\n{side} {side}\n{}", rows.collect::<String>()))?;
            println!("picture: {}", path.display());
        }
    }
    Ok(())
}

const USAGE: &str = "\
Conway's game of life on a torus, compared with one loop in the end.

  --side N             cells of the torus in each direction (96)
  --steps N            generations (150)
  --soup N             which cells live in the beginning (1)
  --explain            say what node 0 sends and receives
  --picture FILE       write the last generation as a picture (PBM, as text)
";

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let options = Options {
            side: rest.opt_value_from_str::<_, u32>("--side")?.unwrap_or(96).into(),
            steps: rest.opt_value_from_str("--steps")?.unwrap_or(150),
            soup: rest.opt_value_from_str("--soup")?.unwrap_or(1),
            explain: rest.contains("--explain"),
            picture: rest.opt_value_from_str("--picture")?,
        };
        Ok(async move |fabric| life(fabric, options.clone()).await)
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
