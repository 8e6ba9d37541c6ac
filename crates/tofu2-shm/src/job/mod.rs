//! One process's view of the state shared by all ranks of a job: the mapped segments and the
//! [`control`] block. [`holder`] determines the process of each rank, [`liveness`] covers the fate
//! of the ranks, [`abort`] the end of the whole job by one of them.

pub(crate) mod abort;
pub(crate) mod control;
#[cfg(target_os = "linux")]
pub(crate) mod holder;
mod liveness;

use super::{
    memory::{
        Mapping,
        adopted::Adopted,
        inside::{self, RegionId},
        layout,
    },
    queues::{
        config::QueueOptions,
        remote::{Payload, RemoteCommand},
    },
    waiting::doorbell,
};
pub(crate) use control::{Control, Plan, State};
use core::{sync::atomic::Ordering::Relaxed, time::Duration};
use rdma_fabric::{
    Existing, FabricError, Rank,
    provider::{KeepAlive, Place},
};
use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError},
    time::Instant,
};

#[cfg(target_os = "linux")]
use super::{
    part::internode::Internode,
    processes::{cross_copy::CrossPlace, peer_memory::PeerMemories},
};
#[cfg(target_os = "linux")]
use rdma_fabric::{RegionKey, RemoteAddr};

/// The mapped segments and the control block.
#[derive(Debug)]
pub(crate) struct Job {
    pub(crate) control: Control,
    pub(crate) plan: Plan,
    /// One per rank, in rank order.
    segments: Box<[Arc<Mapping>]>,
    /// The keep-alives that places in each segment keep alive, each created when the first place is
    /// resolved.
    keep_alives: Box<[OnceLock<KeepAlive>]>,
    /// The job's start.
    start: Instant,
    /// Whether there are more ranks than CPUs.
    pub(crate) oversubscribed: bool,
    /// The options of the job's control queues.
    pub(crate) queues: QueueOptions,
    /// Existing buffers that this process registered, by rank and place in the region table.
    adopted: Mutex<HashMap<(Rank, u32), Arc<Adopted>>>,
    /// The access of the ranks' processes to each other's own memory; `None` if ranks are threads,
    /// and in a launcher.
    #[cfg(target_os = "linux")]
    peers: Option<PeerMemories>,
    /// The connection to the ranks of other nodes, if there are any.
    #[cfg(target_os = "linux")]
    internode: Option<Internode>,
}

impl Job {
    /// Returns a job whose ranks are threads of this process.
    #[cfg(test)]
    pub(crate) fn of_threads(plan: Plan) -> Result<Arc<Self>, FabricError> {
        Self::of_threads_with(plan, QueueOptions::default())
    }

    /// Creates a job whose ranks are threads of this process, with these options for control
    /// queues.
    pub(crate) fn of_threads_with(plan: Plan, queues: QueueOptions) -> Result<Arc<Self>, FabricError> {
        let bytes = plan.control_bytes();
        let control = Control::create(Mapping::in_process(bytes, bytes)?, &plan);
        control.word(layout::QUEUE_OPTIONS).store(queues.to_bits()?, Relaxed);
        let segments = (0..plan.ranks)
            .map(|_| Mapping::in_process(plan.segment_bytes(), layout::HEAP))
            .collect::<Result<Box<[_]>, _>>()?;
        Ok(Arc::new(Self::new(control, plan, segments, Instant::now())))
    }

    /// Creates a job over these mappings.
    pub(crate) fn new(control: Control, plan: Plan, segments: Box<[Arc<Mapping>]>, start: Instant) -> Self {
        if !doorbell::register_process() {
            control.word(layout::NO_HEAVY_BARRIER).store(1, Relaxed);
        }
        let oversubscribed = control.word(layout::OVERSUBSCRIBED).load(Relaxed) != 0;
        let queues = QueueOptions::from_bits(control.word(layout::QUEUE_OPTIONS).load(Relaxed));
        segments.iter().enumerate().for_each(|(rank, segment)| control.show_parked(rank, segment));
        let keep_alives = segments.iter().map(|_| OnceLock::new()).collect();
        Job {
            control,
            plan,
            segments,
            keep_alives,
            start,
            oversubscribed,
            queues,
            adopted: Mutex::default(),
            #[cfg(target_os = "linux")]
            peers: None,
            #[cfg(target_os = "linux")]
            internode: None,
        }
    }

    /// Makes the job's ranks processes, which access each other's own memory through `peers`.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_processes(self, peers: PeerMemories) -> Self {
        Job { peers: Some(peers), ..self }
    }

    /// Turns the job into a node's part of a job that runs on several nodes.
    #[cfg(target_os = "linux")]
    pub(crate) fn of_part(self, internode: Internode) -> Self {
        Job { internode: Some(internode), ..self }
    }

    /// Returns the connection to the ranks of other nodes, if there may be any.
    #[cfg(target_os = "linux")]
    pub(crate) fn internode(&self) -> Option<&Internode> {
        self.internode.as_ref()
    }

    /// Returns whether the job is a node's part of a job that runs on several nodes.
    pub(crate) fn is_part(&self) -> bool {
        #[cfg(target_os = "linux")]
        return self.internode.is_some();
        #[cfg(not(target_os = "linux"))]
        false
    }

    /// Returns whether a rank runs on another node.
    #[inline]
    pub(crate) fn is_remote(&self, rank: Rank) -> bool {
        #[cfg(target_os = "linux")]
        if let Some(internode) = &self.internode {
            return internode.has(rank);
        }
        let _ = rank;
        false
    }

    /// Returns the number of ranks that run on this machine.
    pub(crate) fn ranks_here(&self) -> usize {
        #[cfg(target_os = "linux")]
        if self.internode.is_some() {
            return (0..self.plan.ranks).filter(|rank| !self.is_remote(Rank::new(*rank as u32))).count();
        }
        self.plan.ranks
    }

    /// Returns the first rank of a rank's node; `None` if there is no such rank on this node.
    pub(crate) fn first_of_node(&self, rank: Rank) -> Option<Rank> {
        #[cfg(target_os = "linux")]
        if let Some(internode) = &self.internode {
            return internode.first_here();
        }
        let first = rank.index() / self.plan.ranks_per_node * self.plan.ranks_per_node;
        (first < self.plan.ranks).then_some(Rank::new(first as u32))
    }

    /// Returns the maximum number of bytes sent with a command to another node; `None` if there is
    /// no connection that sends commands.
    pub(crate) fn most_inline(&self) -> Option<usize> {
        #[cfg(target_os = "linux")]
        if let Some(internode) = &self.internode {
            return internode.most_inline();
        }
        None
    }

    /// Passes a command to the layer that connects the nodes.
    pub(crate) fn carry(&self, command: RemoteCommand, payload: Payload) {
        #[cfg(target_os = "linux")]
        if let Some(internode) = &self.internode {
            return internode.carry(command, payload);
        }
        // Without other nodes, no rank is far.
        let _ = (command, payload);
    }

    /// Makes some progress on transfers between nodes, for a thread that waits for them.
    pub(crate) fn work_between_nodes(&self) {
        #[cfg(target_os = "linux")]
        if let Some(internode) = &self.internode {
            internode.work();
        }
    }

    /// Returns the keep-alive that places in a rank's segment keep alive.
    pub(crate) fn keep_alive(&self, rank: Rank) -> Result<&KeepAlive, FabricError> {
        let segment = self.segment(rank)?;
        let missing = FabricError::NoSuchRank { rank, ranks: self.plan.ranks };
        Ok(self.keep_alives.get(rank.index()).ok_or(missing)?.get_or_init(|| KeepAlive::new(segment.clone())))
    }

    /// Returns the segment in which this job resolved a place; `None` for any other place.
    #[inline(always)]
    pub(crate) fn segment_with(&self, place: &Place) -> Option<&Arc<Mapping>> {
        let rank = place.rank().index();
        let keep_alive = self.keep_alives.get(rank).and_then(OnceLock::get)?;
        place.has_keep_alive(keep_alive).then(|| self.segments.get(rank)).flatten()
    }

    /// Returns the best access method for memory that existed before it was registered.
    pub(crate) fn existing(&self) -> Existing {
        #[cfg(target_os = "linux")]
        if let Some(peers) = &self.peers {
            return if peers.is_possible() { Existing::CrossCopy } else { Existing::Staged };
        }
        #[cfg(target_os = "linux")]
        if self.internode.is_some() {
            return Existing::Staged;
        }
        Existing::Direct
    }

    /// Returns the buffers that this process registered, by rank and place in the region table.
    pub(crate) fn adopted(&self) -> MutexGuard<'_, HashMap<(Rank, u32), Arc<Adopted>>> {
        self.adopted.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Offers the memory at `address` of this process, about to be registered as `key`, to the
    /// other processes.
    #[cfg(target_os = "linux")]
    pub(crate) fn offer(&self, key: RegionKey, address: u64, len: usize) -> Result<(), FabricError> {
        let unsupported = FabricError::Unsupported { feature: &"cross-memory copies" };
        self.peers.as_ref().ok_or(unsupported)?.offer(key, address, len)
    }

    /// Resolves bytes of another process's own memory.
    #[cfg(target_os = "linux")]
    pub(crate) fn cross(
        &self,
        addr: RemoteAddr,
        len: usize,
        align: usize,
        region_len: usize,
    ) -> Result<CrossPlace, FabricError> {
        let unsupported = FabricError::Unsupported { feature: &"cross-memory copies" };
        let peers = self.peers.as_ref().ok_or(unsupported)?;
        let resolved = peers.resolve(self.segment(addr.rank)?, addr, len, align, region_len);
        resolved.map_err(|error| self.unreached(error, addr.region))
    }

    /// Returns whether any rank of this node has announced an operation inside the region. Operations
    /// of ranks that have ended don't count.
    pub(crate) fn is_inside(&self, id: RegionId) -> bool {
        let inside = |(rank, segment): (usize, &Arc<Mapping>)| {
            !segment.is_absent() && inside::names(segment.announcements(), id) && !self.control.has_ended(rank)
        };
        self.segments.iter().enumerate().any(inside)
    }

    /// Returns the segment of a rank of the job.
    #[inline]
    pub(crate) fn segment_of(&self, rank: Rank) -> Option<&Arc<Mapping>> {
        self.segments.get(rank.index())
    }

    pub(crate) fn segment(&self, rank: Rank) -> Result<&Arc<Mapping>, FabricError> {
        self.segment_of(rank).ok_or(FabricError::NoSuchRank { rank, ranks: self.plan.ranks })
    }

    pub(crate) fn start(&self) -> Instant {
        self.start
    }

    /// Returns the longest time a rank stays parked without checking again.
    pub(crate) fn longest_park(&self) -> Duration {
        let heavy_barrier = self.control.heavy_barrier();
        let longest = doorbell::longest_park(heavy_barrier);
        if !heavy_barrier {
            return longest;
        }
        // A bound that is only a safety net must not keep a thousand idle ranks busy: all ranks
        // together check five thousand times a second.
        longest.max(Duration::from_micros(200).saturating_mul(self.plan.ranks as u32)).min(Duration::from_millis(500))
    }

    /// Returns the longest time that a task of a foreign executor sleeps without checking again.
    /// Checks cost more there, and the bound matters only without a heavy barrier.
    pub(crate) fn longest_sleep(&self) -> Duration {
        if self.control.heavy_barrier() { Duration::from_millis(500) } else { self.longest_park() }
    }
}
