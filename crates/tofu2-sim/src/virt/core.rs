//! The simulated machine's whole state and what each event does to it.

use super::{
    barrier::BarrierUnits,
    chance::Chance,
    control_queue::{Cut, FLIGHT, Queues},
    end_of_time::EndOfTime,
    event::{Event, Kind},
    faults::Trouble,
    memory::{Loc, Memory},
    network::{Delivered, Packet, Pump, Router},
    nic::{AtomicUnits, Next, Receivers, SendEngines},
    op::{Cargo, NONE, Op, Slab, Verb},
    platform::Timing,
    prefetch::{Nearby, prefetch},
    queue::EventQueue,
    rank_state::{RankState, Status},
    stats::OpCounts,
    timeline::Timeline,
    topology::Map,
    trace::Trace,
    watch::What,
};
use rdma_fabric::{FabricError, Notice, Rank, Result};
use std::collections::{HashMap, VecDeque};

#[derive(Debug)]
pub(super) struct Core {
    /// Picoseconds.
    pub(super) now: u64,
    pub(super) events: u64,
    pub(super) queue: EventQueue,
    pub(super) chance: Chance,
    pub(super) trace: Trace,
    pub(super) timing: Timing,
    pub(super) map: Map,
    pub(super) ranks: Vec<RankState>,
    pub(super) ranks_per_node: u32,
    /// Engines that atomics and puts arrive at: of the poster's local number, modulo this.
    pub(super) receive_engines: u32,
    /// Bytes that a rank may register.
    pub(super) memory_limit: u64,
    pub(super) memory: Memory,
    pub(super) slab: Slab,
    pub(super) barrier: BarrierUnits,
    pub(super) senders: SendEngines,
    /// Control queues that ranks have opened.
    pub(super) queues: Queues,
    units: AtomicUnits,
    /// The hop-by-hop network, if the job has one.
    fabric: Option<(Router, Receivers)>,
    delivered: Vec<Delivered>,
    /// A rank that will be polled a few events from now: its task may be asked for.
    pub(super) soon: Option<u32>,
    /// Memory of programs that they use with atomics.
    pub(super) nearby: Nearby,
    /// Ranks to poll now, each at most once.
    pub(super) run_queue: VecDeque<u32>,
    /// The first rank lost.
    pub(super) first_lost: Option<u32>,
    /// Waiting ranks have not been told of a loss yet.
    loss_unknown: bool,
    /// Ranks that are gone for good.
    pub(super) departed: u32,
    pub(super) next_ticket: u64,
    pub(super) counts: OpCounts,
    pub(super) counts_by_rank: Option<Vec<OpCounts>>,
    pub(super) timeline: Option<Box<Timeline>>,
    /// What goes wrong, if anything is to.
    pub(super) trouble: Option<Box<Trouble>>,
    /// A rank that wants to compute beyond the end of time, until it is told that it can't.
    pub(super) beyond: Option<(u32, EndOfTime)>,
    /// With jitter or shuffling only: when the last notice of a pair arrives, since notices keep their order. Never iterated.
    last_notice: HashMap<(u32, u32), u64>,
}

/// What [`Core::new`] is made from.
#[derive(Debug)]
pub(super) struct Parts {
    pub(super) queue: EventQueue,
    pub(super) chance: Chance,
    pub(super) timing: Timing,
    pub(super) map: Map,
    pub(super) ranks: u32,
    pub(super) ranks_per_node: u32,
    pub(super) nodes: u32,
    pub(super) receive_engines: u32,
    pub(super) router: Option<Router>,
    pub(super) count_ops: bool,
    pub(super) timeline: Option<Box<Timeline>>,
    /// What goes wrong, if anything is to.
    pub(super) trouble: Option<Box<Trouble>>,
}

impl Core {
    pub(super) fn new(parts: Parts) -> Self {
        let Parts {
            queue,
            chance,
            timing,
            map,
            ranks,
            ranks_per_node,
            nodes,
            receive_engines,
            router,
            count_ops,
            timeline,
            trouble,
        } = parts;
        let mut queue = queue;
        for (index, time) in trouble.iter().flat_map(|trouble| trouble.times()).enumerate() {
            queue.push(Event::new(time, Kind::Fault, index as u32));
        }
        Core {
            now: 0,
            events: 0,
            queue,
            chance,
            trace: Trace::new(),
            ranks: (0..ranks).map(|_| RankState::new()).collect(),
            ranks_per_node,
            receive_engines,
            memory_limit: timing.node_memory / u64::from(ranks_per_node),
            memory: Memory::new(ranks),
            slab: Slab::new(),
            barrier: BarrierUnits::default(),
            senders: SendEngines::new(nodes, timing.engines),
            queues: Queues::default(),
            units: AtomicUnits::new(nodes, receive_engines),
            fabric: router.map(|router| (router, Receivers::new(nodes, timing.engines))),
            delivered: Vec::new(),
            soon: None,
            nearby: Nearby::default(),
            run_queue: (0..ranks).collect(),
            first_lost: None,
            loss_unknown: false,
            departed: 0,
            next_ticket: 0,
            counts: OpCounts::default(),
            counts_by_rank: count_ops.then(|| vec![OpCounts::default(); ranks as usize]),
            timeline,
            trouble,
            beyond: None,
            last_notice: HashMap::new(),
            timing,
            map,
        }
    }

    /// What [`Core::new`] takes for each rank.
    pub(super) const BYTES_PER_RANK: usize = size_of::<RankState>() + size_of::<u32>();

    /// What [`Core::new`] takes for each node, router and receivers aside.
    pub(super) fn bytes_per_node(engines: u32) -> usize {
        size_of::<u64>() * engines as usize + size_of::<usize>()
    }

    #[inline]
    pub(super) fn node_of(&self, rank: u32) -> u32 {
        rank / self.ranks_per_node
    }

    /// The time as a rank sees it: its CPU may be ahead of the events by what it has posted.
    #[inline]
    pub(super) fn now_of(&self, rank: u32) -> u64 {
        self.now.max(self.ranks[rank as usize].cpu_until)
    }

    /// Ask for what a rank will need when it is polled, but for its task. Its state is there.
    #[inline]
    pub(super) fn prefetch_for(&self, rank: u32) {
        let [fabric, place] = self.ranks[rank as usize].near;
        self.nearby.prefetch(fabric, 1, 1);
        self.nearby.prefetch(place, 4, 4);
        self.memory.prefetch(rank);
    }

    /// Polls a rank's task as soon as it is its turn.
    #[inline]
    pub(super) fn wake(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        if !state.queued && state.status == Status::Running {
            state.queued = true;
            self.run_queue.push_back(rank);
        }
    }

    /// Polls a rank's task at a time; never if that is the end of time.
    #[inline]
    pub(super) fn wake_at(&mut self, rank: u32, time: u64) {
        if time != u64::MAX {
            self.queue.push(Event::new(time.max(self.now), Kind::Resume, rank));
        }
    }

    // ----- posting ---------------------------------------------------------------------------

    /// Whether the rank's TOQ is full.
    #[inline]
    pub(super) fn is_full(&self, rank: u32) -> bool {
        let state = &self.ranks[rank as usize];
        state.outstanding >= self.timing.transmit_queue && state.operations() >= self.timing.transmit_queue
    }

    /// Checks that a resolved place can still be used.
    #[inline]
    pub(super) fn check(&self, loc: &Loc) -> Result<()> {
        if self.memory.is_live(loc) { Ok(()) } else { Err(self.unusable(loc)) }
    }

    #[cold]
    fn unusable(&self, loc: &Loc) -> FabricError {
        let rank = Rank::new(loc.rank);
        if self.is_lost(loc.rank) {
            FabricError::PeerLost { rank }
        } else {
            FabricError::StaleRegion { rank, region: loc.key() }
        }
    }

    /// Whether an operation that has come to its target is done there: its memory may be gone, or the loss of its poster known (E4).
    #[inline]
    fn takes_effect(&self, poster: u32, target: &Loc) -> bool {
        self.memory.is_live(target) && (self.first_lost.is_none() || !self.is_lost(poster))
    }

    #[inline]
    pub(super) fn is_lost(&self, rank: u32) -> bool {
        self.ranks[rank as usize].status == Status::Lost
    }

    /// Posts an operation: the CPU writes the command, the send engine takes it, the network gets it. Returns the slot, its generation
    /// and when the source is reusable.
    #[inline]
    pub(super) fn post(&mut self, mut op: Op) -> (u32, u32, u64) {
        let rank = op.poster;
        let (from, to) = (self.node_of(rank), self.node_of(op.target.rank));
        let local = rank - from * self.ranks_per_node;
        let sender = local % self.timing.engines;
        let bytes = if op.verb == Verb::Put { op.target.len } else { 0 };
        let state = &mut self.ranks[rank as usize];
        state.outstanding += 1;
        state.cpu_until = self.now.max(state.cpu_until).saturating_add(self.timing.post);
        let start = self.senders.take(&self.timing, from, sender, state.cpu_until, bytes);
        let sent = start.saturating_add(self.timing.send);
        self.count(&op, from != to);
        if op.verb == Verb::Nop {
            let (slot, generation) = self.slab.insert(op);
            self.seen_posted(slot, sender, start, sent);
            self.queue.push(Event::new(sent, Kind::Complete, slot));
            return (slot, generation, sent);
        }
        op.engine = if self.receive_engines == 1 { 0 } else { (local % self.receive_engines) as u8 };
        let trip = self.map.trip(from, to, (rank, op.target.rank), None);
        let wire = self.timing.wire(trip.there);
        op.back = self.timing.wire(trip.back);
        let extra = self.chance.extra();
        let payload = self.timing.payload(bytes);
        if self.fabric.is_some() {
            let atomic = op.verb.is_atomic();
            let mut packet = Packet::new(0, to, op.engine, atomic, trip.path);
            let (slot, generation) = self.slab.insert(op);
            packet.op = slot;
            self.seen_posted(slot, sender, start, sent.saturating_add(payload));
            let cut = Cut::usual(&self.timing);
            let enters = self.over_links(from, to, sent.saturating_add(extra), payload);
            self.inject(from, sender as u8, packet, enters, bytes, cut);
            return (slot, generation, sent.saturating_add(payload));
        }
        let arrival = sent.saturating_add(wire + payload + self.timing.receive).saturating_add(extra);
        let mut arrival = self.over_links(from, to, arrival, payload);
        if self.chance.is_active() && op.cargo.as_ref().is_some_and(|cargo| cargo.notice.is_some()) {
            let last = self.last_notice.entry((rank, op.target.rank)).or_default();
            arrival = arrival.max(last.saturating_add(1));
            *last = arrival;
        }
        let (slot, generation) = self.slab.insert(op);
        self.seen_posted(slot, sender, start, sent.saturating_add(payload));
        let (target, verb) = (self.slab.get(slot).target.rank, self.slab.get(slot).verb);
        if let Some(early) = self.half_seen(target, verb, bytes, arrival) {
            self.queue.push(Event::new(early, Kind::Half, slot));
        }
        self.queue.push(Event::new(arrival, Kind::Arrive, slot));
        (slot, generation, sent.saturating_add(payload))
    }

    /// Whether messages go through routers.
    pub(super) fn has_router(&self) -> bool {
        self.fabric.is_some()
    }

    /// Hands a message to the router, cut into packets.
    pub(super) fn inject(&mut self, from: u32, sender: u8, mut packet: Packet, sent: u64, bytes: u64, cut: Cut) {
        let entry = if packet.to == from { 0 } else { self.timing.wire - self.timing.hop };
        packet.born = sent;
        let mut offset = 0;
        loop {
            let payload = (bytes - offset).min(cut.size);
            packet.payload = payload as u16;
            packet.last = offset + payload == bytes;
            packet.ready_at = sent
                .saturating_add(entry + self.timing.payload_before(offset) + cut.extra_before(&self.timing, offset));
            self.with_router(|router, pump| router.inject(pump, from, sender, packet));
            offset += payload;
            if packet.last {
                break;
            }
        }
        self.with_router(|router, pump| router.run(pump));
        self.deliver();
    }

    #[inline]
    fn count(&mut self, op: &Op, off_node: bool) {
        let one = |counts: &mut OpCounts| {
            match op.verb {
                Verb::Put => (counts.puts, counts.bytes_put) = (counts.puts + 1, counts.bytes_put + op.target.len),
                Verb::Get => (counts.gets, counts.bytes_got) = (counts.gets + 1, counts.bytes_got + op.target.len),
                Verb::Nop => counts.nops += 1,
                _ => counts.atomics += 1,
            }
            counts.off_node += u64::from(off_node && op.verb != Verb::Nop);
            counts.notices += u64::from(op.cargo.as_ref().is_some_and(|cargo| cargo.notice.is_some()));
        };
        one(&mut self.counts);
        if let Some(by_rank) = &mut self.counts_by_rank {
            one(&mut by_rank[op.poster as usize]);
        }
    }

    // ----- events ----------------------------------------------------------------------------

    /// Handles the next event; false if there is none.
    #[inline]
    pub(super) fn step(&mut self) -> bool {
        let Some(event) = self.chance.next(&mut self.queue) else { return false };
        if let Some(soon) = self.queue.soon()
            && matches!(soon.kind(), Kind::Arrive | Kind::Complete)
        {
            prefetch(self.slab.get(soon.subject()));
        }
        self.now = event.time;
        self.events += 1;
        let subject = event.subject();
        let who = match event.kind() {
            Kind::Arrive | Kind::Complete => self.slab.get(subject).poster,
            Kind::Start => self.queues.rank_of(subject),
            Kind::Reach | Kind::Answer => self.queues.poster(subject),
            _ => subject,
        };
        self.trace.fold(event.time, event.kind() as u8, who);
        match event.kind() {
            Kind::Resume => self.wake(subject),
            Kind::Arrive => self.arrive(subject),
            Kind::Door => {
                let next = self.units.at_door(&self.timing, &self.slab, subject, self.now);
                self.follow(subject, next);
            }
            Kind::Served => self.served(subject),
            Kind::Complete => self.complete(subject),
            Kind::Fault => self.strike(subject),
            Kind::Credit => self.late_advance(subject),
            Kind::Half => self.half(subject, event.detail()),
            Kind::Start => self.start(subject),
            Kind::Reach => self.reach(subject),
            Kind::Answer => self.answer(subject),
            Kind::Head => {
                self.with_router(|router, pump| router.head_ready(pump, subject, event.detail()));
                self.deliver();
            }
            Kind::Output => {
                self.with_router(|router, pump| router.output_free(pump, subject, event.detail()));
                self.deliver();
            }
            Kind::Signal | Kind::Fired => self.gate_moves(event.kind(), subject, event.detail()),
        }
        true
    }

    #[inline]
    fn with_router(&mut self, act: impl FnOnce(&mut Router, &mut Pump<'_>)) {
        let Some((router, receivers)) = &mut self.fabric else { return };
        let mut pump = Pump {
            now: self.now,
            timing: &self.timing,
            map: &self.map,
            receivers,
            queue: &mut self.queue,
            delivered: &mut self.delivered,
        };
        act(router, &mut pump);
    }

    /// Deals with packets that receive engines have taken.
    #[inline]
    fn deliver(&mut self) {
        if self.delivered.is_empty() {
            return;
        }
        let mut delivered = core::mem::take(&mut self.delivered);
        for Delivered { op: slot, last } in delivered.drain(..) {
            if slot & FLIGHT != 0 {
                self.packet_of_flight(slot & !FLIGHT, last);
                continue;
            }
            let op = self.slab.get_mut(slot);
            let at = self.now.saturating_add(self.timing.receive);
            if op.verb.is_atomic() {
                op.at = at;
                self.queue_atomic(slot);
            } else if last {
                let tail = match op.verb {
                    Verb::Put => self.timing.last_packet(op.target.len),
                    _ => 0,
                };
                self.queue.push(Event::new(at.saturating_add(tail), Kind::Arrive, slot));
            }
        }
        self.delivered = delivered;
    }

    #[inline]
    pub(super) fn queue_atomic(&mut self, slot: u32) {
        let node = self.node_of(self.slab.get(slot).target.rank);
        let next = self.units.queue(&self.timing, &mut self.slab, node, slot, self.now);
        self.follow(node, next);
    }

    #[inline]
    fn follow(&mut self, node: u32, next: Next) {
        match next {
            Next::Serves { until } => self.queue.push(Event::new(until, Kind::Served, node)),
            Next::Door { at } => self.queue.push(Event::new(at, Kind::Door, node)),
            Next::Nothing => {}
        }
    }

    /// A request is through its target's receive engine.
    #[inline]
    fn arrive(&mut self, slot: u32) {
        self.seen_arrived(slot);
        let op = self.slab.get_mut(slot);
        match op.verb {
            Verb::Put => self.arrive_put(slot),
            Verb::Get => self.arrive_get(slot),
            _ => {
                op.at = self.now;
                self.queue_atomic(slot);
            }
        }
    }

    fn served(&mut self, node: u32) {
        let slot = self.units.finish(node);
        self.seen_served(slot, self.timing.service[0]);
        let takes_effect = self.takes_effect(self.slab.get(slot).poster, &self.slab.get(slot).target);
        let op = self.slab.get_mut(slot);
        let (poster, target, engine, flight) = (op.poster, op.target, op.engine, op.flight);
        let mut old_value = None;
        if takes_effect {
            let old = self.memory.load(&target);
            let new = op.applied(old);
            op.a = old;
            old_value = Some(old);
            if new != old {
                self.memory.store(&target, new);
            }
            self.touched(&target);
        } else if flight == NONE {
            let error = self.unusable(&target);
            self.fail(slot, error);
        }
        if flight == NONE {
            prefetch(&self.ranks[poster as usize]);
            self.soon = Some(poster);
            let answer = self.answer_time(slot);
            self.queue.push(Event::new(answer, Kind::Complete, slot));
        } else {
            self.slab.free(slot);
        }
        let next = self.units.start(&self.timing, &self.slab, node, self.now);
        self.follow(node, next);
        self.free_receiver(node, engine);
        if flight != NONE {
            self.atomic_served(flight, old_value);
        }
    }

    /// An atomic that the node's receive engine has held is over there.
    pub(super) fn free_receiver(&mut self, node: u32, engine: u8) {
        if let Some((_, receivers)) = &mut self.fabric {
            receivers.release_atomic(node, engine);
            self.with_router(|router, pump| router.receiver_free(pump, node));
            self.deliver();
        }
    }

    /// When the poster has the answer that leaves the target now.
    #[inline]
    fn answer_time(&mut self, slot: u32) -> u64 {
        let extra = self.chance.extra();
        let leg = self.timing.send + self.slab.get(slot).back + self.timing.receive + self.timing.post;
        self.now.saturating_add(leg).saturating_add(extra)
    }

    #[cold]
    fn fail(&mut self, slot: u32, error: FabricError) {
        self.slab.get_mut(slot).cargo.get_or_insert_default().error = Some(error);
    }

    fn arrive_put(&mut self, slot: u32) {
        let known_at = self.answer_time(slot);
        let op = self.slab.get_mut(slot);
        let (poster, target, inline, cargo) = (op.poster, op.target, op.a, op.cargo.take());
        self.slab.free(slot);
        let live = self.takes_effect(poster, &target);
        let error = if live { None } else { Some(self.unusable(&target)) };
        if live {
            match &cargo {
                Some(cargo) if !cargo.bytes.is_empty() => self.memory.copy_in(&target, &cargo.bytes),
                _ => self.memory.copy_in(&target, &inline.to_ne_bytes()[..target.len as usize]),
            }
            self.touched(&target);
        }
        if let Some(data) = cargo.and_then(|cargo| cargo.notice) {
            let end = target.offset + target.len;
            let notice = Notice { from: Rank::new(poster), data, region: target.key(), end };
            self.leave_notice(target.rank, live.then_some(notice));
        }
        if let Some(extra) = self.ranks[poster as usize].existing() {
            for time in extra.unflushed.arrived(target.rank, known_at, error).into_iter().flatten() {
                self.wake_at(poster, time);
            }
        }
        self.release(poster);
    }

    /// A `Half` event has come: the first half of a put's bytes are seen.
    fn half(&mut self, slot: u32, of_flight: u16) {
        if of_flight != 0 {
            return self.half_of_flight(slot);
        }
        let op = self.slab.get(slot);
        let mut first = op.target;
        first.len /= 2;
        if let Some(cargo) = &op.cargo
            && self.takes_effect(op.poster, &op.target)
            && cargo.bytes.len() >= first.len as usize
        {
            self.memory.copy_in(&first, &cargo.bytes[..first.len as usize]);
            self.touched(&first);
        }
    }

    fn leave_notice(&mut self, target: u32, notice: Option<Notice>) {
        let depth = self.timing.receive_queue;
        let state = &mut self.ranks[target as usize];
        if state.status != Status::Running {
            return;
        }
        let extra = state.extra();
        let next = extra.receive_queue.arrive(notice, depth);
        if extra.watches.iter().any(|watch| watch.what == What::Notice) {
            self.wake(target);
        }
        if let Some(rank) = next {
            self.wake(rank);
        }
    }

    fn arrive_get(&mut self, slot: u32) {
        let op = self.slab.get_mut(slot);
        let target = op.target;
        if !self.memory.is_live(&target) {
            let error = self.unusable(&target);
            self.fail(slot, error);
            let answer = self.answer_time(slot);
            self.queue.push(Event::new(answer, Kind::Complete, slot));
            return;
        }
        if target.len <= 8 && op.cargo.is_none() {
            let mut bytes = [0; 8];
            self.memory.copy_out(&target, &mut bytes[..target.len as usize]);
            op.a = u64::from_ne_bytes(bytes);
        } else {
            op.cargo.get_or_insert_default().bytes = self.memory.copied(&target);
        }
        let (node, engine) = (self.node_of(target.rank), u32::from(self.slab.get(slot).engine));
        let start = self.senders.take(&self.timing, node, engine, self.now, target.len);
        let waits = start.saturating_sub(self.now) + self.timing.payload(target.len);
        let answer = self.answer_time(slot).saturating_add(waits);
        self.queue.push(Event::new(answer, Kind::Complete, slot));
    }

    /// A result has reached its poster.
    #[inline]
    fn complete(&mut self, slot: u32) {
        let op = self.slab.get_mut(slot);
        let (poster, awaited, detached) = (op.poster, op.awaited, op.detached);
        op.done = true;
        if op.verb == Verb::Get && op.cargo.is_some() {
            self.store_got(slot);
        }
        if detached {
            self.slab.free(slot);
        } else if awaited {
            self.wake(poster);
        }
        self.release(poster);
    }

    /// Puts what was got into the poster's registered memory, if that is where it is to go.
    fn store_got(&mut self, slot: u32) {
        let Some(Cargo { bytes, sink: Some(sink), error: None, .. }) = self.slab.get(slot).cargo.as_deref() else {
            return;
        };
        let sink = *sink;
        if self.memory.is_live(&sink) {
            self.memory.copy_in(&sink, bytes);
            self.touched(&sink);
        } else {
            let error = self.unusable(&sink);
            self.fail(slot, error);
        }
    }

    /// One operation of the rank is over.
    #[inline]
    pub(super) fn release(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        state.outstanding -= 1;
        let (idle, watching, status) = (state.outstanding == 0, state.watching > 0, state.status);
        if state.existing().is_some_and(|extra| !extra.room_line.is_empty()) {
            self.wake(rank);
        }
        if idle && status != Status::Running {
            self.depart(rank);
        } else if idle && watching && self.departed > 0 {
            // Only now can the wait know that nobody will end it.
            self.wake(rank);
        }
    }

    /// These bytes have been written: resume a task that waits for them.
    #[inline]
    pub(super) fn touched(&mut self, place: &Loc) {
        let state = &mut self.ranks[place.rank as usize];
        if state.watching == 0 {
            return;
        }
        let hit = state.existing().is_some_and(|extra| {
            extra.watches.iter().any(|watch| matches!(&watch.what, What::Word(word) if word.overlaps(place)))
        });
        if hit {
            self.wake(place.rank);
        }
    }

    // ----- ends of ranks ---------------------------------------------------------------------

    /// A rank's program is over and its memory deregistered.
    pub(super) fn end_of(&mut self, rank: u32, well: bool) {
        self.close_queues_of(rank);
        let state = &mut self.ranks[rank as usize];
        state.status = if well { Status::Finished } else { Status::Lost };
        let idle = state.outstanding == 0;
        if !well {
            self.first_lost = self.first_lost.or(Some(rank));
            self.loss_unknown = true;
        }
        let waiting: Vec<u32> = match self.ranks[rank as usize].existing() {
            Some(extra) => extra.receive_queue.waiting().collect(),
            None => Vec::new(),
        };
        for other in waiting {
            self.wake(other);
        }
        if idle {
            self.depart(rank);
        }
    }

    /// Lets every waiting rank know of losses since the last call.
    #[inline]
    pub(super) fn spread_losses(&mut self) {
        if !core::mem::take(&mut self.loss_unknown) {
            return;
        }
        for rank in 0..self.ranks.len() as u32 {
            if self.ranks[rank as usize].watching > 0 {
                self.wake(rank);
            }
        }
    }

    /// Nothing of the rank is under way any more.
    fn depart(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        if core::mem::replace(&mut state.departed, true) {
            return;
        }
        self.departed += 1;
        if let Some(extra) = state.take_extra() {
            for other in extra.dependents {
                self.wake(other);
            }
        }
        if self.departed as usize + 1 == self.ranks.len() {
            // The last one may wait for all the others.
            if let Some(last) = self.ranks.iter().position(|state| !state.departed) {
                self.wake(last as u32);
            }
        }
    }
}
