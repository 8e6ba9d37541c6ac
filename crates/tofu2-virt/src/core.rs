//! The simulated machine: its parts, and the effects of each event.

use super::{
    barrier::{BarrierUnits, ColourBarriers},
    clock::{Clock, EventKind},
    control_queue::{FLIGHT, Queues},
    faults::{Injector, Struck},
    memory::{Loc, Memory},
    network::{Delivered, Network},
    nic::{AtomicUnits, SendEngines},
    operation::{Opcode, Operations},
    platform::Timing,
    prefetch::{Nearby, prefetch},
    ranks::Ranks,
    stats::Counts,
    timeline::Timeline,
    topology::Map,
};
use rdma_fabric::{FabricError, Rank, Result};

/// The constant part of a simulated machine: its timing, its network's tables, and the distribution
/// of ranks over nodes.
#[derive(Debug)]
pub(super) struct Machine {
    pub(super) timing: Timing,
    pub(super) map: Map,
    pub(super) ranks: u32,
    pub(super) ranks_per_node: u32,
    /// The number of receive engines at which atomics and puts arrive; the poster's index on its
    /// node, modulo this number, selects one.
    pub(super) receive_engines: u32,
}

impl Machine {
    #[inline]
    pub(super) fn node_of(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node
    }

    /// Returns the number of bytes that a rank may register.
    pub(super) fn memory_limit(&self) -> u64 {
        self.timing.node_memory / u64::from(self.ranks_per_node)
    }

    /// Returns the wire latency between two nodes by the default path, in picoseconds.
    pub(super) fn wire_between(&self, from: u32, to: u32) -> u64 {
        self.timing.wire(self.map.hops(from, to))
    }
}

/// All parts of a simulated machine. Each keeps its own state; functions that need several parts
/// are here.
#[derive(Debug)]
pub(super) struct Core {
    pub(super) machine: Machine,
    pub(super) clock: Clock,
    pub(super) ranks: Ranks,
    pub(super) memory: Memory,
    /// Operations that ranks have posted through the fabric.
    pub(super) operations: Operations,
    /// Control queues that ranks have opened.
    pub(super) queues: Queues,
    pub(super) barrier: BarrierUnits,
    pub(super) colours: ColourBarriers,
    pub(super) senders: SendEngines,
    pub(super) units: AtomicUnits,
    pub(super) network: Network,
    pub(super) injector: Injector,
    /// The record of the run's activities, if the job requests one.
    pub(super) timeline: Option<Box<Timeline>>,
    pub(super) counts: Counts,
    /// The memory that programs access when they use atomics.
    pub(super) nearby: Nearby,
    /// A rank that will be polled a few events from now, so that its task can be prefetched.
    pub(super) soon: Option<u32>,
}

impl Core {
    pub(super) fn new(
        machine: Machine,
        mut clock: Clock,
        network: Network,
        nodes: u32,
        counts: Counts,
        timeline: Option<Box<Timeline>>,
        injector: Injector,
    ) -> Self {
        for (index, time) in injector.times().enumerate() {
            clock.push(time, EventKind::Fault, index as u32);
        }
        Core {
            clock,
            ranks: Ranks::new(machine.ranks),
            memory: Memory::new(machine.ranks),
            operations: Operations::with_room(machine.ranks),
            queues: Queues::default(),
            barrier: BarrierUnits::new(),
            colours: ColourBarriers::default(),
            senders: SendEngines::new(nodes, machine.timing.engines),
            units: AtomicUnits::new(nodes, machine.receive_engines),
            network,
            injector,
            timeline,
            counts,
            nearby: Nearby::default(),
            soon: None,
            machine,
        }
    }

    /// Returns the bytes that [`Core::new`] takes for each node, excluding the network.
    pub(super) fn bytes_per_node(engines: u32) -> usize {
        size_of::<u64>() * engines as usize + size_of::<usize>()
    }

    /// Returns the peak size in bytes of the state that all ranks share.
    pub(super) fn peak_bytes(&self) -> usize {
        self.clock.peak_bytes() + self.operations.peak_bytes() + self.memory.peak_bytes() + self.queues.peak_bytes()
    }

    /// Returns the time as a rank sees it. Its CPU may be ahead of the events because of its posts.
    #[inline]
    pub(super) fn now_of(&self, rank: u32) -> u64 {
        self.clock.now().max(self.ranks.cpu_until(rank))
    }

    /// Prefetches the data that a rank will need when it is polled, except its task. The rank's own
    /// state must be in the cache by now.
    #[inline]
    pub(super) fn prefetch_for(&self, rank: u32) {
        let [fabric, place] = self.ranks.near(rank);
        self.nearby.prefetch(fabric, 1, 1);
        self.nearby.prefetch(place, 4, 4);
        self.memory.prefetch(rank);
    }

    /// Checks that the memory behind a resolved place can still be used.
    #[inline]
    pub(super) fn check(&self, loc: &Loc) -> Result<()> {
        if self.memory.is_live(loc) { Ok(()) } else { Err(self.unusable(loc)) }
    }

    #[cold]
    pub(super) fn unusable(&self, loc: &Loc) -> FabricError {
        let rank = Rank::new(loc.rank);
        if self.ranks.is_lost(loc.rank) {
            FabricError::PeerLost { rank }
        } else {
            FabricError::StaleRegion { rank, region: loc.key() }
        }
    }

    /// Handles the next event. Returns false if there is none.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let Some(event) = self.clock.next() else { return false };
        if let Some(soon) = self.clock.soon()
            && matches!(soon.kind, EventKind::Arrive | EventKind::Complete)
        {
            prefetch(self.operations.get(soon.subject));
        }
        let subject = event.subject;
        let who = match event.kind {
            EventKind::Arrive | EventKind::Complete => self.operations.get(subject).poster,
            EventKind::Start => self.queues.rank_of(subject),
            EventKind::Reach | EventKind::Answer => self.queues.poster(subject),
            _ => subject,
        };
        self.clock.trace(event, who);
        match event.kind {
            EventKind::Resume => self.ranks.wake(subject),
            EventKind::Arrive => self.arrive(subject),
            EventKind::Door => {
                self.units.at_door(&self.machine.timing, &self.operations, &mut self.clock, subject);
            }
            EventKind::Served => self.served(subject),
            EventKind::Complete => self.complete(subject),
            EventKind::Fault => self.strike(subject),
            EventKind::Credit => self.late_advance(subject),
            EventKind::Half if event.detail != 0 => self.half_of_flight(subject),
            EventKind::Half => self.half_of_put(subject),
            EventKind::Start => self.start(subject),
            EventKind::Reach => self.reach(subject),
            EventKind::Answer => self.answer(subject),
            EventKind::Head => {
                self.network.head_ready(&self.machine, &mut self.clock, subject, event.detail);
                self.deliver();
            }
            EventKind::Output => {
                self.network.output_free(&self.machine, &mut self.clock, subject, event.detail);
                self.deliver();
            }
            EventKind::Signal | EventKind::Fired => self.barrier.gate_moves(
                &self.machine,
                &mut self.clock,
                &mut self.ranks,
                event.kind == EventKind::Fired,
                subject,
                event.detail,
            ),
        }
        true
    }

    /// Handles packets that receive engines have taken.
    #[inline]
    pub(super) fn deliver(&mut self) {
        if !self.network.has_delivered() {
            return;
        }
        let mut delivered = self.network.take_delivered();
        for Delivered { op: slot, last } in delivered.drain(..) {
            if slot & FLIGHT != 0 {
                self.packet_of_flight(slot & !FLIGHT, last);
                continue;
            }
            let op = self.operations.get_mut(slot);
            let at = self.clock.now().saturating_add(self.machine.timing.receive);
            if op.opcode.is_atomic() {
                op.at = at;
                self.queue_atomic(slot);
            } else if last {
                let tail = match op.opcode {
                    Opcode::Put => self.machine.timing.last_packet(op.target.len),
                    _ => 0,
                };
                self.clock.push(at.saturating_add(tail), EventKind::Arrive, slot);
            }
        }
        self.network.keep(delivered);
    }

    /// Passes an operation to the atomic unit of its target's node. Its `at` is the time at which
    /// it arrives there.
    #[inline]
    pub(super) fn queue_atomic(&mut self, slot: u32) {
        let node = self.machine.node_of(self.operations.get(slot).target.rank);
        self.units.queue(&self.machine.timing, &mut self.operations, &mut self.clock, node, slot);
    }

    /// Releases an atomic that the node's receive engine has held.
    pub(super) fn free_receiver(&mut self, node: u32, engine: u8) {
        if self.network.has_router() {
            self.network.receiver_free(&self.machine, &mut self.clock, node, engine);
            self.deliver();
        }
    }

    /// Writes to a rank's memory, for the network or for the rank.
    #[inline]
    pub(super) fn write(&mut self, loc: &Loc, bytes: &[u8]) {
        self.memory.copy_in(loc, bytes);
        self.ranks.touched(loc);
    }

    /// Handles a `Fault` event.
    fn strike(&mut self, index: u32) {
        let Some(Struck { rank, name }) = self.injector.strike(&self.machine, self.clock.now(), index as usize) else {
            return;
        };
        if let Some(timeline) = &mut self.timeline {
            timeline.fault(&self.machine, rank, self.clock.now(), name);
        }
    }

    /// Ends a rank whose program has ended and whose memory is deregistered.
    pub(super) fn end_of(&mut self, rank: u32, well: bool) {
        for queue in self.ranks.take_queues(rank) {
            self.close_queue(queue);
        }
        self.ranks.end(rank, well);
    }
}
