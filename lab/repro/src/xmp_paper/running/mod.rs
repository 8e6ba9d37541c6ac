//! Sequential execution of the plan's jobs.

use super::{
    Nodes, Point, ReflectRun, SMALL, Swept, Version, XmpPlan,
    ranges::{Assumed, CELL, IMBALANCE},
};
use crate::{
    ReproError,
    provenance::joint_hash,
    shape::Shape,
    simulate::{BEGIN, Cost, JobRecord, Runner, Setting},
    workloads::{
        Together,
        reflects::{Dynamics, Library, Order, Took, Transport, accepted_ids, dynamics},
    },
};
use rdma_fabric::Time;
use tofu2_sim::virt::{NetworkModel, Platform, Timeline};

/// All ranks begin after the end of set-up, and stay until all have finished.
pub(super) const TOGETHER: Together =
    Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000_000) };

/// A number of ids.
const MORE_THAN_TAGS: u64 = 20;

impl XmpPlan {
    /// Returns the workload for these numbers of ranks in i and j.
    pub(super) fn dynamics(&self, library: Library, ranks: [u32; 2]) -> Dynamics {
        Dynamics {
            grid: XmpPlan::grid(ranks),
            variables: XmpPlan::VARIABLES,
            stages: self.stages,
            warm_up: 1,
            steps: self.steps,
            cell: XmpPlan::CELL,
            imbalance: 0,
            library,
            order: Order::InTurn,
            threads: false,
        }
    }
}

/// The sequential execution of the plan's jobs.
pub(super) struct Running<'a> {
    plan: &'a XmpPlan,
    /// The additional time of an array on 1024 nodes compared to 16, for versions in which all
    /// nodes wait for each other, in picoseconds.
    further: Vec<(Version, u64)>,
    runner: Runner<'a>,
}

impl<'a> Running<'a> {
    pub(super) fn new(plan: &'a XmpPlan, runner: Runner<'a>) -> Self {
        Running { plan, further: Vec::new(), runner }
    }

    /// Ends the plan after all jobs have run; returns the timeline, if one was requested.
    pub(super) fn end(self) -> Option<Timeline> {
        self.runner.end()
    }

    /// Runs a job, and returns the times of its slowest rank for all steps.
    fn job(&mut self, label: String, setting: Setting, what: Dynamics) -> Result<(Took, JobRecord), ReproError> {
        let simulated = self.runner.run(label, setting, &async |fabric| dynamics(fabric, what, TOGETHER).await)?;
        let slowest = simulated.outs.into_iter().max_by_key(|took| took.all);
        Ok((slowest.unwrap_or_default(), simulated.job))
    }

    fn setting(&self, platform: Platform, shape: Shape, ranks_per_node: u32) -> Setting {
        let setting = Setting::routed(platform, shape.nodes() * ranks_per_node, ranks_per_node, shape, self.plan.seed);
        Setting { network: NetworkModel::Latency, ..setting }
    }

    fn of(&self, version: Version, ranks: [u32; 2]) -> Dynamics {
        let what = self.plan.dynamics(version.library(), ranks);
        Dynamics { order: version.order(), threads: version.packs(), ..what }
    }

    fn record(&self, (version, nodes): (Version, Nodes), (took, job): (Took, JobRecord)) -> ReflectRun {
        let measured = f64::from(self.plan.steps * self.plan.stages) / f64::from(XmpPlan::STAGES);
        let each = |picos: u64| picos as f64 * 1e-12 / measured;
        let (step, exchanging) = (each(took.all), each(took.exchanging));
        ReflectRun { version, nodes: nodes.many(), step, exchanging, job }
    }

    pub(super) fn hybrid(&mut self, version: Version, nodes: Nodes) -> Result<ReflectRun, ReproError> {
        let what = self.of(version, sides(nodes.shape));
        let setting = self.setting(version.machine(&self.plan.platform), nodes.shape, 1);
        let ran = self.job(format!("{version}, {} nodes", nodes.many()), setting, what)?;
        Ok(self.record((version, nodes), ran))
    }

    pub(super) fn flat(&mut self, version: Version, nodes: Nodes) -> Result<ReflectRun, ReproError> {
        let of = self.of(version, nodes.flat);
        // One core instead of eight.
        let what = Dynamics { cell: 8 * of.cell, threads: false, ..of };
        let setting =
            self.setting(version.machine(&with(self.plan.platform.clone(), "copy_threads", 1)), nodes.flat_shape, 8);
        let ran = self.job(format!("{version}, {} nodes, flat-parallel", nodes.many()), setting, what)?;
        Ok(self.record((version, nodes), ran))
    }

    /// Runs arrays with the blocks of 1024 nodes on FX100, with as many threads and as much
    /// computation. Returns the seconds of a step, and those of them without computation.
    pub(super) fn what_if(
        &mut self,
        transport: Transport,
        order: Order,
        name: &str,
    ) -> Result<(f64, f64, JobRecord), ReproError> {
        let platform = with(Platform::fx100(), "copy_threads", 8);
        let what = self.plan.dynamics(Library::Arrays(transport), sides(SMALL));
        let what = Dynamics { order, steps: 1, stages: XmpPlan::STAGES, ..small(what, SMALL) };
        let (took, job) = self.job(name.to_owned(), self.setting(platform, SMALL, 1), what)?;
        Ok((took.all as f64 * 1e-12, took.exchanging as f64 * 1e-12, job))
    }

    /// Runs a version with the blocks of 1024 nodes, optionally with another value of a constant.
    /// Returns the seconds of a step.
    pub(super) fn swept(
        &mut self,
        version: Version,
        changed: Option<(&Assumed, u64)>,
    ) -> Result<(f64, JobRecord), ReproError> {
        let mut what = Dynamics { steps: 1, stages: XmpPlan::STAGES, ..self.of(version, [4; 2]) };
        let (mut platform, mut shape) = (self.plan.platform.clone(), SMALL);
        let mut label = format!("{version}, blocks of 1024 nodes");
        if let Some((assumed, value)) = changed {
            label = format!("{label}, {} {}", assumed.name, assumed.readable(value));
            match assumed.name {
                CELL => what.cell = value,
                IMBALANCE => {
                    (what.imbalance, shape) = (value, Shape::new(&[16, 16]));
                    // The distance to the other end is half of that on 1024 nodes, so hops take
                    // twice as long.
                    let hop = platform.value("hop").map_or(0, |hop| 2 * hop);
                    platform = with(platform, "hop", hop);
                }
                name => platform = with(platform, name, value),
            }
        }
        // Barriers take longer with more nodes. It suffices to run one array once, since all arrays
        // take equally long unless ranks differ. If the changed constant does not affect barriers,
        // it suffices to run 16 nodes and to add the known difference.
        let alone = version.has_barriers() && what.imbalance == 0;
        let mut further = 0;
        if alone {
            (what.variables, what.stages) = (1, 1);
            let known = self.further.iter().find(|(of, _)| *of == version).map(|(_, further)| *further);
            match (changed, known) {
                (Some((assumed, _)), Some(known)) if !assumed.changes_barriers() => further = known,
                _ => shape = Shape::new(&[32, 32]),
            }
        }
        let what = small(what, shape);
        let setting = self.setting(version.machine(&platform), shape, 1);
        let (took, job) = self.job(label, setting, what)?;
        let picos = match alone {
            true => {
                let computed = took.all - took.exchanging;
                u64::from(XmpPlan::STAGES) * (computed + XmpPlan::VARIABLES as u64 * (took.exchanging + further))
            }
            false => took.all,
        };
        Ok((picos as f64 * 1e-12, job))
    }

    /// Compares the times of a version in which all nodes wait for each other, on 16 and on 1024
    /// nodes. Returns the record of the jobs.
    pub(super) fn distance(&mut self, version: Version) -> Result<JobRecord, ReproError> {
        let mut took = [0; 2];
        let mut jobs = Vec::with_capacity(2);
        for (shape, took) in [SMALL, Shape::new(&[32, 32])].into_iter().zip(&mut took) {
            let what = Dynamics { variables: 1, stages: 1, steps: 1, ..self.of(version, sides(shape)) };
            let setting = self.setting(version.machine(&self.plan.platform), shape, 1);
            let label = format!("{version}, one array, {} nodes", shape.nodes());
            let (one, job) = self.job(label, setting, small(what, shape))?;
            *took = one.exchanging;
            jobs.push(job);
        }
        self.further.push((version, took[1].saturating_sub(took[0])));
        Ok(joined(format!("{version}, one array, 16 and 1024 nodes"), &jobs))
    }

    /// Runs asynchronous reflects by RDMA under more ids than there are tags. Returns the ids that
    /// all ranks accept.
    pub(super) fn tags(&mut self) -> Result<(Vec<u64>, JobRecord), ReproError> {
        let shape = Shape::new(&[2, 2]);
        let grid = small(self.plan.dynamics(Library::Arrays(Transport::Barriers), sides(shape)), shape).grid;
        let setting = self.setting(Version::Rdma.machine(&self.plan.platform), shape, 1);
        let simulated =
            self.runner.run("ids of asynchronous reflects by RDMA".to_owned(), setting, &async |fabric| {
                accepted_ids(fabric, grid, 0..MORE_THAN_TAGS).await
            })?;
        let of_all = |id: &u64| simulated.outs.iter().all(|of| of.contains(id));
        Ok(((0..MORE_THAN_TAGS).filter(of_all).collect(), simulated.job))
    }

    pub(super) fn range(
        &mut self,
        assumed: &'static Assumed,
        defaults: &[(Version, f64)],
    ) -> Result<Swept, ReproError> {
        let default = Point { value: assumed.default(&self.plan.platform), times: defaults.to_vec() };
        let (mut points, mut jobs) = (vec![default], Vec::new());
        for value in assumed.values(&self.plan.platform) {
            let mut times = defaults.to_vec();
            for (version, time) in &mut times {
                if assumed.versions().contains(version) {
                    let (seconds, job) = self.swept(*version, Some((assumed, value)))?;
                    *time = seconds;
                    jobs.push(job);
                }
            }
            points.push(Point { value, times });
        }
        points.sort_by_key(|point| point.value);
        Ok(Swept { assumed, points, job: joined(format!("ranges: {}", assumed.name), &jobs) })
    }
}

/// Combines the records of several jobs into one.
fn joined(label: String, jobs: &[JobRecord]) -> JobRecord {
    let most = |of: fn(&JobRecord) -> u64| jobs.iter().map(of).max().unwrap_or(0);
    let cost = Cost {
        ranks: most(|job| job.cost.ranks),
        events: jobs.iter().map(|job| job.cost.events).sum(),
        cpu_seconds: jobs.iter().map(|job| job.cost.cpu_seconds).sum(),
        bytes_per_rank: most(|job| job.cost.bytes_per_rank),
        resident_bytes_per_rank: None,
    };
    JobRecord { label, cost, trace_hash: joint_hash(jobs), atomics: None, gets: None }
}

/// Returns the machine with another value of a constant, if it has that constant.
fn with(platform: Platform, name: &str, value: u64) -> Platform {
    platform.clone().with(name, value).unwrap_or(platform)
}

fn sides(shape: Shape) -> [u32; 2] {
    [shape.sides()[0], shape.sides()[1]]
}

/// Returns the same workload on a torus of this shape, with blocks of the same size as on 1024
/// nodes.
fn small(what: Dynamics, shape: Shape) -> Dynamics {
    let mut grid = XmpPlan::grid(sides(shape));
    grid.horizontal = grid.nodes.map(|nodes| nodes.get() * XmpPlan::HORIZONTAL / 32);
    Dynamics { grid, ..what }
}

#[cfg(test)]
mod tests;
