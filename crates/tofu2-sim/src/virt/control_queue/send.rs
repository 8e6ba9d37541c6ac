//! The send side: queues ask their engine for one command after the other.

use super::{
    super::{
        core::Core,
        event::{Event, Kind},
        network::Packet,
        op::Verb,
        topology::PathId,
    },
    Cut, Want,
    flight::{FLIGHT, Flight, Wants},
    life::Point,
    toq::Order,
};
use rdma_fabric::control_queue::{Command, Completion, QueueError, QueueId, Stadd, Width};

impl Core {
    /// Lets a queue ask its engine for the next command, if there is one that may start and it has not asked yet.
    #[inline]
    pub(super) fn kick(&mut self, queue: u32) {
        loop {
            let state = self.queues.get(queue);
            if state.due || state.closed || state.has_stopped() {
                return;
            }
            let Some((order, written_at)) = state.toq.runnable() else { return };
            let (rank, node, engine) = (state.rank, state.node, u32::from(state.id.engine()));
            let picos = self.occupies(queue, &order);
            let number = self.queues.get(queue).id.number();
            let from = self.unless_stalled(rank, engine as u8, number, self.now.max(written_at));
            let start = self.senders.occupy(node, engine, from, picos);
            self.queues.get_mut(queue).due = true;
            self.command_begins(rank);
            if start > self.now {
                self.queue.push(Event::new(start, Kind::Start, queue));
                return;
            }
            self.start_next(queue);
        }
    }

    /// A `Start` event has come.
    #[inline]
    pub(in super::super) fn start(&mut self, queue: u32) {
        self.start_next(queue);
        if self.queues.slots[queue as usize].state.is_some() {
            self.kick(queue);
        }
    }

    /// How long a command occupies the send engine. One that has nothing to send takes the shortest time.
    fn occupies(&self, queue: u32, order: &Order) -> u64 {
        let payload = match order.posting.command {
            Command::Put { from, len, blocks, .. } if len > 8 => {
                let from = from + blocks.stride.saturating_mul(order.block.into());
                match self.own_memory(queue, from, len) {
                    Ok(_) => {
                        Cut::new(&self.timing, order.posting.mtu, order.posting.gap).payload(&self.timing, len.into())
                    }
                    Err(_) => 0,
                }
            }
            Command::PutInline { bytes, .. } => self.timing.payload(bytes.as_bytes().len() as u64),
            _ => 0,
        };
        self.timing.gap.max(payload)
    }

    /// The engine fetches the queue's next command and executes it. The promise it was asked for passes to the flight.
    fn start_next(&mut self, queue: u32) {
        let now = self.now;
        let state = self.queues.get_mut(queue);
        state.due = false;
        let rank = state.rank;
        let order = if state.closed || state.has_stopped() { None } else { state.toq.take() };
        let Some(order) = order else {
            // Closed, stopped, or the credit was lost to a wrap meanwhile.
            self.command_ends(rank);
            return self.queues.retire(queue);
        };
        let waiting = !state.line.is_empty();
        self.queues.life.pass(Point::Started, now, queue, order.slot, 1);
        if waiting && self.awaits(rank, queue, Some(Want::Room)) {
            self.wake(rank);
        }
        let sent = now.saturating_add(self.timing.send);
        if order.posting.command == Command::Nop {
            self.seen_started(queue, order.slot, &Command::Nop, sent);
            self.sent(queue, &order, sent, Ok(()));
            return self.command_ends(rank);
        }
        match self.prepare(queue, &order) {
            Ok(flight) => {
                let payload = self.payload_of(&flight);
                self.seen_started(queue, order.slot, &order.posting.command, sent.saturating_add(payload));
                self.sent(queue, &order, sent.saturating_add(payload), Ok(()));
                self.dispatch(flight, sent, payload);
            }
            Err(error) => {
                self.seen_failed(queue, order.slot);
                self.sent(queue, &order, sent, Err(error));
                self.command_ends(rank);
            }
        }
    }

    /// Picoseconds that a flight's payload takes on its way there.
    #[inline]
    fn payload_of(&self, flight: &Flight) -> u64 {
        match flight.verb {
            Verb::Put => Cut::new(&self.timing, flight.mtu, flight.gap).payload(&self.timing, flight.len.into()),
            _ => 0,
        }
    }

    /// A command has left the send engine at `at`, or failed there: its completion.
    #[inline]
    fn sent(&mut self, queue: u32, order: &Order, at: u64, status: Result<(), QueueError>) {
        if status.is_ok() {
            self.queues.life.pass(Point::Sent, at, queue, order.slot, 1);
        }
        if matches!(order.posting.command, Command::Nop) || order.posting.command.advances() {
            self.queues.life.pass(Point::Completed, at, queue, order.slot, 1);
        }
        if order.posting.tcq_notice {
            self.completed(queue, at, Completion { tag: order.posting.tag, status });
        } else if let Err(error) = status {
            self.unasked(queue, error);
        }
    }

    /// Makes the flight of a command; own memory is read now.
    fn prepare(&mut self, queue: u32, order: &Order) -> Result<Flight, QueueError> {
        let state = self.queues.get(queue);
        let (rank, from, checked) = (state.rank, state.id, state.checked);
        let posting = &order.posting;
        let new = |to: QueueId, verb: Verb, at: Stadd| Flight::new(rank, queue, from, to, verb, at);
        let mut flight = match posting.command {
            Command::Put { to, from, at, len, blocks } => {
                let offset = blocks.stride.saturating_mul(order.block.into());
                let own = self.own_memory(queue, from + offset, len)?;
                let mut flight = new(to, Verb::Put, at + offset);
                flight.len = len;
                if len <= 8 {
                    let mut word = [0; 8];
                    self.memory.copy_out(&own, &mut word[..len as usize]);
                    flight.a = u64::from_ne_bytes(word);
                } else {
                    flight.bytes = self.queues.flights.buffer();
                    self.memory.append_to(&own, &mut flight.bytes);
                }
                flight
            }
            Command::PutInline { to, bytes, at } => {
                let mut flight = new(to, Verb::Put, at);
                let bytes = bytes.as_bytes();
                flight.len = bytes.len() as u32;
                if bytes.len() <= 8 {
                    let mut word = [0; 8];
                    word[..bytes.len()].copy_from_slice(bytes);
                    flight.a = u64::from_ne_bytes(word);
                } else {
                    flight.bytes = self.queues.flights.buffer();
                    flight.bytes.extend_from_slice(bytes);
                }
                flight
            }
            Command::Get { to, from, at, len, blocks } => {
                let offset = blocks.stride.saturating_mul(order.block.into());
                self.own_memory(queue, at + offset, len)?;
                let mut flight = new(to, Verb::Get, from + offset);
                (flight.own, flight.len) = (at + offset, len);
                flight
            }
            Command::Atomic { to, at, width, amo } => {
                let (verb, a, b) = Verb::of(amo);
                let mut flight = new(to, verb, at);
                (flight.len, flight.a, flight.b) = (width as u32, low(width, a), low(width, b));
                flight
            }
            Command::Nop => new(from, Verb::Nop, Stadd::fixed(0)),
        };
        flight.slot = order.slot;
        flight.wants = Wants {
            local_notice: posting.local_notice,
            remote_notice: posting.remote_notice,
            strong_order: posting.strong_order,
            checked,
        };
        (flight.edata, flight.mtu, flight.gap) = (posting.edata, posting.mtu, posting.gap);
        flight.path = posting.path.and_then(|path| PathId::new(path).ok());
        flight.sps = if posting.command.advances() { posting.sps } else { 0 };
        Ok(flight)
    }

    /// Gives a flight to the network; its payload takes `payload` picoseconds.
    fn dispatch(&mut self, mut flight: Flight, sent: u64, payload: u64) {
        self.queues.get_mut(flight.queue).flights += 1;
        let from = self.node_of(flight.rank);
        if !self.target_exists(flight.to) {
            flight.status = Err(QueueError::NotOpen(flight.to));
            let at = sent.saturating_add(payload + self.timing.receive + self.timing.post);
            let slot = self.queues.flights.insert(flight);
            return self.queue.push(Event::new(at, Kind::Answer, slot));
        }
        let to = self.node_of(flight.to.rank().number());
        let trip = self.map.trip(from, to, (flight.rank, flight.to.rank().number()), flight.path);
        let wire = self.timing.wire(trip.there);
        flight.back = self.timing.wire(trip.back);
        self.queues.line_up(&mut flight);
        let extra = self.chance.extra();
        if self.has_router() {
            let atomic = flight.verb.is_atomic();
            let engine = self.receive_engine(&flight);
            let mut packet = Packet::new(0, to, engine, atomic, trip.path);
            let cut = Cut::new(&self.timing, flight.mtu, flight.gap);
            let bytes = if flight.verb == Verb::Put { u64::from(flight.len) } else { 0 };
            let sender = flight.from.engine();
            packet.op = self.queues.flights.insert(flight) | FLIGHT;
            let enters = self.over_links(from, to, sent.saturating_add(extra), payload);
            return self.inject(from, sender, packet, enters, bytes, cut);
        }
        let (rank, verb, len) = (flight.to.rank().number(), flight.verb, flight.len);
        let may_be_halved = !flight.wants.strong_order;
        let slot = self.queues.flights.insert(flight);
        let arrival = sent.saturating_add(wire + payload + self.timing.receive).saturating_add(extra);
        let arrival = self.over_links(from, to, arrival, payload);
        if may_be_halved && let Some(early) = self.half_seen(rank, verb, len.into(), arrival) {
            self.queue.push(Event::detailed(early, Kind::Half, slot, 1));
        }
        self.on_its_way(slot, arrival);
    }

    /// A router's receive engine has taken a flight's packet.
    pub(in super::super) fn packet_of_flight(&mut self, slot: u32, last: bool) {
        if !last {
            return;
        }
        let flight = self.queues.flights.get(slot);
        let tail = match flight.verb {
            Verb::Put => Cut::new(&self.timing, flight.mtu, flight.gap).tail(&self.timing, flight.len.into()),
            _ => 0,
        };
        self.on_its_way(slot, self.now.saturating_add(self.timing.receive + tail));
    }

    /// A flight will be through the target's receive engine at this time.
    #[inline]
    fn on_its_way(&mut self, slot: u32, arrival: u64) {
        let arrival = if self.chance.is_active() { self.queues.arrives_in_order(slot, arrival) } else { arrival };
        self.queue.push(Event::new(arrival, Kind::Reach, slot));
    }

    /// The target's receive engine: that of the target queue's TNI. Atomics use only as many as the job has for them.
    #[inline]
    pub(super) fn receive_engine(&self, flight: &Flight) -> u8 {
        let engine = u32::from(flight.to.engine()).min(self.timing.engines - 1);
        (if flight.verb.is_atomic() { engine % self.receive_engines } else { engine }) as u8
    }

    /// A command of the rank is under way, whatever becomes of its queue.
    #[inline]
    fn command_begins(&mut self, rank: u32) {
        let state = &mut self.ranks[rank as usize];
        state.outstanding += 1;
        state.extra().commands += 1;
    }

    /// It is over.
    #[inline]
    pub(super) fn command_ends(&mut self, rank: u32) {
        if let Some(extra) = self.ranks[rank as usize].existing() {
            extra.commands -= 1;
        }
        self.release(rank);
    }
}

/// What of an operand counts.
fn low(width: Width, operand: u64) -> u64 {
    match width {
        Width::Four => u64::from(operand as u32),
        Width::Eight => operand,
    }
}
