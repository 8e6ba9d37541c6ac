//! Running the plan in virtual time.

use super::{How, Job, Pattern, PrdmaPlan};
use crate::{
    ReproError,
    progress::Progress,
    runner::{BEGIN, Runner},
    simulate::{JobRecord, Setting},
    workloads::{Together, exchanges},
};
use rdma_fabric::Time;
use tofu2_sim::virt::Timeline;

/// All ranks begin when set-up is certainly over, and stay until all are done.
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// What an exchange took.
#[derive(Clone, Debug, PartialEq)]
pub struct ExchangeRun {
    /// Who are neighbours.
    pub pattern: Pattern,
    /// How they exchanged.
    pub how: How,
    /// Bytes to and from each neighbour, and seconds per iteration at the slowest rank.
    pub points: Vec<(usize, f64)>,
    /// The job.
    pub job: JobRecord,
}

impl ExchangeRun {
    /// Seconds per iteration at that size, if it was run.
    pub fn at(&self, size: usize) -> Option<f64> {
        self.points.iter().find(|point| point.0 == size).map(|point| point.1)
    }

    /// Bytes and seconds, for statistics and plots.
    pub fn line(&self) -> Vec<(f64, f64)> {
        self.points.iter().map(|&(size, seconds)| (size as f64, seconds)).collect()
    }
}

/// Everything the plan asked for.
#[derive(Clone, Debug, PartialEq)]
pub struct PrdmaRuns {
    /// What was asked for.
    pub plan: PrdmaPlan,
    /// By job of the plan.
    pub runs: Vec<ExchangeRun>,
    /// The timeline that the plan asked for; `None` too if it has no such job.
    pub timeline: Option<Timeline>,
}

impl PrdmaRuns {
    /// The run of that pattern and form.
    pub fn of(&self, pattern: Pattern, how: How) -> Option<&ExchangeRun> {
        self.runs.iter().find(|run| run.pattern == pattern && run.how == how)
    }

    /// By size that both have: time of one form over that of another.
    pub fn ratios(&self, pattern: Pattern, how: How, over: How) -> Vec<(usize, f64)> {
        let (Some(run), Some(over)) = (self.of(pattern, how), self.of(pattern, over)) else { return Vec::new() };
        run.points.iter().filter_map(|&(size, seconds)| Some((size, seconds / over.at(size)?))).collect()
    }
}

/// Simulate everything the plan asks for.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &PrdmaPlan, progress: &mut Progress) -> Result<PrdmaRuns, ReproError> {
    let mut runner = Runner::new(progress, plan.jobs.len(), plan.traced);
    let mut runs = Vec::with_capacity(plan.jobs.len());
    for job in &plan.jobs {
        let Job { pattern, how, ref sizes } = *job;
        let label = match sizes[..] {
            [size] => format!("{pattern}, {how}: {size} B"),
            _ => format!("{pattern}, {how}: {} sizes", sizes.len()),
        };
        let shape = pattern.shape();
        let setting = Setting::torus(plan.platform.clone(), shape.nodes(), 1, shape, plan.seed);
        let simulated =
            runner.run(label, setting, &async |fabric| exchanges(fabric, plan.exchange(job), TOGETHER).await)?;
        let slowest = |at: usize| simulated.outs.iter().map(|rank| rank[at]).max().unwrap_or(0);
        let seconds = |at| slowest(at) as f64 * 1e-12 / f64::from(plan.iterations);
        let points = sizes.iter().enumerate().map(|(at, &size)| (size, seconds(at))).collect();
        runs.push(ExchangeRun { pattern, how, points, job: simulated.job });
    }
    let timeline = runner.end();
    Ok(PrdmaRuns { plan: plan.clone(), runs, timeline })
}
