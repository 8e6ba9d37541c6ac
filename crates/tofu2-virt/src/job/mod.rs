//! Setup of a simulated job and placement of its ranks.

#![deny(clippy::arithmetic_side_effects)]

mod run;

pub use run::{PartialRun, Run};

use super::{
    clock::QueueKind,
    executor::Progress,
    faults::Faults,
    network::{Arbiter, NetworkModel},
    platform::{MOST_ENGINES, Platform, Timing},
    topology::{Choice, Crossbar, Fold, Folding, MAX_NODES, Path, Paths, Placement, Route, TofuShape, Topology, Torus},
};
use rdma_fabric::{FabricError, Rank, Time};
use std::{cell::RefCell, fmt, time::Duration};

/// A simulated job: machine, size, placement, network and options. [`Job::run`] runs a program on
/// it.
///
/// Ranks are placed in blocks: rank `r` is on node `r / ranks_per_node`, and the node number gives
/// its place in the torus, or in the [`Folding`] of a [`TofuShape`]. The `l`-th rank of a node
/// sends through engine `l` modulo the number of engines.
///
/// The same job and program give the same run, event by event, on every machine.
pub struct Job<'a> {
    platform: Platform,
    ranks: usize,
    ranks_per_node: u32,
    shape: Option<Shape>,
    folding: Folding,
    paths: Paths,
    network: NetworkModel,
    arbiter: Arbiter,
    credits: u16,
    receive_engines: u32,
    seed: u64,
    jitter: Duration,
    shuffle_ties: bool,
    queue: QueueKind,
    count_ops: bool,
    timeline: Option<(usize, Time)>,
    faults: Option<Faults>,
    progress: RefCell<Option<(u64, Box<Progress<'a>>)>>,
}

impl fmt::Debug for Job<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Job")
            .field("platform", &self.platform.name())
            .field("ranks", &self.ranks)
            .field("ranks_per_node", &self.ranks_per_node)
            .field("shape", &self.shape)
            .field("network", &self.network)
            .finish_non_exhaustive()
    }
}

/// The network as specified by the caller.
#[derive(Debug)]
enum Shape {
    Torus(Torus),
    Tofu(TofuShape),
    Crossbar(Crossbar),
}

impl<'a> Job<'a> {
    /// Creates a job of `ranks` ranks on a machine, one per node, with a latency-only network that
    /// is a torus as close to a cube as possible, or rows of crossbars if the machine has
    /// crossbars.
    pub fn new(platform: &Platform, ranks: usize) -> Self {
        Job {
            platform: platform.clone(),
            ranks,
            ranks_per_node: 1,
            shape: None,
            folding: Folding::default(),
            paths: Paths::default(),
            network: NetworkModel::default(),
            arbiter: Arbiter::default(),
            credits: 4,
            receive_engines: 1,
            seed: 0,
            jitter: Duration::ZERO,
            shuffle_ties: false,
            queue: QueueKind::default(),
            count_ops: false,
            timeline: None,
            faults: None,
            progress: RefCell::new(None),
        }
    }

    /// Sets the number of ranks per node; 1 by default.
    #[must_use]
    pub fn ranks_per_node(mut self, ranks_per_node: u32) -> Self {
        self.ranks_per_node = ranks_per_node;
        self
    }

    /// Makes the network a plain torus, which may have more nodes than the job needs. Replaces a
    /// [`Job::shape`] or [`Job::crossbar`].
    #[must_use]
    pub fn torus(mut self, torus: Torus) -> Self {
        self.shape = Some(Shape::Torus(torus));
        self
    }

    /// Makes the network Tofu's groups, with Tofu's routes; it may have more nodes than the job
    /// needs. Replaces a [`Job::torus`] or [`Job::crossbar`].
    #[must_use]
    pub fn shape(mut self, shape: TofuShape) -> Self {
        self.shape = Some(Shape::Tofu(shape));
        self
    }

    /// Makes the network crossbars, which may join more nodes than the job needs. Replaces a
    /// [`Job::torus`] or [`Job::shape`].
    #[must_use]
    pub fn crossbar(mut self, crossbar: Crossbar) -> Self {
        self.shape = Some(Shape::Crossbar(crossbar));
        self
    }

    /// Sets the order in which ranks take the nodes of the [`Job::shape`]; by default, node-number
    /// order.
    #[must_use]
    pub fn folding(mut self, folding: Folding) -> Self {
        self.folding = folding;
        self
    }

    /// Sets the paths by which messages travel through the [`Job::shape`]; by default, the
    /// shortest.
    #[must_use]
    pub fn paths(mut self, paths: Paths) -> Self {
        self.paths = paths;
        self
    }

    /// Sets the network model; by default, latencies only.
    #[must_use]
    pub fn network(mut self, network: NetworkModel) -> Self {
        self.network = network;
        self
    }

    /// Sets how routers choose between packets.
    #[must_use]
    pub fn arbiter(mut self, arbiter: Arbiter) -> Self {
        self.arbiter = arbiter;
        self
    }

    /// Sets the number of packets that a virtual channel of a router's link port holds; at least 1.
    /// The default of 4 is an assumption.
    #[must_use]
    pub fn credits(mut self, credits: u16) -> Self {
        self.credits = credits;
        self
    }

    /// Distributes messages that arrive at a node over `engines` receive engines, by the sender's
    /// index on its own node. By default, all messages arrive at engine 0.
    #[must_use]
    pub fn receive_tnis(mut self, engines: u32) -> Self {
        self.receive_engines = engines;
        self
    }

    /// Sets the seed of jitter and tie shuffling.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.seed = seed;
        self
    }

    /// Adds a random latency of up to `longest` to each leg of an operation. Messages then keep
    /// their order only where the contract guarantees it, which is another way to explore
    /// schedules.
    #[must_use]
    pub fn jitter(mut self, longest: Duration) -> Self {
        self.jitter = longest;
        self
    }

    /// Handles simultaneous events in random order.
    #[must_use]
    pub fn shuffle_ties(mut self, shuffle: bool) -> Self {
        self.shuffle_ties = shuffle;
        self
    }

    /// Sets the event queue to use. This does not change the run.
    #[must_use]
    pub fn queue(mut self, queue: QueueKind) -> Self {
        self.queue = queue;
        self
    }

    /// Sets whether operations are also counted per rank ([`Run::ops_by_rank`]).
    #[must_use]
    pub fn count_ops(mut self, count: bool) -> Self {
        self.count_ops = count;
        self
    }

    /// Records the run's activities from `from` on, up to `limit` entries of about 60 bytes each.
    /// This does not change the run.
    #[must_use]
    pub fn timeline(mut self, limit: usize, from: Time) -> Self {
        self.timeline = Some((limit, from));
        self
    }

    /// Injects faults. [`Job::run_through`] returns the outputs of the remaining ranks.
    #[must_use]
    pub fn faults(mut self, faults: Faults) -> Self {
        self.faults = Some(faults);
        self
    }

    /// Calls the given function with the number of events and the virtual time, once per `every`
    /// events.
    #[must_use]
    pub fn progress(self, every: u64, tell: impl FnMut(u64, Time) + 'a) -> Self {
        *self.progress.borrow_mut() = Some((every.max(1), Box::new(tell)));
        self
    }

    /// Returns the number of links (or crossbars) on the route of the job's messages from rank `a`
    /// to rank `b`.
    ///
    /// # Errors
    /// [`FabricError::Setting`], [`FabricError::NoSuchRank`].
    #[expect(clippy::arithmetic_side_effects, reason = "a plan has ranks on each node")]
    pub fn hops(&self, a: Rank, b: Rank) -> Result<u32, FabricError> {
        let plan = self.plan()?;
        if let Some(&rank) = [a, b].iter().find(|rank| rank.index() >= self.ranks) {
            return Err(FabricError::NoSuchRank { rank, ranks: self.ranks });
        }
        let [from, to] = [a, b].map(|rank| rank.number() / self.ranks_per_node);
        match &plan.topology {
            Topology::Torus(torus) => Ok(torus.hops(from, to)),
            Topology::Crossbar(crossbar) => Ok(crossbar.hops(from, to)),
            Topology::Tofu(..) => self.placed(plan)?.hops(a, b, None),
        }
    }

    /// Returns the links between the nodes of two ranks, along `path` or the path that the job's
    /// messages take. For many routes, call [`Job::placement`] once.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`]; [`FabricError::Setting`] for a path that the shape does not
    /// have, or without a [`Job::shape`].
    pub fn route(&self, a: Rank, b: Rank, path: Option<Path>) -> Result<Route, FabricError> {
        self.placement()?.route(a, b, path)
    }

    /// Returns the positions of the ranks in the [`Job::shape`].
    ///
    /// # Errors
    /// [`FabricError::Setting`] for an invalid setting, or without a [`Job::shape`].
    pub fn placement(&self) -> Result<Placement, FabricError> {
        self.placed(self.plan()?)
    }

    fn placed(&self, plan: Plan) -> Result<Placement, FabricError> {
        match plan.topology {
            Topology::Tofu(fold, choice) => Ok(Placement::new(fold, choice, plan.ranks, self.ranks_per_node)),
            other => Err(FabricError::setting("shape", format!("the job's network is {other}; give it a Tofu shape"))),
        }
    }

    fn plan(&self) -> Result<Plan, FabricError> {
        let wrong = |name, problem: String| Err(FabricError::setting(name, problem));
        let timing = Timing::new(&self.platform, self.receive_engines)?;
        let ranks = match u32::try_from(self.ranks) {
            Ok(ranks) if ranks > 0 && ranks < u32::MAX => ranks,
            _ => return wrong("ranks", format!("{}; 1 to {} are possible", self.ranks, u32::MAX - 1)),
        };
        let queues = timing.engines.saturating_mul(timing.queues_per_engine);
        if self.ranks_per_node == 0 || self.ranks_per_node > queues {
            return wrong("ranks_per_node", format!("{}; a node has {queues} control queues", self.ranks_per_node));
        }
        if timing.engines > MOST_ENGINES {
            return wrong("platform constant", format!("engines is {}, more than {MOST_ENGINES}", timing.engines));
        }
        if self.receive_engines == 0 || self.receive_engines > timing.engines {
            return wrong("receive_tnis", format!("{}; a node has {}", self.receive_engines, timing.engines));
        }
        let nodes = ranks.div_ceil(self.ranks_per_node);
        if nodes > MAX_NODES {
            return wrong("ranks", format!("{ranks} ranks need {nodes} nodes; {MAX_NODES} are possible"));
        }
        let topology = match &self.shape {
            Some(Shape::Tofu(shape)) => {
                Topology::Tofu(Fold::new(*shape, self.folding), Choice::new(shape, self.paths)?)
            }
            _ if self.folding != Folding::default() => {
                return wrong("folding", format!("{:?} folds a Tofu shape; the job has none", self.folding));
            }
            _ if self.paths != Paths::default() => {
                return wrong("paths", format!("{:?} lead through a Tofu shape; the job has none", self.paths));
            }
            Some(Shape::Torus(torus)) => Topology::Torus(torus.clone()),
            Some(Shape::Crossbar(crossbar)) => Topology::Crossbar(*crossbar),
            None => match timing.crossbar_row {
                Some(row) => Topology::Crossbar(Crossbar::new(row.min(nodes), nodes.div_ceil(row))?),
                None => Topology::Torus(Torus::auto(nodes)),
            },
        };
        let available = topology.nodes();
        if available < nodes || available > MAX_NODES {
            return wrong("topology", format!("{topology} has {available} nodes, the job needs {nodes}"));
        }
        Ok(Plan { timing, ranks, nodes, topology })
    }
}

/// A job's settings, checked.
struct Plan {
    timing: Timing,
    ranks: u32,
    /// The number of nodes that the ranks need.
    nodes: u32,
    topology: Topology,
}
