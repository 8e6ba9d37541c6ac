//! Running the plan in virtual time.

use super::{Breakdown, CollectiveCase, FmplPlan, breakdown};
use crate::{
    ReproError,
    progress::Progress,
    simulate::{BEGIN, JobRecord, Runner, Setting},
    workloads::{
        Together,
        messages::{Collectives, Done, Library, Posted, collectives, ping_pong, posted_receives},
    },
};
use rdma_fabric::{Rank, Time};
use tofu2_sim::virt::Timeline;

/// All ranks begin after the end of set-up, and stay until all have finished.
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// The number of round trips of each size, after the first.
const ROUNDS: u32 = 2;

/// Messages between two ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct SizesRun {
    /// The library that sends them.
    pub library: Library,
    /// The size in bytes, and the time of one way in seconds.
    pub points: Vec<(usize, f64)>,
    /// The job.
    pub job: JobRecord,
}

/// Many posted receives.
#[derive(Clone, Debug, PartialEq)]
pub struct PostedRun {
    /// The library that posts them.
    pub library: Library,
    /// The measured times.
    pub posted: Posted,
    /// The job.
    pub job: JobRecord,
}

/// Collectives of one library at one number of nodes, in seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Alone {
    /// The library that executes them.
    pub library: Library,
    /// The number of nodes.
    pub nodes: u32,
    /// The time of a barrier.
    pub barrier: f64,
    /// The times of broadcasts, by size in bytes.
    pub broadcasts: Vec<(usize, f64)>,
    /// The time of a sum of 8 KB.
    pub reduction: f64,
    /// The job.
    pub job: JobRecord,
}

/// The results of all jobs of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct FmplRuns {
    /// The plan, whose lists determine the order of the other fields.
    pub plan: FmplPlan,
    /// One entry for each library of the plan.
    pub between_two: Vec<SizesRun>,
    /// One entry for each library of the plan.
    pub posted: Vec<PostedRun>,
    /// Table 1.
    pub breakdown: Option<Breakdown>,
    /// The job whose timeline provides table 1.
    pub breakdown_job: JobRecord,
    /// One entry for each case of the plan.
    pub collectives: Vec<Alone>,
    /// The timeline that the plan requests; also `None` if the plan has no such job.
    pub timeline: Option<Timeline>,
}

impl FmplRuns {
    /// Returns the seconds that a message takes one way, if that was run.
    pub fn one_way(&self, library: Library, bytes: usize) -> Option<f64> {
        let run = self.between_two.iter().find(|run| run.library == library)?;
        run.points.iter().find(|point| point.0 == bytes).map(|point| point.1)
    }

    /// Returns the measured times of many posted receives, if that was run.
    pub fn posted(&self, library: Library) -> Option<Posted> {
        self.posted.iter().find(|run| run.library == library).map(|run| run.posted)
    }

    /// Returns the collectives at that number of nodes, if they were run.
    pub fn alone(&self, library: Library, nodes: u32) -> Option<&Alone> {
        self.collectives.iter().find(|run| (run.library, run.nodes) == (library, nodes))
    }

    /// Returns the jobs, in the order of their execution.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        let between_two = self.between_two.iter().map(|run| &run.job);
        let posted = self.posted.iter().map(|run| &run.job);
        between_two.chain(posted).chain([&self.breakdown_job]).chain(self.collectives.iter().map(|run| &run.job))
    }
}

impl Alone {
    /// Returns the seconds of a broadcast, if it was run.
    pub fn broadcast(&self, bytes: usize) -> Option<f64> {
        self.broadcasts.iter().find(|point| point.0 == bytes).map(|point| point.1)
    }
}

fn seconds(picos: u64) -> f64 {
    picos as f64 * 1e-12
}

/// Simulates all jobs of the plan.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &FmplPlan, progress: &mut Progress) -> Result<FmplRuns, ReproError> {
    let mut runner = Runner::new(progress, plan.jobs(), plan.traced);
    let on = |nodes| Setting::latency(plan.platform.clone(), nodes, 1, plan.seed);
    let mut between_two = Vec::with_capacity(plan.between_two.len());
    for &library in &plan.between_two {
        let sizes = &plan.sizes;
        let label = format!("{library}: {} sizes", sizes.len());
        let simulated = runner
            .run(label, on(2), &async |fabric| ping_pong(fabric, library, sizes.clone(), ROUNDS, TOGETHER).await)?;
        let halves = simulated.outs.first().into_iter().flatten();
        let points = sizes.iter().zip(halves).map(|(&size, &half)| (size, seconds(half))).collect();
        between_two.push(SizesRun { library, points, job: simulated.job });
    }
    let mut posted = Vec::with_capacity(plan.posting.len());
    for &library in &plan.posting {
        let count = plan.posted;
        let label = format!("{library}: {count} posted receives");
        let simulated =
            runner.run(label, on(2), &async |fabric| posted_receives(fabric, library, count, TOGETHER).await)?;
        posted.push(PostedRun { library, posted: simulated.outs[0], job: simulated.job });
    }
    let recorded = Setting { timeline: Some((10_000, BEGIN)), ..on(2) };
    let simulated = runner.run("FMPL: a timeline of 8 B".into(), recorded, &async |fabric| {
        ping_pong(fabric, Library::Fmpl, vec![breakdown::BODY as usize], 4, TOGETHER).await
    })?;
    let breakdown = simulated.timeline.and_then(|timeline| Breakdown::read(&timeline.cpu(Rank::new(0))));
    let breakdown_job = simulated.job;
    let alone = plan.collectives.iter().map(|case| alone(plan, case, &mut runner));
    let collectives = alone.collect::<Result<_, _>>()?;
    let timeline = runner.end();
    Ok(FmplRuns { plan: plan.clone(), between_two, posted, breakdown, breakdown_job, collectives, timeline })
}

fn alone(plan: &FmplPlan, case: &CollectiveCase, runner: &mut Runner<'_>) -> Result<Alone, ReproError> {
    let CollectiveCase { library, nodes, ref sizes } = *case;
    let from_all = |bytes| (bytes, FmplPlan::roots(nodes, bytes));
    let what = Collectives {
        library,
        barriers: 2,
        broadcasts: sizes.iter().map(|&bytes| from_all(bytes)).collect(),
        reductions: vec![from_all(FmplPlan::SHORT)],
        start: BEGIN,
    };
    let label = format!("{library}: collectives on {nodes} nodes");
    let setting = Setting::latency(plan.platform.clone(), nodes, 1, plan.seed);
    let simulated = runner.run(label, setting, &async |fabric| collectives(fabric, what.clone()).await)?;
    let last = |took: &dyn Fn(&Done) -> Vec<u64>| {
        // The mean, over all operations, of the time at which the last rank has finished.
        let ranks: Vec<Vec<u64>> = simulated.outs.iter().map(took).collect();
        let times = ranks.first().map_or(0, Vec::len);
        let slowest = (0..times).map(|at| ranks.iter().map(|rank| rank[at]).max().unwrap_or(0));
        slowest.map(seconds).sum::<f64>() / times.max(1) as f64
    };
    let broadcasts = sizes.iter().enumerate().map(|(at, &size)| (size, last(&|done| done.broadcasts[at].clone())));
    Ok(Alone {
        library,
        nodes,
        barrier: last(&|done| done.barriers.clone()),
        broadcasts: broadcasts.collect(),
        reduction: last(&|done| done.reductions[0].clone()),
        job: simulated.job,
    })
}
