//! Facts that the paper states about Tofu2, observed in jobs.

use super::{LockPlan, runs::TOGETHER};
use crate::{
    ReproError,
    shape::Shape,
    simulate::{JobRecord, Runner, Setting},
    workloads::machine::{atomics, queues},
};
use tofu2_sim::virt::Platform;

/// Observed facts.
#[derive(Clone, Debug, PartialEq)]
pub struct Machine {
    /// The engines (TNIs) of a node.
    pub engines: usize,
    /// Whether all of Tofu2's atomics have their effect, against each other and the CPU.
    pub atomics: bool,
    /// The jobs.
    pub jobs: [JobRecord; JOBS],
}

/// The number of jobs.
pub(super) const JOBS: usize = 2;

/// Two nodes of four ranks each, one for each receive engine of the home.
const PAIR: Shape = Shape::new(&[2]);
const RANKS_PER_NODE: u32 = 4;

pub(super) fn run(plan: &LockPlan, runner: &mut Runner<'_>) -> Result<Machine, ReproError> {
    let alone = Setting::latency(Platform::fx100(), 1, 1, plan.seed);
    let open = runner.run("engines of a node".into(), alone, &async |fabric| queues(fabric).await)?;
    let ranks = PAIR.nodes() * RANKS_PER_NODE;
    let pair = Setting::routed(Platform::fx100(), ranks, RANKS_PER_NODE, PAIR, plan.seed);
    let pair = Setting { receive_tnis: Some(RANKS_PER_NODE), ..pair };
    let added = runner.run("kinds of atomics".into(), pair, &async |fabric| atomics(fabric, TOGETHER).await)?;
    Ok(Machine {
        engines: open.outs.first().map_or(0, |rank| rank.engines),
        atomics: added.outs.iter().all(|right| *right),
        jobs: [open.job, added.job],
    })
}
