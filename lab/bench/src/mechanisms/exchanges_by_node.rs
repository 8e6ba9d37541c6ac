//! The conditions under which blocks for another node should travel together.
//!
//! FX100 in virtual time: start and wait with nothing in between; an iteration at the slowest rank. Each
//! variant requests as many queues as its node has; the output states the resulting form.
//! * *Grid*: the ranks of a node form a cube in a periodic grid of 3 x 3 x 3 nodes, each
//!   with its 26 neighbours.
//! * *All*: every rank of four nodes sends to every other.
//! * *Graph*: every rank of eight nodes sends to 24 ranks drawn at random.
//!
//! Copies made by CPUs take no time there, although `start` and `wait` of an exchange by node copy
//! each block once more.

use crate::{
    output::{Context, Output},
    report::VIRTUAL,
    sheet::{Entry, Sheet, picos},
};
use clap::Args;
use prdma_offload::{Aggregation, Buffer, Cartesian, Form, Neighbourhood, Options as Exchange, Topology};
use rdma_fabric::{Fabric, Group, ProgramResult};
use std::{error::Error, process::ExitCode, time::Duration};
use tofu2_sim::virt::{Job, NetworkModel, Platform, Torus};

#[derive(Debug, Args)]
pub(crate) struct Options {
    /// Two sizes and the first pattern: a smoke test.
    #[arg(long)]
    quick: bool,
    #[command(flatten)]
    output: Output,
}

const WARM_UP: u64 = 4;
const TIMES: u64 = 10;

/// The pairs of ranks that exchange.
#[derive(Clone, Copy, Debug)]
enum Pattern {
    /// Ranks of a node along the axes.
    Grid([usize; 3]),
    All(usize),
    Graph(usize),
}

impl Pattern {
    fn nodes(self) -> [u32; 3] {
        match self {
            Pattern::Grid(_) => [3, 3, 3],
            Pattern::All(_) => [2, 2, 1],
            Pattern::Graph(_) => [2, 2, 2],
        }
    }

    fn on_node(self) -> usize {
        match self {
            Pattern::Grid(sides) => sides.iter().product(),
            Pattern::All(ranks) | Pattern::Graph(ranks) => ranks,
        }
    }

    fn ranks(self) -> usize {
        self.nodes().iter().product::<u32>() as usize * self.on_node()
    }

    /// Returns the sources and destinations of a rank.
    fn edges(self, me: usize) -> (Vec<usize>, Vec<usize>) {
        let ranks = self.ranks();
        match self {
            Pattern::Grid(inner) => {
                let outer = self.nodes().map(|side| side as usize);
                let at = |rank: usize| -> [usize; 3] {
                    let (node, number) = (rank / self.on_node(), rank % self.on_node());
                    let place = |sides: [usize; 3], n: usize| {
                        [n / (sides[1] * sides[2]), n / sides[2] % sides[1], n % sides[2]]
                    };
                    let (node, number) = (place(outer, node), place(inner, number));
                    [0, 1, 2].map(|axis| node[axis] * inner[axis] + number[axis])
                };
                let rank = |at: [usize; 3]| {
                    let number = |sides: [usize; 3], at: [usize; 3]| (at[0] * sides[1] + at[1]) * sides[2] + at[2];
                    let node = number(outer, [0, 1, 2].map(|axis| at[axis] / inner[axis]));
                    node * self.on_node() + number(inner, [0, 1, 2].map(|axis| at[axis] % inner[axis]))
                };
                let sides = [0, 1, 2].map(|axis| outer[axis] * inner[axis]);
                let grid = Cartesian::new(&sides, &[true; 3]).expect("a grid");
                let flat = |at: [usize; 3]| (at[0] * sides[1] + at[1]) * sides[2] + at[2];
                let back =
                    |flat: usize| rank([flat / (sides[1] * sides[2]), flat / sides[2] % sides[1], flat % sides[2]]);
                let topology = grid.moore(flat(at(me)));
                let named = |edges: &[Option<prdma_offload::Edge>]| {
                    edges.iter().flatten().map(|edge| back(edge.member)).collect::<Vec<_>>()
                };
                (named(topology.sources()), named(topology.destinations()))
            }
            Pattern::All(_) => {
                let others: Vec<usize> = (0..ranks).filter(|other| *other != me).collect();
                (others.clone(), others)
            }
            Pattern::Graph(_) => {
                let drawn = |from: usize| -> Vec<usize> {
                    let mut random = fastrand::Rng::with_seed(from as u64);
                    (0..24).map(|_| random.usize(..ranks)).collect()
                };
                let from = |from: usize| drawn(from).into_iter().filter(|to| *to == me).map(move |_| from);
                ((0..ranks).flat_map(from).collect(), drawn(me))
            }
        }
    }
}

/// Returns the picoseconds of an iteration, and the resulting form and aggregation.
async fn exchange(
    fabric: Fabric,
    pattern: Pattern,
    bytes: usize,
    options: Exchange,
) -> ProgramResult<(u64, Form, Aggregation)> {
    let group = Group::world(&fabric).await?;
    let (sources, destinations) = pattern.edges(group.me());
    let topology = Topology::graph(group.len(), group.me(), &sources, &destinations)?;
    let mut hood = Neighbourhood::new(group, topology).await?;
    let send = Buffer::<u8>::new(&fabric, destinations.len() * bytes)?;
    let receive = Buffer::<u8>::new(&fabric, sources.len() * bytes)?;
    let mut request = hood.alltoall_init(&send, &receive, bytes, &options).await?;
    hood.group_mut().barrier().await?;
    let mut begun = fabric.now();
    for k in 0..WARM_UP + TIMES {
        if k == WARM_UP {
            begun = fabric.now();
        }
        request.start().await?;
        request.wait().await?;
    }
    let took = fabric.now().picos_since(begun) / TIMES;
    hood.group_mut().barrier().await?;
    Ok((took, request.form(), request.aggregation()))
}

/// Returns the time of an iteration, and the form.
fn measure(pattern: Pattern, bytes: usize, options: Exchange) -> Result<[Entry; 2], Box<dyn Error>> {
    let platform = Platform::fx100();
    let job = Job::new(&platform, pattern.ranks()).ranks_per_node(pattern.on_node() as u32);
    let job = job.torus(Torus::new(&pattern.nodes())?).network(NetworkModel::Router);
    let outs = job.jitter(Duration::ZERO).run(&async |fabric| exchange(fabric, pattern, bytes, options).await)?.outs;
    let slowest = outs.iter().map(|(took, ..)| *took).max().unwrap_or(0);
    let (_, form, aggregation) = outs[0];
    let refused = options.aggregation != Aggregation::None && aggregation == Aggregation::None;
    Ok([picos(slowest), format!("{form}{}", if refused { " alone" } else { "" }).into()])
}

pub(crate) fn run(options: &Options) -> Result<ExitCode, Box<dyn Error>> {
    let patterns = [
        ("grid, 8 a node", Pattern::Grid([2, 2, 2])),
        ("grid, 16 a node", Pattern::Grid([4, 2, 2])),
        ("all, 8 a node", Pattern::All(8)),
        ("all, 16 a node", Pattern::All(16)),
        ("graph, 8 a node", Pattern::Graph(8)),
        ("graph, 16 a node", Pattern::Graph(16)),
    ];
    let sizes: &[usize] = if options.quick { &[8, 1024] } else { &[8, 64, 256, 1024, 4096, 8192] };
    let patterns = if options.quick { &patterns[2..3] } else { &patterns[..] };
    options.output.sheets(Context::new("exchanges-by-node", VIRTUAL, options.quick), |steps| {
        let columns = ["pattern", "bytes", "alone", "form", "by node", "form by node"];
        let mut sheet = Sheet::new("An iteration on FX100", columns);
        steps.expect(patterns.len() * sizes.len());
        for (name, pattern) in patterns {
            for &bytes in sizes {
                steps.begin(format_args!("{name}, {bytes} B"));
                let all = Aggregation::ByNode { longest: u64::MAX, gap: 1024 };
                let alone = measure(*pattern, bytes, Exchange::default())?;
                let by_node = measure(*pattern, bytes, Exchange { aggregation: all, ..Exchange::default() })?;
                sheet.row([(*name).into(), bytes.into()].into_iter().chain(alone).chain(by_node));
            }
        }
        Ok(vec![sheet])
    })
}
