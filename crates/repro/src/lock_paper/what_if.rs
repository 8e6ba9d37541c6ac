//! What if not every rank met at the home? The paper's future work, on the modelled machine.
//!
//! These are no figures of the paper, and nothing is compared: the machine's constants are those that its figures set.

use super::{LockPlan, runs::TOGETHER};
use crate::{
    ReproError,
    runner::Runner,
    simulate::{JobRecord, Setting},
    workloads::{Form, Wave, wave},
};
use rdma_fabric::Time;
use tofu2_sim::virt::Platform;

/// When all ranks unlock: long after the last of them has the lock.
const UNLOCK: Time = Time::from_picos(2_000_000_000_000);

/// Ranks of each node: those of the K computer.
const RANKS_PER_NODE: u32 = 8;

/// A wave that ran: all ranks lock at once, and then unlock at once.
#[derive(Clone, Debug, PartialEq)]
pub struct WhatIf {
    /// How they came to the home.
    pub form: Form,
    /// Number of ranks.
    pub ranks: u32,
    /// Receiving TNIs at each node.
    pub tnis: u32,
    /// Seconds until the slowest rank had the lock.
    pub lock: f64,
    /// Seconds until the slowest rank had let go of it.
    pub unlock: f64,
    /// The job.
    pub job: JobRecord,
}

impl WhatIf {
    /// Seconds of both.
    pub fn pair(&self) -> f64 {
        self.lock + self.unlock
    }
}

/// How many jobs that is.
pub(super) fn jobs(plan: &LockPlan) -> usize {
    plan.what_if_ranks.len() * plan.what_if_tnis.len() * Form::ALL.len()
}

/// Run all waves of the plan.
pub(super) fn run(plan: &LockPlan, runner: &mut Runner<'_>) -> Result<Vec<WhatIf>, ReproError> {
    let mut done = Vec::with_capacity(jobs(plan));
    for &tnis in &plan.what_if_tnis {
        for &ranks in &plan.what_if_ranks {
            for form in Form::ALL {
                let label = format!("What if: {ranks} ranks, {form}, receiving TNIs: {tnis}");
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
