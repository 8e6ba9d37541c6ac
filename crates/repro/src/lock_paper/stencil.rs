//! The paper's own question: does code as in its Figure 5 run at tens of thousands of nodes?
//!
//! These are no figures of the paper, and nothing is compared: the machine's constants are those that its figures set.

use super::LockPlan;
use crate::{
    ReproError,
    runner::Runner,
    simulate::{JobRecord, Setting},
    workloads::{Stencil, Tile, stencil_fence, stencil_lock_all},
};
use rdma_fabric::Program;
use std::fmt;
use tofu2_sim::virt::Platform;

/// Ranks of each node: those of the K computer.
const RANKS_PER_NODE: u32 = 8;
/// Steps of a job; their mean is told.
const STEPS: u32 = 4;
/// Cells along each side of a rank's tile.
const SIDE: usize = 2;

/// How edges are exchanged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StencilForm {
    /// Figure 4: fence, put, fence.
    Fence,
    /// Figure 5: `lock_all` once; barrier, get, `flush_all` in each step.
    LockAll,
}

impl StencilForm {
    /// Both.
    pub const ALL: [StencilForm; 2] = [StencilForm::Fence, StencilForm::LockAll];
}

impl fmt::Display for StencilForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StencilForm::Fence => "fence, put, fence",
            StencilForm::LockAll => "lock_all, get, flush_all",
        })
    }
}

/// A stencil that ran.
#[derive(Clone, Debug, PartialEq)]
pub struct StencilRun {
    /// How.
    pub form: StencilForm,
    /// Number of ranks.
    pub ranks: u32,
    /// Seconds of a step, at the slowest rank.
    pub step: f64,
    /// Seconds to take and release the lock, once for all steps; 0 without.
    pub lock: f64,
    /// The job.
    pub job: JobRecord,
}

/// How many jobs that is.
pub(super) fn jobs(plan: &LockPlan) -> usize {
    plan.stencil_ranks.len() * StencilForm::ALL.len()
}

/// Run the stencils of the plan.
pub(super) fn run(plan: &LockPlan, runner: &mut Runner<'_>) -> Result<Vec<StencilRun>, ReproError> {
    let mut done = Vec::with_capacity(jobs(plan));
    for &ranks in &plan.stencil_ranks {
        let stencil = Stencil::of_ranks(ranks, SIDE, STEPS);
        for form in StencilForm::ALL {
            done.push(match form {
                StencilForm::Fence => {
                    one(plan, runner, ranks, form, &async |fabric| stencil_fence(fabric, stencil).await)?
                }
                StencilForm::LockAll => {
                    one(plan, runner, ranks, form, &async |fabric| stencil_lock_all(fabric, stencil).await)?
                }
            });
        }
    }
    Ok(done)
}

fn one<P: Program<Out = Tile>>(
    plan: &LockPlan,
    runner: &mut Runner<'_>,
    ranks: u32,
    form: StencilForm,
    program: &P,
) -> Result<StencilRun, ReproError> {
    let label = format!("Figs. 4, 5: stencil of {ranks} ranks, {form}");
    let setting = Setting::latency(Platform::fx100(), ranks, RANKS_PER_NODE.min(ranks), plan.seed);
    let simulated = runner.run(label, setting, program)?;
    let slowest = |part: fn(&Tile) -> u64| simulated.outs.iter().map(part).max().unwrap_or(0) as f64 * 1e-12;
    let (step, lock) = (slowest(|tile| tile.steps) / f64::from(STEPS), slowest(|tile| tile.lock));
    Ok(StencilRun { form, ranks, step, lock, job: simulated.job })
}
