//! Running a simulated job.

use super::{Job, Plan};
use crate::{
    JobError,
    clock::{Chance, Clock},
    core::{Core, Machine},
    executor::Executor,
    faults::{FaultReport, Injector, Limits},
    huge_pages::HugeHeap,
    memory::NoStorage,
    network::{Network, NetworkModel},
    provider,
    ranks::Ranks,
    stats::{Counts, OpCounts, Stats},
    tasks::{self, Table, Tasks},
    timeline::Timeline,
    topology::Map,
    world::World,
};
use rdma_fabric::{Program, Time};
use std::{
    panic::{AssertUnwindSafe, catch_unwind, resume_unwind},
    rc::Rc,
};
use tofu2_job::available;

/// What a rank allocates for itself, in bytes; an estimate.
const RANK_HEAP: usize = 1 << 10;

/// The results of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Run<T> {
    /// The outputs of the ranks, by rank.
    pub outs: Vec<T>,
    /// Figures of the run.
    pub stats: Stats,
    /// The time at which each rank finished.
    pub finish_times: Vec<Time>,
    /// The operations of each rank, if [`Job::count_ops`] is on.
    pub ops_by_rank: Option<Vec<OpCounts>>,
    /// The activities of the run, if [`Job::timeline`] is on.
    pub timeline: Option<Timeline>,
    /// The outcome of the faults of [`Job::faults`], if any were set.
    pub faults: Option<FaultReport>,
}

/// The results of a job that may have lost ranks: the outputs of the ranks that succeeded, and the
/// first failure.
pub type PartialRun<T> = (Run<Option<T>>, Option<JobError>);

impl Job<'_> {
    /// Runs `program` on every rank.
    ///
    /// # Errors
    /// [`JobError::RankFailed`] or [`JobError::RankPanicked`] for the first rank that failed (the
    /// others run to completion, so that they can react), [`JobError::Deadlock`] when no event is
    /// left and ranks are waiting, [`JobError::Aborted`] when a rank aborts the job,
    /// [`JobError::Fabric`] for an invalid setting, [`JobError::Fault`] for a fault that refers to
    /// an item the job does not have, [`JobError::TooLittleMemory`].
    pub fn run<P: Program>(&self, program: &P) -> Result<Run<P::Out>, JobError> {
        match self.run_through(program)? {
            (_, Some(failure)) => Err(failure),
            (run, None) => Ok(run.whole()),
        }
    }

    /// Runs `program` on every rank of a job that may lose ranks on purpose. Returns the output of
    /// each rank that succeeded, and the first failure if there was one.
    ///
    /// # Errors
    /// [`JobError::Deadlock`], [`JobError::Aborted`], [`JobError::Fabric`], [`JobError::Fault`],
    /// [`JobError::TooLittleMemory`].
    pub fn run_through<P: Program>(&self, program: &P) -> Result<PartialRun<P::Out>, JobError> {
        let make = |fabric| program.run(fabric);
        let task_bytes = tasks::bytes(&make);
        let world = self.world(task_bytes)?;
        let _heap = HugeHeap::new((world.core().machine.ranks as usize).saturating_mul(RANK_HEAP));
        let (fabric, ranks) = (provider::fabrics(&world), world.core().machine.ranks);
        let mut tasks = Tasks::new(ranks, |rank| make(fabric(rank)));
        let (run, failure) = self.run_tasks(&world, &mut tasks, task_bytes)?;
        Ok((run.with_outs(|_| tasks.take_outs()), failure))
    }

    /// Creates the machine, before any rank starts.
    fn world(&self, task_bytes: usize) -> Result<Rc<World>, JobError> {
        let Plan { timing, ranks, nodes: used, topology } = self.plan()?;
        let engines = timing.engines;
        if let Some(faults) = &self.faults {
            faults.check(Limits { ranks, nodes: used, engines, queues: timing.queues_per_engine })?;
        }
        let map = Map::new(&topology);
        let nodes = topology.nodes();
        enough_memory(ranks, nodes, engines, self.count_ops, task_bytes)?;
        let (ranks_per_node, receive_engines) = (self.ranks_per_node, self.receive_engines);
        let machine = Machine { timing, map, ranks, ranks_per_node, receive_engines };
        let network = match self.network {
            NetworkModel::Latency => Network::default(),
            NetworkModel::Router => Network::routed(&machine, self.credits, self.arbiter),
        };
        let jitter = u64::try_from(self.jitter.as_nanos().saturating_mul(1000)).unwrap_or(u64::MAX / 4);
        let chance = Chance::new(self.seed, jitter.min(u64::MAX / 4), self.shuffle_ties);
        let timeline = self.timeline.map(|(limit, from)| Timeline::new(limit, from.as_picos(), ranks, ranks_per_node));
        Ok(World::new(Core::new(
            machine,
            Clock::new(self.queue, chance),
            network,
            nodes,
            Counts::new(ranks, self.count_ops),
            timeline.map(Box::new),
            Injector::new(self.faults.as_ref()),
        )))
    }

    /// Runs the tasks to their ends. They keep their outputs.
    fn run_tasks(
        &self,
        world: &Rc<World>,
        tasks: &mut dyn Table,
        task_bytes: usize,
    ) -> Result<(Run<()>, Option<JobError>), JobError> {
        let ranks = tasks.len();
        let mut progress = self.progress.borrow_mut();
        let progress = progress.as_mut().map(|(every, tell)| (*every, &mut **tell));
        let mut executor = Executor::new(Rc::clone(world), tasks, progress);
        // A failed allocation of storage ends the run, no matter where it happened.
        let failure = catch_unwind(AssertUnwindSafe(|| executor.run())).unwrap_or_else(|panic| {
            match panic.downcast::<NoStorage>() {
                Ok(refused) => Err(refused.into_error()),
                Err(panic) => resume_unwind(panic),
            }
        })?;
        let mut core = world.core();
        let stats = Stats {
            events: core.clock.events(),
            polls: executor.polls,
            end: executor.finish_times.iter().copied().max().unwrap_or_default(),
            trace_hash: core.clock.trace_hash(),
            ops: core.counts.all(),
            commands: core.queues.counts(),
            bytes_per_rank: Executor::bytes_per_rank(task_bytes)
                .saturating_add(Ranks::STATE_BYTES)
                .saturating_add(core.peak_bytes().div_ceil(ranks)),
        };
        let (ops_by_rank, timeline, faults) =
            (core.counts.take_by_rank(), core.timeline.take().map(|timeline| *timeline), core.injector.report());
        drop(core);
        let finish_times = std::mem::take(&mut executor.finish_times);
        Ok((Run { outs: Vec::new(), stats, finish_times, ops_by_rank, timeline, faults }, failure))
    }
}

/// Checks that there is enough memory for the initial needs of every rank and node: a table entry
/// for each, and a task for each rank.
fn enough_memory(ranks: u32, nodes: u32, engines: u32, counts: bool, task_bytes: usize) -> Result<(), JobError> {
    // The allocator's overhead for one allocation, in bytes.
    const OVERHEAD: usize = 16;
    let counted = if counts { size_of::<OpCounts>() } else { 0 };
    let per_rank = [Executor::bytes_per_rank(task_bytes), OVERHEAD, counted];
    let per_rank = per_rank.into_iter().fold(Ranks::BYTES_PER_RANK, usize::saturating_add);
    let per_node = Core::bytes_per_node(engines);
    let of_all = |many: u32, each: usize| u64::from(many).saturating_mul(each as u64);
    let needed = of_all(ranks, per_rank).saturating_add(of_all(nodes, per_node));
    available::check(needed, available::private_memory()).map_err(|left| JobError::TooLittleMemory {
        what: format!("{ranks} simulated ranks of {per_rank} bytes each on {nodes} nodes of {per_node}"),
        needed,
        available: left.amount,
        limit: left.limit,
    })
}

impl<T> Run<T> {
    fn with_outs<U>(self, change: impl FnOnce(Vec<T>) -> Vec<U>) -> Run<U> {
        let Run { outs, stats, finish_times, ops_by_rank, timeline, faults } = self;
        Run { outs: change(outs), stats, finish_times, ops_by_rank, timeline, faults }
    }
}

impl<T> Run<Option<T>> {
    /// Returns the run of a job whose ranks have all succeeded, so that each has an output.
    fn whole(self) -> Run<T> {
        self.with_outs(|outs| {
            let mut all = Vec::with_capacity(outs.len());
            for out in outs {
                all.push(out.expect("a rank that ended well has an output"));
            }
            all
        })
    }
}
