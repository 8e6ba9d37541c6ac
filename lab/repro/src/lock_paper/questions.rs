//! Questions that the paper raises without measuring: does code like that of its Figure 5 scale to
//! tens of thousands of nodes? And, from its future work: how does the lock perform if not every
//! rank accesses the home?
//!
//! These are not figures of the paper, so they are not compared with published values: the
//! machine's constants are those set by the paper's figures.

use super::{LockPlan, runs::TOGETHER};
use crate::{
    ReproError,
    simulate::{JobRecord, Runner, Setting},
    workloads::{Stencil, Tile, WAVES, Wave, WaveLock, stencil_fence, stencil_lock_all, wave},
};
use rdma_fabric::{Program, Time};
use std::fmt;
use tofu2_sim::virt::Platform;

/// Ranks of each node, as on the K computer.
const RANKS_PER_NODE: u32 = 8;
/// Steps of a job, over which the reported time is the mean.
const STEPS: u32 = 4;
/// Cells along each side of a rank's tile.
const SIDE: usize = 2;

/// The form in which edges are exchanged.
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

/// The results of a stencil.
#[derive(Clone, Debug, PartialEq)]
pub struct StencilRun {
    /// The form of the exchange.
    pub form: StencilForm,
    /// Number of ranks.
    pub ranks: u32,
    /// Seconds of a step, at the slowest rank.
    pub step: f64,
    /// Seconds to acquire and release the lock, once for all steps; 0 without a lock.
    pub lock: f64,
    /// The job.
    pub job: JobRecord,
}

/// Returns the number of jobs of the plan.
pub(super) fn jobs(plan: &LockPlan) -> usize {
    let stencils = plan.stencil_ranks.len() * StencilForm::ALL.len();
    stencils + plan.what_if_tnis.len() * plan.what_if_ranks.iter().map(|&ranks| forms(ranks).count()).sum::<usize>()
}

/// Runs the stencils of the plan.
pub(super) fn stencils(plan: &LockPlan, runner: &mut Runner<'_>) -> Result<Vec<StencilRun>, ReproError> {
    let mut done = Vec::new();
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

/// When all ranks unlock: long after the last of them has acquired the lock.
const UNLOCK: Time = Time::from_picos(2_000_000_000_000);

/// The results of a wave: all ranks lock at the same time, and later unlock at the same time.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// The lock, which determines the path to the home.
    pub form: WaveLock,
    /// Number of ranks.
    pub ranks: u32,
    /// Receiving TNIs at each node.
    pub tnis: u32,
    /// Seconds until the slowest rank had acquired the lock.
    pub lock: f64,
    /// Seconds until the slowest rank had released it.
    pub unlock: f64,
    /// The job.
    pub job: JobRecord,
}

impl WhatIf {
    /// Returns the sum of both.
    pub fn pair(&self) -> f64 {
        self.lock + self.unlock
    }
}

/// Returns the forms for this number of ranks.
fn forms(ranks: u32) -> impl Iterator<Item = (WaveLock, &'static str)> {
    WAVES.into_iter().filter(move |(form, _)| ranks <= form.max_ranks())
}

/// Runs all waves of the plan.
pub(super) fn waves(plan: &LockPlan, runner: &mut Runner<'_>) -> Result<Vec<WhatIf>, ReproError> {
    let mut done = Vec::new();
    for &tnis in &plan.what_if_tnis {
        for &ranks in &plan.what_if_ranks {
            for (form, name) in forms(ranks) {
                let label = format!("What if: {ranks} ranks, {name}, receiving TNIs: {tnis}");
                let mut setting = Setting::latency(Platform::fx100(), ranks, RANKS_PER_NODE.min(ranks), plan.seed);
                setting.receive_tnis = Some(tnis);
                let simulated =
                    runner.run(label, setting, &async |fabric| wave(fabric, form, TOGETHER, UNLOCK).await)?;
                let slowest = |part: fn(&Wave) -> u64| {
                    simulated.outs.iter().map(part).max().map_or(f64::NAN, |picos| picos as f64 * 1e-12)
                };
                done.push(WhatIf {
                    form,
                    ranks,
                    tnis,
                    lock: slowest(|wave| wave.lock),
                    unlock: slowest(|wave| wave.unlock),
                    job: simulated.job,
                });
            }
        }
    }
    Ok(done)
}
