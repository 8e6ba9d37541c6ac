//! The lock paper's evaluation: its jobs, results and comparison with the paper.

mod machine;
mod questions;
mod runs;

pub use machine::Machine;
pub use questions::WhatIf;
pub use questions::{StencilForm, StencilRun};
pub use runs::{LockRuns, PairRun, TniRun, run};

use crate::{
    figures::{self, Case, Figure, Paper},
    outcome::Row,
    shape::Shape,
    simulate::Traced,
    statistics::{log_log_slope, spearman},
};
use tofu2_sim::virt::Arbiter;

/// The job shapes for which the figures that depend on arbitration are shown.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Shapes {
    /// One shape.
    #[default]
    One,
    /// All shapes of [`Shape::OF_FX100`] and [`Shape::OF_128_NODES`].
    All,
}

/// The jobs to run. [`LockPlan::paper`] contains the paper's evaluation; the fields may be changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockPlan {
    /// Lock and unlock pairs per rank, except at K scale. The paper has 1000.
    pub pairs: u32,
    /// Numbers of ranks of Fig. 8, at 32 ranks per node.
    pub scaling: Vec<u32>,
    /// Ranks per node on all 128 nodes, Fig. 10.
    pub ranks_per_node: Vec<u32>,
    /// Job shapes; the first is used for everything, the others for the fullest run of Fig. 10
    /// only. Tofu's own are also run with the other arbiter.
    pub shapes: Vec<Shape>,
    /// Ranks of the K-scale run; 0 omits it.
    pub k_ranks: u32,
    /// Pairs per rank of the K-scale run.
    pub k_pairs: u32,
    /// Numbers of ranks of the waves that show the effect of other forms of the lock; empty omits
    /// them.
    pub what_if_ranks: Vec<u32>,
    /// Receiving TNIs of each node in these waves.
    pub what_if_tnis: Vec<u32>,
    /// Numbers of ranks of the stencils of Figs. 4 and 5; empty omits them.
    pub stencil_ranks: Vec<u32>,
    /// Seed of every job: 0 keeps simultaneous events in the order of their creation, another
    /// number shuffles them.
    pub seed: u64,
    /// Whether this is a smoke test with fewer pairs than in the paper.
    pub quick: bool,
    /// A timeline to record during the run, which does not affect the jobs.
    pub traced: Option<Traced>,
}

impl LockPlan {
    /// Pairs per rank in the paper's runs; totals are scaled to it.
    pub const PAPER_PAIRS: u32 = 1000;

    /// Returns the paper's evaluation.
    pub fn paper(shapes: Shapes, seed: u64) -> Self {
        let mut tried = Shape::OF_FX100.to_vec();
        match shapes {
            Shapes::One => tried.truncate(1),
            Shapes::All => tried.extend(Shape::OF_128_NODES),
        }
        LockPlan {
            pairs: Self::PAPER_PAIRS,
            scaling: (2..=12).map(|power| 1 << power).collect(),
            ranks_per_node: vec![1, 8, 32],
            shapes: tried,
            k_ranks: 663_552,
            k_pairs: 5,
            what_if_ranks: vec![4, 64, 256, 1024, 16_384, 131_072, 663_552],
            what_if_tnis: vec![1, 4],
            stencil_ranks: vec![64, 1024, 8192],
            seed,
            quick: false,
            traced: None,
        }
    }

    /// Returns the same plan with a twentieth of the pairs. It shows whether everything works, not
    /// how well it agrees with the paper.
    pub fn quick(shapes: Shapes, seed: u64) -> Self {
        let what_if_ranks = vec![4, 64, 1024, 16_384];
        LockPlan {
            pairs: 50,
            k_pairs: 1,
            what_if_ranks,
            stencil_ranks: vec![64, 1024],
            quick: true,
            ..Self::paper(shapes, seed)
        }
    }

    /// Returns the same plan without the jobs that no published figure needs.
    pub fn published(self) -> Self {
        LockPlan { what_if_ranks: Vec::new(), stencil_ranks: Vec::new(), ..self }
    }

    /// Returns the number of jobs.
    pub fn jobs(&self) -> usize {
        runs::jobs(self) + questions::jobs(self)
    }

    /// Returns the number of jobs, at the beginning of the plan, that can record a timeline.
    pub fn traceable(&self) -> usize {
        runs::jobs(self)
    }
}

/// Returns a row for every figure of the paper to which the runs apply, in the paper's order.
///
/// Totals are scaled to the paper's number of pairs if fewer were run.
pub fn compare(runs: &LockRuns) -> Vec<Row> {
    let mut rows = Vec::new();
    for figure in figures::of(Paper::Lock) {
        let mut push = |value: Option<f64>| rows.extend(value.map(|value| Row::simulated(figure, value)));
        match figure.id {
            "L1" => push(slowest(runs, 4, 32).map(|s| s * 1e6)),
            "L2" => push(slowest(runs, 256, 32).map(|s| s * 1e6)),
            "L3" => {
                let points: Vec<_> = runs.scaling().map(|run| (f64::from(run.ranks), run.slowest_pair())).collect();
                push(log_log_slope(&points));
            }
            "L4" => push(total(runs, 128, 1)),
            "L5" => push(total(runs, 1024, 8)),
            "L6" => push(total(runs, 4096, 32)),
            "L7-ppn8" => push(total(runs, 128, 1).map(|seconds| 8.0 * seconds)),
            "L7-ppn32" => push(total(runs, 128, 1).map(|seconds| 32.0 * seconds)),
            "L8" | "L8-oldest" | "L8-torus" => {
                for run in runs.full().filter(|run| concerns(figure.id, run)) {
                    rows.push(in_case(figure, run, run.first_over_last()));
                }
            }
            "L9" | "L9-ranks" | "L9-oldest" | "L9-torus" => {
                for run in runs.full().filter(|run| concerns(figure.id, run)) {
                    let group = if figure.id == "L9-ranks" { 1 } else { run.ranks_per_node };
                    rows.push(in_case(figure, run, near_first(run, group as usize)));
                }
            }
            "L10" => {
                rows.extend(runs.k.as_ref().map(|k| Row::simulated(figure, k.slowest_pair()).cost(k.job.cost.clone())));
            }
            "L11" => push(Some(runs.fx10.slowest_pair() * f64::from(LockPlan::PAPER_PAIRS))),
            "L12" => push(slowest(runs, 256, 32).map(|fx100| runs.fx10.slowest_pair() / fx100)),
            "L13" => push(time_saved(runs)),
            "L14" => push(
                runs.fx100(4096, 32)
                    .and_then(|run| Some(run.job.atomics? as f64 / (f64::from(run.ranks) * f64::from(run.pairs)))),
            ),
            "L15" => push(runs.machine.as_ref().map(|machine| machine.engines as f64)),
            "L16" => push(runs.machine.as_ref().map(|machine| f64::from(u8::from(machine.atomics)))),
            _ => rows.extend(Row::not_modelled(figure)),
        }
    }
    rows
}

/// Returns the ending of the ids of the figures L8 and L9 that a run concerns, by its network and
/// arbiter; `None` if there are none.
pub(crate) fn variant(run: &PairRun) -> Option<&'static str> {
    match (run.shape?.is_tofu(), run.arbiter) {
        (true, Arbiter::RoundRobin) => Some(""),
        (true, Arbiter::OldestFirst) => Some("-oldest"),
        (false, Arbiter::RoundRobin) => Some("-torus"),
        (false, Arbiter::OldestFirst) => None,
    }
}

/// Returns whether a figure that depends on arbitration is about a run.
fn concerns(id: &str, run: &PairRun) -> bool {
    let wanted = id.trim_start_matches("L8").trim_start_matches("L9").trim_end_matches("-ranks");
    variant(run) == Some(wanted)
}

/// Returns the rank correlation between distance and mean finishing time of groups of `group` ranks
/// with the same distance.
fn near_first(run: &PairRun, group: usize) -> f64 {
    let hops: Vec<u64> = run.hops.iter().step_by(group).map(|&hops| u64::from(hops)).collect();
    let finish: Vec<u64> = run.elapsed.chunks(group).map(|ranks| ranks.iter().sum()).collect();
    spearman(&hops, &finish).unwrap_or(f64::NAN)
}

fn in_case(figure: &Figure, run: &PairRun, value: f64) -> Row {
    match run.shape {
        Some(shape) => Row::simulated_in(figure, Case { shape, arbiter: run.arbiter }, value),
        None => Row::simulated(figure, value),
    }
}

/// Returns the seconds per pair of the slowest rank.
fn slowest(runs: &LockRuns, ranks: u32, ranks_per_node: u32) -> Option<f64> {
    runs.fx100(ranks, ranks_per_node).map(PairRun::slowest_pair)
}

/// Returns the seconds for as many pairs as in the paper.
fn total(runs: &LockRuns, ranks: u32, ranks_per_node: u32) -> Option<f64> {
    slowest(runs, ranks, ranks_per_node).map(|pair| pair * f64::from(LockPlan::PAPER_PAIRS))
}

/// Returns the percentage of time that four receiving TNIs save compared to one.
fn time_saved(runs: &LockRuns) -> Option<f64> {
    let with = |tnis| runs.tnis.iter().find(|run| run.tnis == tnis).map(TniRun::slowest);
    Some(100.0 * (1.0 - with(4)? / with(1)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_papers_plan_covers_its_ranges() {
        let plan = LockPlan::paper(Shapes::One, 0);
        assert_eq!((plan.scaling[0], plan.scaling.last().copied()), (4, Some(4096)));
        assert_eq!(plan.shapes.len(), 1);
        assert_eq!(LockPlan::quick(Shapes::All, 0).shapes.len(), 6);
    }
}
