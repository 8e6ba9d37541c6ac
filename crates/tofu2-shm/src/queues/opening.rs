//! Opening of queues, and management of the node's control queues, from which they are taken.

use super::{
    config::{Geometry, MOST_DEPTH},
    own::OwnSession,
    queue::{Open, Queue},
    remote::RemoteCommands,
    view::{CONFIG, SCHEDULED, TAGS, View, directory_at},
};
use crate::{
    QueueMachine,
    endpoint::Endpoint,
    job::Job,
    memory::{Mapping, allocator::RegisteredExtent, layout, regions::RegionKind},
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{AcqRel, Acquire, Relaxed, Release},
};
use rdma_fabric::{
    Rank, Result,
    control_queue::{QueueError, QueueId, QueueLimits, QueueMode, QueueSpec},
    provider::{self, Queues},
};
use std::sync::Arc;

impl Queues for Endpoint {
    /// Returns the limits of queues. The ranks of a node share its control queues, so
    /// [`QueueLimits::free`] counts those of the node.
    fn limits(&self) -> QueueLimits {
        let options = self.job().queues;
        let free = self.own_queues().node(self.job(), self.me()).map_or(0, |node| node.free());
        let mut limits = self.own_queues().machine(self.job()).limits(free, options.shared_address_space);
        limits.most_depth = MOST_DEPTH;
        limits
    }

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn provider::Queue>> {
        Ok(Box::new(self.open_queue(spec, None)?))
    }
}

impl Endpoint {
    /// Opens a queue, as context `context` of its control queue if that is given.
    pub(crate) fn open_queue(&self, spec: QueueSpec, context: Option<u8>) -> Result<Queue> {
        let me = self.me();
        let asked = QueueId::new(me, spec.engine.unwrap_or(0).min(15), spec.number.unwrap_or(0), 0);
        let geometry = geometry(asked, &spec)?;
        let id = self.own_queues().take(self.job(), me, &spec, context)?;
        let opened = self.own_queues().table(self).and_then(|tags| {
            match self.take_extent(geometry.bytes(), RegionKind::Queue, |_, _| ()) {
                Ok(words) => Ok(Open { words, tags }),
                Err(error) => {
                    if let Some(table) = Arc::into_inner(tags) {
                        self.allocator().free(self.segment(), me, &table.taken);
                    }
                    Err(error)
                }
            }
        });
        let open = match opened {
            Ok(open) => open,
            Err(error) => {
                self.own_queues().give_back(self.job(), me, id);
                return Err(error);
            }
        };
        let remote = match self.remote_commands(id, spec.mode) {
            Ok(remote) => remote,
            Err(error) => {
                drop(Queue::new(self.clone(), id, spec, geometry, open, None));
                return Err(error);
            }
        };
        self.publish(id, &spec, geometry, &open.words, &open.tags.taken);
        let spec = QueueSpec { engine: Some(id.engine()), number: Some(id.number()), ..spec };
        Ok(Queue::new(self.clone(), id, spec, geometry, open, remote))
    }

    /// Prepares a queue for commands to other nodes, if there are any. Those of a session queue may
    /// be handed over to this rank while it computes, so a thread is started for them.
    fn remote_commands(&self, id: QueueId, mode: QueueMode) -> Result<Option<Arc<RemoteCommands>>> {
        if self.job().most_inline().is_none() {
            return Ok(None);
        }
        if mode == QueueMode::Session {
            self.start_progress()?;
        }
        let remote = Arc::<RemoteCommands>::default();
        self.own_queues().set_remote(id, Some(remote.clone()));
        Ok(Some(remote))
    }

    /// Writes the words of a queue, which are zeros, and enters it in the directory.
    fn publish(
        &self,
        id: QueueId,
        spec: &QueueSpec,
        geometry: Geometry,
        words: &RegisteredExtent,
        tags: &RegisteredExtent,
    ) {
        let segment = self.segment();
        let queue = View::own(segment, id, geometry, (words.key, words.extent.offset), tags.extent.offset);
        let Some((queue, at)) = queue.zip(directory_at(id)) else { return };
        queue.word(CONFIG).store(geometry.to_bits(), Relaxed);
        queue.word(TAGS).store(tags.key.to_bits(), Relaxed);
        queue.word(SCHEDULED).store(spec.initial_offset.into(), Relaxed);
        if queue.is_session() {
            let words = (words.key, words.extent.offset);
            self.own_queues().add_session(OwnSession { id, geometry, words, tags: tags.extent.offset });
        }
        // Release: pairs with the acquire in `View::find`.
        segment.word(at).store(words.key.to_bits(), Release);
    }
}

/// Returns the geometry that `spec` requests.
///
/// # Errors
/// [`QueueError::Limit`].
#[deny(clippy::arithmetic_side_effects)]
fn geometry(queue: QueueId, spec: &QueueSpec) -> Result<Geometry, QueueError> {
    let limit =
        |what, value: u32, limit: u32| QueueError::Limit { queue, what, value: value.into(), limit: limit.into() };
    let sizes =
        [("the depth (a power of two)", spec.depth, 2), ("the notices' depth (a power of two)", spec.mrq_depth, 1)];
    for (what, value, least) in sizes {
        if !value.is_power_of_two() || value < least || value > MOST_DEPTH {
            return Err(limit(what, value, MOST_DEPTH));
        }
    }
    if spec.initial_offset >= spec.depth {
        return Err(limit("the initial offset", spec.initial_offset, spec.depth.saturating_sub(1)));
    }
    Ok(Geometry { mode: spec.mode, depth: spec.depth, mrq_depth: spec.mrq_depth, checked: spec.checked })
}

// ----- the control queues of a node, which its ranks share -----
//
// Each has a word in the segment of the node's first rank: 0, or 1 + the rank that holds it. A rank
// whose process was reaped no longer holds any; other ranks may take them.

/// The control queues of a rank's node.
#[derive(Debug)]
pub(crate) struct NodeQueues<'a> {
    job: &'a Job,
    segment: &'a Mapping,
    machine: QueueMachine,
}

impl<'a> NodeQueues<'a> {
    /// Returns the control queues of the node whose first rank is `first`; `None` if there is no such
    /// rank.
    pub(crate) fn of(job: &'a Job, first: Rank, machine: QueueMachine) -> Option<Self> {
        let segment = job.segment(first).ok()?;
        Some(NodeQueues { job, segment, machine })
    }

    /// Returns the word for a control queue in the node's table.
    fn word(&self, engine: u8, number: u8) -> &AtomicU64 {
        let index = usize::from(engine) % layout::QUEUE_ENGINES * layout::QUEUE_NUMBERS
            + usize::from(number) % layout::QUEUE_NUMBERS;
        self.segment.word(layout::NODE_QUEUES + index * 8)
    }

    /// Returns whether a word's value means that some rank holds the control queue.
    fn is_held(&self, value: u64) -> bool {
        let holder = usize::try_from(value).unwrap_or(0).checked_sub(1);
        holder.is_some_and(|rank| rank < self.job.plan.ranks && !self.job.control.has_ended(rank))
    }

    pub(crate) fn is_free(&self, engine: u8, number: u8) -> bool {
        !self.is_held(self.word(engine, number).load(Relaxed))
    }

    /// Returns the number of control queues of an engine that are taken.
    pub(crate) fn taken(&self, engine: u8) -> u32 {
        (0..self.machine.queues_per_engine).filter(|&number| !self.is_free(engine, number)).count() as u32
    }

    /// Returns the number of free control queues of the node.
    pub(crate) fn free(&self) -> u32 {
        (0..self.machine.engines).map(|engine| u32::from(self.machine.queues_per_engine) - self.taken(engine)).sum()
    }

    /// Takes a control queue for `me`. Returns whether it was free.
    pub(crate) fn take(&self, engine: u8, number: u8, me: Rank) -> bool {
        let word = self.word(engine, number);
        let now = word.load(Acquire);
        !self.is_held(now) && word.compare_exchange(now, u64::from(me.number()) + 1, AcqRel, Relaxed).is_ok()
    }

    /// Releases a control queue that `me` holds.
    pub(crate) fn give_back(&self, engine: u8, number: u8, me: Rank) {
        // If the word is damaged, nothing is released.
        let _ = self.word(engine, number).compare_exchange(u64::from(me.number()) + 1, 0, AcqRel, Relaxed);
    }
}
