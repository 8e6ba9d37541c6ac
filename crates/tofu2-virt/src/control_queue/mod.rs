//! Control queues of the simulated nodes.
//!
//! # Model
//! * *Ring* ([`toq`]). A post costs the CPU the platform's `post` time; its descriptor is then in
//!   the TOQ. A slot is free again when the engine has fetched its command. A delayed start waits
//!   for the next post; credit doesn't start it.
//! * *Send engine* ([`send`]). Each queue asks its TNI's engine for one command at a time, so that
//!   the queues of a TNI take turns with each other and with operations that ranks post through the
//!   fabric. The engine reads the poster's memory when it starts a command. The command's time is
//!   then known: latency, and payload at the platform's rate.
//! * *Receive engine* ([`arrive`]). The last packet of a put delivers its bytes, notice and
//!   advance, in this order and at the same time. Commands that an advance releases request the
//!   send engine immediately. Atomics go to the node's one atomic unit.
//! * *Chains* ([`send`]). A put by which a rank releases commands of its own queues leaves the engine
//!   `queue_chain` later, unless such a put released it: once for a chain. The engine is free in the
//!   meantime.
//! * *Answers* ([`report`]). Results, requested acknowledgements, and errors return after the same
//!   leg as those of fabric operations.
//! * *Order* ([`order`]). One queue's commands to one target arrive in order. A strongly ordered
//!   command waits at the target for earlier atomics in service.
//! * *Errors* ([`report`]). A full MRQ, or credit a whole ring ahead in checking mode, stops the
//!   queue: none of its commands starts any longer, and commands that address it fail with
//!   [`rdma_fabric::control_queue::QueueError::Stopped`].
//!
//! The TCQ is as long as necessary. A get's completion in it means that the request was sent.

mod arrive;
mod flight;
mod handle;
mod node;
mod open;
mod order;
mod report;
mod send;
mod state;
mod tags;
mod toq;

pub(super) use flight::{Cut, FLIGHT};
pub(super) use handle::open;

use super::{operation::Opcode, platform::QueueTable, stats::CommandCounts};
use flight::Flights;
use node::NodeQueues;
use rdma_fabric::control_queue::{Pointers, QueueError, QueueId};
use state::{Health, QueueState};
use tags::Space;

/// All control queues of the machine. Nothing is allocated before the first is opened.
#[derive(Debug, Default)]
pub(super) struct Queues {
    slots: Vec<Slot>,
    /// Slots without a queue.
    free: Vec<u32>,
    /// The queues by node, created when the node's first queue is opened.
    nodes: Vec<Option<Box<NodeQueues>>>,
    spaces: Vec<Space>,
    free_spaces: Vec<u32>,
    flights: Flights,
    counts: CommandCounts,
    /// The peak size of tables and states, in bytes.
    peak: usize,
}

#[derive(Debug)]
struct Slot {
    /// Incremented when the queue is closed.
    generation: u32,
    state: Option<Box<QueueState>>,
}

impl Queues {
    #[inline]
    fn get(&self, queue: u32) -> &QueueState {
        self.slots[queue as usize].state.as_deref().expect("a queue's slot is kept while anything refers to it")
    }

    #[inline]
    fn get_mut(&mut self, queue: u32) -> &mut QueueState {
        self.slots[queue as usize].state.as_deref_mut().expect("a queue's slot is kept while anything refers to it")
    }

    /// Returns the open queue with this id.
    #[inline]
    fn find(&self, id: QueueId, node: u32) -> Option<u32> {
        let mut queue = self.nodes.get(node as usize)?.as_deref()?.first(id)?;
        while queue != node::NONE {
            let state = self.get(queue);
            if state.id == id {
                return Some(queue);
            }
            queue = state.next_context;
        }
        None
    }

    /// Returns the number of free CQs of a node.
    fn free_on(&self, node: u32, table: &QueueTable) -> u32 {
        let all = u32::from(table.engines) * u32::from(table.numbers);
        self.nodes.get(node as usize).and_then(|node| node.as_deref()).map_or(all, NodeQueues::free)
    }

    fn space_of(&mut self, queue: u32) -> &mut Space {
        let space = self.get(queue).space;
        &mut self.spaces[space as usize]
    }

    pub(super) fn pointers(&self, queue: u32) -> Pointers {
        self.get(queue).toq.pointers()
    }

    /// Returns an error that has not been reported to the rank yet.
    fn unreported(&self, queue: u32) -> Option<QueueError> {
        match self.get(queue).health {
            Health::CommandFailed(error) | Health::Stopping(error) => Some(error),
            Health::Well | Health::Stopped => None,
        }
    }

    /// Returns the id of a queue that is open, or was open when the flight or wait that refers to
    /// it started.
    pub(super) fn id_of(&self, queue: u32) -> QueueId {
        self.get(queue).id
    }

    /// Returns an identifier of this opening of a queue, which is unique.
    pub(super) fn opening(&self, queue: u32) -> u64 {
        u64::from(self.slots[queue as usize].generation) << 32 | u64::from(queue)
    }

    /// Returns a flight's queue and slot, its target, its opcode and its length in bytes.
    pub(super) fn seen_flight(&self, flight: u32) -> (u32, u64, QueueId, Opcode, u64) {
        let flight = self.flights.get(flight);
        (flight.queue, flight.slot, flight.to, flight.opcode, flight.len.into())
    }

    /// Returns the first time after `now`, in picoseconds, at which a completion of one of these queues
    /// becomes visible; `None` if no such time is known.
    pub(super) fn next_completion(&self, queues: &[u32], now: u64) -> Option<u64> {
        queues.iter().filter_map(|&queue| self.get(queue).completion_at()).filter(|at| *at > now).min()
    }

    /// Returns the counts of commands by the stage they reached.
    pub(super) fn counts(&self) -> CommandCounts {
        self.counts
    }

    /// Returns the rank that owns a queue.
    #[inline]
    pub(super) fn rank_of(&self, queue: u32) -> u32 {
        self.get(queue).rank
    }

    /// Returns the rank that posted a flight.
    #[inline]
    pub(super) fn poster(&self, flight: u32) -> u32 {
        self.flights.get(flight).rank
    }

    /// Returns the peak size in bytes, without the memory of rings and buffers.
    pub(super) fn peak_bytes(&self) -> usize {
        self.peak.max(self.bytes()) + self.flights.peak_bytes()
    }

    fn bytes(&self) -> usize {
        let open = self.slots.len() - self.free.len();
        let nodes = self.nodes.iter().flatten().map(|node| node.bytes()).sum::<usize>();
        let spaces = self.spaces.iter().map(|space| size_of::<Space>() + space.bytes()).sum::<usize>();
        let rings =
            self.slots.iter().filter_map(|slot| slot.state.as_deref()).map(QueueState::ring_bytes).sum::<usize>();
        self.slots.len() * size_of::<Slot>()
            + open * size_of::<QueueState>()
            + self.nodes.len() * size_of::<Option<Box<NodeQueues>>>()
            + nodes
            + spaces
            + rings
    }
}
