//! A node's part of a job that runs on several nodes, for providers that move bytes between nodes.
//!
//! The ranks of a node use shared memory as in a job of one node. The node's control block has a
//! control record for every rank of the job, so that waits, losses and symmetric allocations cover
//! all of them; only the segments of ranks on other nodes are missing. The layer that connects the
//! nodes reports to the [`Part`] which ranks have left or are lost, and the control records that
//! they publish when all ranks allocate together. It also executes the operations that ranks of
//! other nodes request in memory of this node.

mod commands;
mod cpus;
mod deadlock;
mod exit;
mod file;
mod gates;
mod heap;
pub(crate) mod internode;
#[cfg(test)]
mod tests;

pub use super::{
    processes::{launcher::NO_HANDLERS, rank_process::SignalName, signals::Signals},
    waiting::block_on::gets_on,
};
pub use crate::processes::oom_kills::OomKills;
pub use commands::{Executed, Payload, RemoteCommand, RemoteReply};
pub use cpus::bind_this_thread;
pub use deadlock::Waiting;
pub use heap::Heap;
pub use internode::ControlRecord;

use super::{
    admission,
    endpoint::Endpoint,
    job::State,
    memory::{
        adopted, layout,
        place::{self, LocatedPlace},
        regions::{self, RegionKind, Resolved},
    },
};
use crate::JobError;
use core::{fmt, ops::Range, sync::atomic::Ordering::Relaxed, time::Duration};
use rdma_fabric::{
    Deps, Fabric, FabricError, Program, ProgramResult, Rank, Region, RegionKey, RemoteAddr, Result, provider::Place,
};
use std::sync::Arc;

/// Checks that this machine has room for `ranks` processes that a launcher is about to start, with
/// `threads` threads and `descriptors` open files of the launcher for each. Takes no resources.
///
/// # Errors
/// [`JobError::TooManyRanks`].
pub fn check_room(ranks: usize, threads: u64, descriptors: u64) -> Result<(), JobError> {
    admission::of_part_processes(ranks, threads, descriptors)
}

/// The parameters that the ranks of a node agree on before they share memory.
#[derive(Clone, Debug)]
pub struct PartPlan {
    /// Ranks of the whole job.
    pub ranks: usize,
    /// The ranks of this node, in order.
    pub local: Vec<Rank>,
    /// This process's rank.
    pub me: Rank,
    /// Bytes that each rank can register, the same on all nodes.
    pub segment_bytes: usize,
    /// Time since the job started.
    pub age: Duration,
    /// Whether the machine has fewer CPUs than ranks.
    pub oversubscribed: bool,
}

/// A rank's share in its node's part of a job. Clones are the same rank.
#[derive(Clone)]
pub struct Part {
    endpoint: Endpoint,
    local: Arc<[Rank]>,
}

/// The handles that may resolve a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lock {
    /// All handles.
    Open,
    /// The handles that allocated it together.
    Ring,
    /// Handles whose access policy has these terms.
    Terms([u64; 3]),
}

/// The position of a registered region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Located {
    /// Offset of its first byte in the heap.
    pub at: u64,
    /// Its length in bytes.
    pub len: u64,
    /// The handles that may resolve it.
    pub lock: Lock,
}

/// The state of a rank in its job.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// The rank runs, or has not started.
    Running,
    /// The rank has left the job.
    Left,
    /// The rank is lost.
    Lost,
}

impl fmt::Debug for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Part({:?}, {} of its node)", self.endpoint, self.local.len())
    }
}

impl Part {
    /// Becomes the first rank of the node: creates its memory, and hands it to the node's other
    /// ranks, which [`Part::join`] with the same `number` and `secret`. At any time, each part on a
    /// machine must have a different number.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for a plan that makes no job, [`FabricError::System`].
    pub fn lead(plan: &PartPlan, number: u64, secret: u64) -> Result<Self> {
        let endpoint = file::lead(plan, number, secret)?;
        Ok(Part { endpoint, local: plan.local.clone().into() })
    }

    /// Becomes another rank of the node. The first must have begun to [`Part::lead`], or do so within
    /// 20 s.
    ///
    /// # Errors
    /// As [`Part::lead`]; [`FabricError::RankTaken`], [`FabricError::Corrupt`].
    pub fn join(plan: &PartPlan, number: u64, secret: u64) -> Result<Self> {
        Self::join_while(plan, number, secret, &|| Ok(()))
    }

    /// Does the same, and gives up with the first error of `goes_on`, which is called every few
    /// milliseconds: the node's first rank may have ended before it made the memory.
    ///
    /// # Errors
    /// As [`Part::join`], and those of `goes_on`.
    pub fn join_while(plan: &PartPlan, number: u64, secret: u64, goes_on: &dyn Fn() -> Result<()>) -> Result<Self> {
        let endpoint = file::join(plan, number, secret, goes_on)?;
        Ok(Part { endpoint, local: plan.local.clone().into() })
    }

    /// Returns the rank's access to its node. It resolves memory of the node's ranks only.
    pub fn fabric(&self) -> Fabric {
        self.endpoint.clone().fabric()
    }

    /// Returns the ranks of the node, in order.
    pub fn local(&self) -> &[Rank] {
        &self.local
    }

    /// Returns the heap of the rank's segment.
    pub fn heap(&self) -> Heap {
        Heap::of(self.endpoint.kept_segment())
    }

    /// Returns the position of a registered region of this rank.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRegion`], [`FabricError::StaleRegion`]; [`FabricError::Unsupported`] for
    /// memory outside the segment.
    pub fn locate(&self, region: RegionKey) -> Result<Located> {
        let (me, segment) = (self.endpoint.me(), self.endpoint.segment());
        let (at, len, kind) = regions::entry(segment, me, region)?;
        let lock = match kind {
            RegionKind::Heap | RegionKind::Staged | RegionKind::Program => Lock::Open,
            RegionKind::Locked => Lock::Ring,
            RegionKind::Policy => Lock::Terms(regions::terms(segment, at)),
            RegionKind::Queue => return Err(FabricError::NoSuchRegion { rank: me, region }),
            RegionKind::Adopted => return Err(FabricError::Unsupported { feature: &"memory outside the segment" }),
        };
        Ok(Located { at: at as u64, len: len as u64, lock })
    }

    /// Returns whether a place was resolved by a rank of this node, in this job.
    pub fn has_resolved(&self, place: &Place) -> bool {
        LocatedPlace::of(self.endpoint.job(), place).is_ok()
    }

    /// Returns a place of this rank for operations of ranks of other nodes, which have checked that
    /// they may resolve it.
    ///
    /// # Errors
    /// Those of [`Fabric::remote_span`](rdma_fabric::Fabric::remote_span).
    pub fn place(&self, region: RegionKey, offset: u64, len: usize, align: usize) -> Result<Place> {
        let (rank, job) = (self.endpoint.me(), self.endpoint.job());
        let addr = RemoteAddr { rank, region, offset };
        match regions::resolve(job.segment(rank)?, addr, len, align, |_, _| true)? {
            Resolved::Heap(piece) => {
                let corrupt = FabricError::Corrupt { rank, what: &"an entry of the region table" };
                piece.place(addr, job.keep_alive(rank)?).ok_or(corrupt)
            }
            Resolved::Staged(piece) => Ok(place::outside_of(job.segment(rank)?, addr, adopted::Outside::Staged(piece))),
            Resolved::Adopted { .. } => Err(FabricError::Unsupported { feature: &"memory outside the segment" }),
        }
    }

    /// Queues a notice of `from`, a rank of another node, about a put that ended `end` bytes behind
    /// the start of a region of this rank. Returns whether there was room.
    ///
    /// # Errors
    /// [`FabricError::Corrupt`].
    pub fn notify(&self, from: Rank, data: u64, region: RegionKey, end: u64) -> Result<bool> {
        self.endpoint.notify_for(from, data, region, end)
    }

    /// Returns the state of a rank.
    pub fn fate(&self, rank: Rank) -> Fate {
        match self.endpoint.job().control.state(rank.index()) {
            State::Starting | State::Running => Fate::Running,
            State::Left => Fate::Left,
            State::Lost => Fate::Lost,
        }
    }

    /// Returns whether a rank has aborted the job.
    pub fn is_aborted(&self) -> bool {
        self.endpoint.job().aborted().is_some()
    }

    /// Returns the process of a rank of this node in the system, once the rank has attached.
    pub fn process_of(&self, rank: Rank) -> Option<u32> {
        let job = self.endpoint.job();
        if rank.index() >= job.plan.ranks {
            return None;
        }
        // Set before the state, which is read first.
        let has_attached = job.control.state(rank.index()) != State::Starting;
        let process = job.control.control_record(rank.index(), layout::RECORD_PROCESS).load(Relaxed);
        u32::try_from(process).ok().filter(|&process| has_attached && process != 0)
    }

    /// Records that a rank has left its job.
    pub fn left(&self, rank: Rank) {
        self.endpoint.job().publish(rank, State::Left);
    }

    /// Records that ranks are lost. If their processes have `ended`, no rank waits for operations
    /// that they began in this node's memory.
    pub fn lost(&self, ranks: &[Rank], ended: bool) {
        let job = self.endpoint.job();
        for &rank in ranks {
            if ended && rank.index() < job.plan.ranks {
                job.control.set_ended(rank.index());
            }
            job.publish(rank, State::Lost);
            if ended && rank.index() < job.plan.ranks {
                job.gone(rank);
            }
        }
    }

    /// Returns [`JobError::Aborted`] if a rank of this node has aborted the job, or an abort was
    /// reported through [`Part::aborted`].
    pub fn abort(&self) -> Option<JobError> {
        self.endpoint.job().aborted()
    }

    /// Records that a rank has aborted the job.
    pub fn aborted(&self, rank: Rank, text: &str, code: i32) {
        self.endpoint.job().abort(rank, text, code);
    }

    /// Returns the reason why an operation on a rank's memory fails; `None` if the rank is not lost
    /// and the job is not aborted.
    pub fn objection(&self, rank: Rank) -> Option<FabricError> {
        let job = self.endpoint.job();
        if let Err(error) = job.control.not_aborted() {
            return Some(error);
        }
        job.is_lost(rank).then(|| job.loss_of(rank))
    }

    /// Checks that a wait for `deps` can still succeed.
    ///
    /// # Errors
    /// [`FabricError::PeerLost`], [`FabricError::PeersLeft`], [`FabricError::Aborted`],
    /// [`FabricError::HelperFailed`].
    pub fn outlook(&self, deps: &Deps<'_>) -> Result<()> {
        self.endpoint.outlook(deps)
    }

    /// Sets the function that sends the control records that this rank publishes when all ranks
    /// allocate together. Only the first call has an effect.
    pub fn on_control_record(&self, tell: impl Fn(ControlRecord) + Send + Sync + 'static) {
        if let Some(internode) = self.endpoint.job().internode() {
            internode.set(Box::new(tell));
        }
    }

    /// Sets the function that drops a region that no program owns because the future that allocated
    /// it was dropped, though ranks of other nodes may know it. Only the first call has an effect.
    pub fn on_discard(&self, discard: impl Fn(Region) + Send + Sync + 'static) {
        if let Some(internode) = self.endpoint.job().internode() {
            internode.set_discard(Box::new(discard));
        }
    }

    /// Sets the function that registers a range of the heap with the network between nodes, before
    /// a region has these bytes. It is called under the lock of the rank's allocator; if it fails,
    /// so does the allocation, on all ranks if they allocate together.
    pub fn on_export(&self, export: impl Fn(Range<usize>) -> Result<()> + Send + Sync + 'static) {
        let export = move |offset: usize, len: usize| export(offset..offset.saturating_add(len));
        self.endpoint.allocator().exporter.set(Box::new(export));
    }

    /// Records a control record that a rank of another node has published when all ranks allocate
    /// together. One rank of the node does this for all ranks, in the order in which the control
    /// records were published.
    ///
    /// # Errors
    /// [`FabricError::NoSuchRank`].
    pub fn control_record(&self, rank: Rank, control_record: &ControlRecord) -> Result<()> {
        self.endpoint.job().arrived(rank, control_record)
    }

    /// Returns whether a handle below, one of this rank's, opens a region with this lock.
    pub fn opens(below: &Fabric, region: RegionKey, lock: Lock) -> bool {
        let ring = Endpoint::of(below).and_then(Endpoint::keyring);
        match lock {
            Lock::Open => true,
            Lock::Ring => ring.is_some_and(|ring| ring.opens(region)),
            Lock::Terms(terms) => ring.is_some_and(|ring| ring.local_terms() == terms),
        }
    }

    /// Runs `program` as this rank over `fabric`, which is layered over [`Part::fabric`], and then
    /// its helpers until they finish. Other code does not use the program's fabric. The outcome of
    /// the rank is published on this node.
    ///
    /// # Errors
    /// [`JobError::RankFailed`], [`JobError::RankPanicked`].
    pub fn run<P: Program>(&self, fabric: Fabric, program: &P) -> Result<P::Out, JobError> {
        self.endpoint.seal();
        self.run_with(fabric, |fabric| super::block_on(program.run(fabric)))
    }

    /// Calls `rank` on this thread as this rank, as [`Part::run`] does, for a rank that runs futures
    /// its own way.
    ///
    /// # Errors
    /// As [`Part::run`].
    pub fn run_with<T>(&self, fabric: Fabric, rank: impl FnOnce(Fabric) -> ProgramResult<T>) -> Result<T, JobError> {
        super::threads::ended(&self.endpoint, || rank(fabric))
    }
}
