//! Running the plan in virtual time.

use super::{LockPlan, Machine, StencilRun, WhatIf, machine};
use crate::{
    ReproError,
    progress::Progress,
    shape::Shape,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    workloads::{FetchAdd, Together, reader_pairs, single_fetch_adds, window_pairs},
};
use rdma_fabric::{Program, Time};
use tofu2_sim::virt::{Arbiter, Platform, Timeline};

/// All ranks begin after the end of set-up, and stay until all have finished.
pub(super) const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// Ranks per node in Fig. 8.
const PACKED: u32 = 32;
/// Nodes of the paper's FX100 jobs.
const NODES: u32 = 128;

/// The results of many ranks, each of which locks and unlocks as a reader.
#[derive(Clone, Debug, PartialEq)]
pub struct PairRun {
    /// Number of ranks.
    pub ranks: u32,
    /// Ranks on each node.
    pub ranks_per_node: u32,
    /// Shape of the job; `None` for latencies only.
    pub shape: Option<Shape>,
    /// The choice of a router between inputs.
    pub arbiter: Arbiter,
    /// Pairs per rank.
    pub pairs: u32,
    /// Each rank's time for all its pairs, in picoseconds.
    pub elapsed: Vec<u64>,
    /// Each rank's distance to the lock's home, in hops; empty without a shape.
    pub hops: Vec<u32>,
    /// The job.
    pub job: JobRecord,
}

impl PairRun {
    /// Returns the mean time of one pair at the slowest rank, in seconds.
    pub fn slowest_pair(&self) -> f64 {
        self.elapsed.iter().max().map_or(f64::NAN, |&ps| ps as f64 * 1e-12 / f64::from(self.pairs))
    }

    /// Returns the time of the first finisher divided by that of the last one.
    pub fn first_over_last(&self) -> f64 {
        match (self.elapsed.iter().min(), self.elapsed.iter().max()) {
            (Some(&first), Some(&last)) if last > 0 => first as f64 / last as f64,
            _ => f64::NAN,
        }
    }

    /// Returns each rank's seconds for as many pairs as in the paper.
    pub fn seconds(&self) -> impl Iterator<Item = f64> {
        let scale = 1e-12 * f64::from(LockPlan::PAPER_PAIRS) / f64::from(self.pairs);
        self.elapsed.iter().map(move |&ps| ps as f64 * scale)
    }
}

/// Single fetch-adds of one node's ranks through loopback.
#[derive(Clone, Debug, PartialEq)]
pub struct TniRun {
    /// Receiving TNIs at the home.
    pub tnis: u32,
    /// The measurements of each rank.
    pub ranks: Vec<FetchAdd>,
    /// The job.
    pub job: JobRecord,
}

impl TniRun {
    /// Returns the slowest rank's time, in seconds.
    pub fn slowest(&self) -> f64 {
        self.ranks.iter().map(|rank| rank.elapsed()).max().map_or(f64::NAN, |ps| ps as f64 * 1e-12)
    }
}

/// The results of all jobs of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct LockRuns {
    /// The plan.
    pub plan: LockPlan,
    /// FX100 runs over routers: Figs. 8 and 10.
    pub fx100: Vec<PairRun>,
    /// The FX10 run of Fig. 9.
    pub fx10: PairRun,
    /// One and four receiving TNIs, Figs. 11 and 12.
    pub tnis: Vec<TniRun>,
    /// The K-scale run over the latency-only network.
    pub k: Option<PairRun>,
    /// Facts about the machine.
    pub machine: Option<Machine>,
    /// Waves of the other forms of the lock.
    pub what_if: Vec<WhatIf>,
    /// Stencils of Figs. 4 and 5.
    pub stencils: Vec<StencilRun>,
    /// The timeline that the plan requests; also `None` if the plan has no such job.
    pub timeline: Option<Timeline>,
}

impl LockRuns {
    /// Returns the FX100 run with these numbers, in the plan's first shape.
    pub fn fx100(&self, ranks: u32, ranks_per_node: u32) -> Option<&PairRun> {
        self.fx100.iter().find(|run| run.ranks == ranks && run.ranks_per_node == ranks_per_node)
    }

    /// Returns the runs of Fig. 8, by number of ranks.
    pub fn scaling(&self) -> impl Iterator<Item = &PairRun> {
        self.plan.scaling.iter().filter_map(|&ranks| self.fx100(ranks, PACKED))
    }

    /// Returns the run of Fig. 10 with 32 ranks per node, in every shape and with every arbiter.
    pub fn full(&self) -> impl Iterator<Item = &PairRun> {
        self.fx100.iter().filter(|run| run.ranks == NODES * PACKED && run.ranks_per_node == PACKED)
    }

    /// Returns the records of all jobs, in the order of their execution.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        let pairs = self.fx100.iter().chain([&self.fx10]).map(|run| &run.job);
        pairs
            .chain(self.tnis.iter().map(|run| &run.job))
            .chain(self.k.iter().map(|run| &run.job))
            .chain(self.machine.iter().flat_map(|machine| &machine.jobs))
            .chain(self.what_if.iter().map(|run| &run.job))
            .chain(self.stencils.iter().map(|run| &run.job))
    }
}

/// One FX100 job over routers.
#[derive(Clone, Copy, PartialEq, Eq)]
struct PairCase {
    ranks: u32,
    ranks_per_node: u32,
    shape: Shape,
    arbiter: Arbiter,
}

impl PairCase {
    /// Returns the pairs per rank. With the oldest packet first all ranks take the same turns, so a
    /// tenth shows the spread.
    fn pairs(self, plan: &LockPlan) -> u32 {
        match self.arbiter {
            Arbiter::RoundRobin => plan.pairs,
            Arbiter::OldestFirst => (plan.pairs / 10).max(1),
        }
    }
}

/// Returns the distinct FX100 jobs of a plan.
fn pair_jobs(plan: &LockPlan) -> Vec<PairCase> {
    let mut jobs = Vec::new();
    let mut add = |ranks, ranks_per_node, shape, arbiter| {
        let job = PairCase { ranks, ranks_per_node, shape, arbiter };
        if !jobs.contains(&job) {
            jobs.push(job);
        }
    };
    if let Some((&first, others)) = plan.shapes.split_first() {
        plan.scaling.iter().for_each(|&ranks| add(ranks, PACKED, first, Arbiter::RoundRobin));
        plan.ranks_per_node.iter().for_each(|&ppn| add(NODES * ppn, ppn, first, Arbiter::RoundRobin));
        others.iter().for_each(|&shape| add(NODES * PACKED, PACKED, shape, Arbiter::RoundRobin));
        if plan.ranks_per_node.contains(&PACKED) {
            let tofu = plan.shapes.iter().filter(|shape| shape.is_tofu());
            tofu.for_each(|&shape| add(NODES * PACKED, PACKED, shape, Arbiter::OldestFirst));
        }
    }
    jobs
}

/// Returns the number of jobs that have a number by which a timeline can be requested.
pub(super) fn jobs(plan: &LockPlan) -> usize {
    pair_jobs(plan).len() + 1 + TNIS.len() + usize::from(plan.k_ranks > 0) + machine::JOBS
}

/// Receiving TNIs of Figs. 11 and 12.
const TNIS: [u32; 2] = [1, 4];

/// Runs a job of pairs by the lock alone.
fn pairs(runner: &mut Runner<'_>, label: String, setting: Setting, pairs: u32) -> Result<PairRun, ReproError> {
    run_pairs(runner, label, setting, pairs, &reader_pairs(pairs, TOGETHER))
}

fn run_pairs(
    runner: &mut Runner<'_>,
    label: String,
    setting: Setting,
    pairs: u32,
    program: &impl Program<Out = u64>,
) -> Result<PairRun, ReproError> {
    let (ranks, ranks_per_node, shape, arbiter) =
        (setting.ranks, setting.ranks_per_node, setting.shape, setting.arbiter);
    let simulated = runner.run(label, setting, program)?;
    Ok(PairRun {
        ranks,
        ranks_per_node,
        shape,
        arbiter,
        pairs,
        elapsed: simulated.outs,
        hops: simulated.hops_to_first,
        job: simulated.job,
    })
}

/// Simulates all jobs of the plan.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &LockPlan, progress: &mut Progress) -> Result<LockRuns, ReproError> {
    let jobs = pair_jobs(plan);
    let mut runner = Runner::new(progress, plan.jobs(), plan.traced);
    let (fx100_platform, fx10_platform) = (Platform::fx100(), Platform::fx10());

    let mut fx100 = Vec::new();
    for case in jobs {
        let PairCase { ranks, ranks_per_node, shape, arbiter } = case;
        let setting = Setting::routed(fx100_platform.clone(), ranks, ranks_per_node, shape, plan.seed);
        let first = if arbiter == Arbiter::OldestFirst { ", oldest packet first" } else { "" };
        let label = format!("Figs. 8, 10: {ranks} ranks, ppn {ranks_per_node}, {shape}{first}");
        fx100.push(pairs(&mut runner, label, Setting { arbiter, ..setting }, case.pairs(plan))?);
    }

    let label = "Fig. 9: FX10, window lock, 256 ranks, ppn 16".to_owned();
    let setting = Setting::latency(fx10_platform, 256, 16, plan.seed);
    let program = async |fabric| window_pairs(fabric, plan.pairs, TOGETHER).await;
    let fx10 = run_pairs(&mut runner, label, setting, plan.pairs, &program)?;

    let mut tnis = Vec::new();
    for receiving in TNIS {
        let label = format!("Figs. 11, 12: single fetch-adds, receiving TNIs: {receiving}");
        let mut setting = Setting::latency(fx100_platform.clone(), PACKED, PACKED, plan.seed);
        setting.receive_tnis = Some(receiving);
        let simulated = runner.run(label, setting, &async |fabric| single_fetch_adds(fabric, TOGETHER).await)?;
        tnis.push(TniRun { tnis: receiving, ranks: simulated.outs, job: simulated.job });
    }

    let k = match plan.k_ranks {
        0 => None,
        ranks => {
            let label = format!("K scale: {ranks} ranks, ppn 8");
            Some(pairs(
                &mut runner,
                label,
                Setting::latency(fx100_platform.clone(), ranks, 8, plan.seed),
                plan.k_pairs,
            )?)
        }
    };
    let machine = Some(machine::run(plan, &mut runner)?);
    let what_if = super::questions::waves(plan, &mut runner)?;
    let stencils = super::questions::stencils(plan, &mut runner)?;
    let timeline = runner.end();
    Ok(LockRuns { plan: plan.clone(), fx100, fx10, tnis, k, machine, what_if, stencils, timeline })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{lock_paper::Shapes, simulate::Traced};

    #[test]
    fn no_job_runs_twice() {
        let jobs = pair_jobs(&LockPlan::paper(Shapes::All, 0));
        // Eleven of Fig. 8, two more of Fig. 10, five more shapes, three with the other arbiter.
        assert_eq!(jobs.len(), 21);
        assert_eq!(jobs.iter().filter(|job| job.ranks == 4096).count(), 9);
        assert_eq!(jobs.iter().filter(|job| job.ranks == 128).count(), 2);
    }

    #[test]
    fn one_job_leaves_a_timeline_and_runs_the_same() {
        let small = LockPlan {
            scaling: vec![4],
            ranks_per_node: vec![],
            k_ranks: 0,
            pairs: 3,
            what_if_ranks: vec![],
            stencil_ranks: vec![],
            ..LockPlan::quick(Shapes::One, 0)
        };
        let plain = run(&small, &mut Progress::silent()).expect("a run");
        assert!(plain.timeline.is_none());
        for (job, there) in [(1, true), (2, true), (4, true), (6, true), (7, false)] {
            let traced = LockPlan { traced: Some(Traced { job, entries: 500 }), ..small.clone() };
            let runs = run(&traced, &mut Progress::silent()).expect("a run");
            assert_eq!(runs.timeline.as_ref().map(|timeline| !timeline.is_empty()), there.then_some(true), "job {job}");
            let hashes = |runs: &LockRuns| runs.jobs().map(|job| job.trace_hash).collect::<Vec<_>>();
            assert_eq!(hashes(&runs), hashes(&plain), "job {job}");
        }
    }
}
