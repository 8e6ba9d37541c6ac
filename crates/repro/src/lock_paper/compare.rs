//! From runs to rows.

use super::{LockPlan, LockRuns};
use crate::{
    figures::{self, Paper},
    outcome::Row,
    statistics::{log_log_slope, spearman},
};

/// Every figure of the paper that the runs say something about, in the paper's order.
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
            "L8" => {
                for run in runs.full() {
                    rows.push(in_shape(Row::simulated(figure, run.first_over_last()), run.shape));
                }
            }
            "L9" | "L9-ranks" | "L9-six" => {
                for run in runs.full().filter(|run| !run.hops.is_empty()) {
                    let six = run.shape.is_some_and(|shape| shape.sides().len() == 6);
                    if six == (figure.id == "L9-six") {
                        let group = if figure.id == "L9-ranks" { 1 } else { run.ranks_per_node };
                        rows.push(in_shape(Row::simulated(figure, near_first(run, group as usize)), run.shape));
                    }
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
            _ => {}
        }
    }
    rows
}

/// Rank correlation of the distance and the mean finishing time of `group` ranks that share it.
fn near_first(run: &super::PairRun, group: usize) -> f64 {
    let hops: Vec<u64> = run.hops.iter().step_by(group).map(|&hops| u64::from(hops)).collect();
    let finish: Vec<u64> = run.elapsed.chunks(group).map(|ranks| ranks.iter().sum()).collect();
    spearman(&hops, &finish).unwrap_or(f64::NAN)
}

fn in_shape(row: Row, shape: Option<crate::Shape>) -> Row {
    match shape {
        Some(shape) => row.case(shape.to_string()),
        None => row,
    }
}

/// Seconds per pair of the slowest rank.
fn slowest(runs: &LockRuns, ranks: u32, ranks_per_node: u32) -> Option<f64> {
    runs.fx100(ranks, ranks_per_node).map(super::PairRun::slowest_pair)
}

/// Seconds for as many pairs as the paper ran.
fn total(runs: &LockRuns, ranks: u32, ranks_per_node: u32) -> Option<f64> {
    slowest(runs, ranks, ranks_per_node).map(|pair| pair * f64::from(LockPlan::PAPER_PAIRS))
}

/// Per cent of the time that four receiving TNIs save over one.
fn time_saved(runs: &LockRuns) -> Option<f64> {
    let with = |tnis| runs.tnis.iter().find(|run| run.tnis == tnis).map(super::TniRun::slowest);
    Some(100.0 * (1.0 - with(4)? / with(1)?))
}
