//! Running the plan in virtual time.

use super::{Ordering, Swept, Version, XmpPlan, ranges::SWEPT, running::Running};
use crate::{
    ReproError,
    progress::Progress,
    simulate::{JobRecord, Runner},
    workloads::reflects::Order,
};
use tofu2_sim::virt::Timeline;
use xmp_reflect::Transport;

/// The number of nodes of the paper's largest run.
const LARGEST: u32 = 1024;

/// The times of a step.
#[derive(Clone, Debug, PartialEq)]
pub struct ReflectRun {
    /// The version.
    pub version: Version,
    /// The number of nodes.
    pub nodes: u32,
    /// Seconds of a step of the slowest rank.
    pub step: f64,
    /// Seconds of that in which the rank did not compute.
    pub exchanging: f64,
    /// The job.
    pub job: JobRecord,
}

/// The unmeasured cases on FX100: transport, order and name.
pub(super) const WHAT_IF: [(Transport, Order, &str); 6] = [
    (Transport::Packed, Order::InTurn, "FX100, packed"),
    (Transport::Blocks, Order::InTurn, "FX100, blocks by the CPU"),
    (Transport::Fast, Order::InTurn, "FX100, session queues (FAST)"),
    (Transport::Mrc, Order::InTurn, "FX100, one session queue (MRC)"),
    (Transport::Blocks, Order::Overlapped, "FX100, blocks by the CPU, olap"),
    (Transport::Fast, Order::Overlapped, "FX100, session queues (FAST), olap"),
];

/// The results of all jobs of a plan.
#[derive(Clone, Debug, PartialEq)]
pub struct XmpRuns {
    /// The plan.
    pub plan: XmpPlan,
    /// Runs with one rank per node.
    pub runs: Vec<ReflectRun>,
    /// Runs with eight ranks per node.
    pub flat: Vec<ReflectRun>,
    /// Seconds of a step, and those of them without computation, with the blocks of 1024 nodes.
    pub what_if: Vec<(&'static str, f64, f64)>,
    /// One entry for each assumed constant of the plan.
    pub swept: Vec<Swept>,
    /// The ids that asynchronous reflects by RDMA can have.
    pub tags: Vec<u64>,
    /// The jobs of the what-if cases, and those with all defaults.
    others: Vec<JobRecord>,
    /// The job of the ids.
    tagged: JobRecord,
    /// The timeline that the plan requests; also `None` if the plan has no such job.
    pub timeline: Option<Timeline>,
}

impl XmpRuns {
    /// Returns the run of a version with one rank on each of `nodes` nodes.
    pub fn of(&self, version: Version, nodes: u32) -> Option<&ReflectRun> {
        self.runs.iter().find(|run| (run.version, run.nodes) == (version, nodes))
    }

    /// Returns the run of a version with eight ranks on each of `nodes` nodes.
    pub fn flat_of(&self, version: Version, nodes: u32) -> Option<&ReflectRun> {
        self.flat.iter().find(|run| (run.version, run.nodes) == (version, nodes))
    }

    /// Returns the speed-up of a version over one node.
    pub fn speed_up(&self, version: Version, nodes: u32) -> Option<f64> {
        Some(self.of(version, 1)?.step / self.of(version, nodes)?.step)
    }

    /// Returns the share of the time by which an ordering holds on 1024 nodes; negative if it
    /// doesn't hold. `None` if runs are missing.
    pub fn margin(&self, ordering: Ordering) -> Option<f64> {
        ordering.margin(&|version| self.step(version, LARGEST))
    }

    /// Returns whether an ordering holds on fewer nodes, within the accuracy of a plot.
    pub fn holds_below(&self, ordering: Ordering) -> Option<bool> {
        let below = self.plan.nodes.iter().map(|nodes| nodes.many()).filter(|nodes| (2..LARGEST).contains(nodes));
        let each: Option<Vec<bool>> =
            below.map(|nodes| ordering.holds_below(&|version| self.step(version, nodes))).collect();
        each.map(|each| each.into_iter().all(|holds| holds))
    }

    fn step(&self, version: Version, nodes: u32) -> Option<f64> {
        self.of(version, nodes).map(|run| run.step)
    }

    /// Returns the jobs, in the order of their execution.
    pub fn jobs(&self) -> impl Iterator<Item = &JobRecord> {
        let runs = self.runs.iter().chain(&self.flat).map(|run| &run.job);
        runs.chain(&self.others).chain(self.swept.iter().map(|swept| &swept.job)).chain([&self.tagged])
    }
}

/// Simulates all jobs of the plan.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub fn run(plan: &XmpPlan, progress: &mut Progress) -> Result<XmpRuns, ReproError> {
    let mut running = Running::new(plan, Runner::new(progress, plan.jobs(), plan.traced));
    let (mut runs, mut flat) = (Vec::new(), Vec::new());
    for nodes in &plan.nodes {
        for &version in &plan.versions {
            runs.push(running.hybrid(version, *nodes)?);
        }
    }
    for nodes in &plan.flat {
        for version in Version::FLAT {
            flat.push(running.flat(version, *nodes)?);
        }
    }
    let (mut what_if, mut others) = (Vec::new(), Vec::new());
    for (transport, order, name) in WHAT_IF.into_iter().filter(|_| plan.what_if) {
        let (step, exchanging, job) = running.what_if(transport, order, name)?;
        what_if.push((name, step, exchanging));
        others.push(job);
    }
    let mut defaults = Vec::new();
    if !plan.ranges.is_empty() {
        for version in SWEPT.into_iter().filter(|version| version.has_barriers()) {
            others.push(running.distance(version)?);
        }
        for version in SWEPT {
            let (seconds, job) = running.swept(version, None)?;
            defaults.push((version, seconds));
            others.push(job);
        }
    }
    let swept = plan.ranges.iter().map(|assumed| running.range(assumed, &defaults)).collect::<Result<_, _>>()?;
    let (tags, tagged) = running.tags()?;
    let timeline = running.end();
    Ok(XmpRuns { plan: plan.clone(), runs, flat, what_if, swept, tags, others, tagged, timeline })
}
