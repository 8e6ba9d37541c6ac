//! A dynamical core in the style of SCALE-LES on a two-dimensional grid of nodes: a warm bubble
//! rises in a wind.
//!
//! ```text
//! cargo example scale_dynamics --release -- --ranks 4
//! cargo example scale_dynamics --release -- --ranks 4 --grid 128x128x64 --steps 300 --picture bubble.pgm
//! cargo example scale_dynamics --release -- --ranks 4 --transport packed --explain
//! cargo example scale_dynamics --release -- --ranks 6 --fabric virt
//! ```
//!
//! Five fields are defined on columns of air: the vertical dimension is not distributed and is
//! fastest in memory; the two horizontal ones are distributed in blocks with shadows of two cells,
//! and periodic. Each of the three Runge–Kutta stages of a step starts one reflect of all five
//! fields, computes the columns that need no shadow, waits, and computes the others, all in place.
//! In virtual time a cell takes 30 ns per stage.
//!
//! The equations are in `workloads::dynamics`; a bench measures the same. At the end every
//! rank compares its fields, bit by bit, with the same grid computed by one loop, and the sums of
//! mass and heat over all nodes with the initial ones.
//!
//! `--help` lists its options.

mod phases;

use onesided::{
    Fabric, Group, Program, ProgramResult,
    prdma::topology::dims_create,
    xmp::{
        Align, Array, Format, NodeSet, Nodes, Order, Reflect, Reflected, Schedule, Section, Shadow, Split, Template,
        Transport, Widths,
    },
};
use phases::Phases;
use std::{ffi::OsString, fs, path::PathBuf, process::ExitCode, time::Duration};
use workloads::dynamics::{
    Alone, Atmosphere, DENSITY, Fields, HEAT, SHADOW, STAGES, STATES, Stage, Totals, Work, compute, fields, mapping,
};

/// The time per cell and stage in virtual time. In wall-clock time, the computation itself takes
/// time.
const CELL: Duration = Duration::from_nanos(30);

/// The widths of a reflect.
const AROUND: [Widths; 3] = [Widths::NONE, Widths::of(SHADOW).periodic(), Widths::of(SHADOW).periodic()];

/// The maximum number of cells for which every rank also computes the grid by one loop, unless that
/// is requested explicitly.
const FEW: usize = 1 << 18;

/// The relative error of a sum due to rounding.
const ROUNDING: f64 = 1e-14;

/// The options of the command line.
#[derive(Clone, Debug)]
struct Options {
    /// Cells in both horizontal directions, and vertically.
    grid: [usize; 3],
    steps: u32,
    transport: Option<Transport>,
    explain: bool,
    compare: bool,
    picture: Option<PathBuf>,
}

/// A node's part of the model.
struct Model {
    atmosphere: Atmosphere,
    set: NodeSet,
    states: [Fields; STATES],
    /// Reflects of all fields of a state.
    reflects: Vec<Schedule>,
    /// This node's columns: those that need no shadow, and the others.
    split: Split,
    work: Work,
    phases: Phases,
}

impl Model {
    /// Distributes the fields, and fills them with the first state. Global.
    async fn new(fabric: &Fabric, options: &Options) -> ProgramResult<Model> {
        let [columns, rows, layers] = options.grid;
        let atmosphere = Atmosphere::new([layers, columns, rows]).ok_or("there is no air for such a grid")?;
        let group = Group::world(fabric).await?;
        let nodes = Nodes::new(&dims_create(group.len(), 2)?, Order::LastFastest)?;
        let mapping = mapping(&atmosphere, &nodes)?;
        let mut set = NodeSet::new(group, nodes)?;
        if let Some(transport) = options.transport {
            set = set.with_transport(transport);
        }
        let states = [fields(&set, &mapping)?, fields(&set, &mapping)?, fields(&set, &mapping)?];
        for (field, array) in states[0].iter().enumerate() {
            array.fill(|index| atmosphere.first([0, 1, 2].map(|dim| index[dim] as usize))[field])?;
        }
        let mut reflects = Vec::new();
        for state in &states {
            let all: Vec<&dyn Reflected> = state.iter().map(|field| field as &dyn Reflected).collect();
            reflects.push(Schedule::new(&mut set, &all, &Reflect::widths(&AROUND)).await?);
        }
        let split = Split::new(&mapping, set.me(), &AROUND)?;
        let (work, phases) = (Work::new(&atmosphere), Phases::default());
        Ok(Model { atmosphere, set, states, reflects, split, work, phases })
    }

    /// Computes one step. Neighbours wait for each other, others don't.
    async fn step(&mut self) -> ProgramResult<()> {
        let fabric = self.set.fabric().clone();
        for stage in STAGES {
            let reflect = &mut self.reflects[stage.from];
            self.phases.start.time(&fabric, reflect.start()).await?;
            let inner = part(&self.atmosphere, &self.states, stage, &self.split.inner, &mut self.work, &fabric);
            self.phases.compute.time(&fabric, inner).await?;
            self.phases.wait.time(&fabric, reflect.wait()).await?;
            let border = part(&self.atmosphere, &self.states, stage, &self.split.boundary, &mut self.work, &fabric);
            self.phases.compute.time(&fabric, border).await?;
        }
        Ok(())
    }

    /// Returns the sums of mass and heat over all nodes. Global.
    async fn totals(&mut self) -> ProgramResult<[f64; 2]> {
        let [density, heat] = [DENSITY, HEAT].map(|field| &self.states[0][field]);
        let (mut mine, mut all) = (Totals::default(), Totals::default());
        for section in density.part().owned_sections() {
            let (density, heat) = (density.section(&section)?, heat.section(&section)?);
            for column in columns(&section) {
                mine.add_column(&self.atmosphere, density.row(&column), heat.row(&column));
            }
        }
        self.set.group_mut().allgather(mine.sums()).await?.into_iter().for_each(|sums| all.add(sums));
        Ok(all.sums())
    }

    /// Compares this node's fields with those computed by one loop.
    fn compare(&self, alone: &Alone) -> ProgramResult<()> {
        for (field, array) in self.states[0].iter().enumerate() {
            for section in array.part().owned_sections() {
                let (first, view) = (array.part().index(&section.starts), array.section(&section)?);
                let first = first.ok_or("an owned cell has an index")?;
                for [j, i] in columns(&section) {
                    let (there_i, there_j) = (first[1] as usize + i, first[2] as usize + j);
                    let other = alone.column(field, there_i, there_j);
                    if view.row(&[j, i]).iter().zip(other).any(|(here, there)| here.to_bits() != there.to_bits()) {
                        let node = self.set.me();
                        return Err(
                            format!("node {node}: field {field} of column ({there_i}, {there_j}) differs").into()
                        );
                    }
                }
            }
        }
        Ok(())
    }

    /// Returns, at each node, the difference in kelvins between each column in a layer and the air
    /// at rest, by a reflect of a shadow that is the whole layer. Global.
    async fn warmth(&mut self, layer: usize) -> ProgramResult<Vec<f64>> {
        let [_, columns, rows] = self.atmosphere.cells();
        let bounds = [0..columns as i64, 0..rows as i64];
        let template = Template::new(&bounds, &[Format::Block, Format::Block], self.set.nodes())?;
        let mapping = template.align(&bounds, &[Align::with(0), Align::with(1)])?;
        let all: Array<f64> =
            self.set.array(&mapping.shadow(&[Shadow::Full, Shadow::Full])?.stored(Order::FirstFastest))?;
        all.fill(|index| {
            let cell = [DENSITY, HEAT].map(|field| self.states[0][field].get(&[layer as i64, index[0], index[1]]));
            let [density, heat] = cell.map(|value| value.expect("owned here as there"));
            self.atmosphere.warmth(layer, density, heat)
        })?;
        self.set.reflect(&all, &Reflect::whole()).await?;
        let cells = all.view()?.to_vec();
        self.set.barrier().await?;
        Ok(cells)
    }
}

/// Returns the indices of a section's columns, which are rows in memory.
fn columns(section: &Section) -> impl Iterator<Item = [usize; 2]> {
    let (across, along) = (section.extents[2], section.extents[1]);
    (0..across).flat_map(move |j| (0..along).map(move |i| [j, i]))
}

/// Computes a stage for some sections.
async fn part(
    atmosphere: &Atmosphere,
    states: &[Fields; STATES],
    Stage { from, to, share }: Stage,
    sections: &[Section],
    work: &mut Work,
    fabric: &Fabric,
) -> ProgramResult<()> {
    let base = Some(&states[0]).filter(|_| to != 0);
    for section in sections {
        compute(atmosphere, [&states[from], &states[to]], base, section, share * Atmosphere::STEP, work)?;
    }
    let cells = sections.iter().map(Section::cells).sum::<usize>();
    fabric.compute(CELL * cells as u32).await;
    Ok(())
}

/// Runs the model, checks the result and draws it.
async fn scale_dynamics(fabric: Fabric, options: Options) -> ProgramResult<()> {
    let mut model = Model::new(&fabric, &options).await?;
    let (me, [columns, rows, layers]) = (model.set.me(), options.grid);
    if options.explain && me == 0 {
        for (state, reflect) in model.reflects.iter().enumerate() {
            let mut explanation = reflect.explain();
            for lines in [&mut explanation.sends, &mut explanation.receives] {
                lines.retain(|line| line.array == DENSITY);
            }
            print!("state {state}, one of five fields: {explanation}");
        }
    }
    let before = model.totals().await?;
    model.set.barrier().await?;
    for _ in 0..options.steps {
        model.step().await?;
    }
    let phases = model.phases.slowest(model.set.group_mut()).await?;

    let after = model.totals().await?;
    for (what, before, after) in [("mass", before[0], after[0]), ("heat", before[1], after[1])] {
        if (after / before - 1.0).abs() > ROUNDING {
            return Err(format!("{what} was {before}, and is {after}").into());
        }
    }
    let compared = options.compare || columns * rows * layers <= FEW;
    if compared {
        let mut alone = Alone::new(&model.atmosphere);
        (0..options.steps).for_each(|_| alone.step());
        model.compare(&alone)?;
    }
    let middle = layers / 2;
    let warmth = model.warmth(middle).await?;
    if me == 0 {
        let nodes = model.set.nodes().extents();
        println!("{columns} x {rows} x {layers} cells on {} by {} nodes, {} steps", nodes[0], nodes[1], options.steps);
        println!("a step: {}", phases.per_step(options.steps));
        println!("mass and heat changed by {:.1e} and {:.1e}", after[0] / before[0] - 1.0, after[1] / before[1] - 1.0);
        println!(
            "warmest in layer {middle}: {:.3} K above the air at rest",
            warmth.iter().copied().fold(0.0, f64::max)
        );
        match compared {
            true => println!("the same as one loop, bit by bit"),
            false => println!("not compared with one loop, which --compare does"),
        }
        if let Some(path) = &options.picture {
            let most = warmth.iter().copied().fold(f64::MIN_POSITIVE, f64::max);
            let grey = warmth.iter().map(|warmth| (warmth.max(0.0) / most * 255.0) as u8);
            let header = format!("P5\n{columns} {rows}\n255\n").into_bytes();
            fs::write(path, header.into_iter().chain(grey).collect::<Vec<u8>>())?;
            println!("picture: {}", path.display());
        }
    }
    Ok(())
}

const USAGE: &str = "\
A warm bubble in a wind, compared bit by bit with one loop in the end.

  --grid XxYxZ         cells in both horizontal directions, and vertically (32x32x16)
  --steps N            steps of 0.1 s (20)
  --transport NAME     how shadows are updated: auto, blocks, packed, fast, mrc, ... (auto)
  --explain            say what node 0 sends and receives of a field
  --compare            compare with one loop however many cells there are
  --picture FILE       write the warmth of the middle layer as a picture (PGM, grey)
";

/// Reads a grid.
fn grid(text: &str) -> Result<[usize; 3], String> {
    let cells: Result<Vec<usize>, _> = text.split('x').map(str::parse).collect();
    cells.ok().and_then(|cells| cells.try_into().ok()).ok_or_else(|| format!("{text:?} is no grid, as 32x32x16 is"))
}

/// Returns the program selected by the rest of the command line.
fn program(rest: Vec<OsString>) -> Result<impl Program<Out = ()>, String> {
    let mut rest = pico_args::Arguments::from_vec(rest);
    let mut told = || {
        let options = Options {
            grid: rest.opt_value_from_fn("--grid", grid)?.unwrap_or([32, 32, 16]),
            steps: rest.opt_value_from_str("--steps")?.unwrap_or(20),
            transport: rest.opt_value_from_str("--transport")?,
            explain: rest.contains("--explain"),
            compare: rest.contains("--compare"),
            picture: rest.opt_value_from_str("--picture")?,
        };
        Ok(async move |fabric| scale_dynamics(fabric, options.clone()).await)
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
