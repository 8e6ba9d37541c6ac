//! The send side: queues request their engine for one command after another.

use super::{
    super::{clock::EventKind, core::Core, network::Packet, operation::Opcode, ranks::QueueReport, topology::PathId},
    Cut,
    flight::{FLIGHT, Flight, Wants},
    toq::Order,
};
use rdma_fabric::{
    Atomics, FabricError, Refused,
    control_queue::{Command, Completion, Posting, QueueError, QueueId, Stadd, Width},
};

impl Core {
    /// Writes a post into the queue's TOQ, by the CPU `lane`. `ticket` is the poster's place in the
    /// line, if it has one.
    pub(super) fn post_command(
        &mut self,
        queue: u32,
        posting: &Posting,
        ticket: Option<u64>,
        lane: u32,
    ) -> Result<(), Refused<()>> {
        let failed = |error: QueueError| Err(Refused::Failed(error.into(), ()));
        if matches!(posting.command, Command::Atomic { .. }) && self.machine.timing.atomics == Atomics::None {
            return Err(Refused::Failed(FabricError::Unsupported { feature: &"atomics" }, ()));
        }
        let state = self.queues.get_mut(queue);
        if let Err(error) = state.check(posting, &self.machine.timing) {
            return failed(error);
        }
        if let Some(error) = state.end() {
            return failed(error);
        }
        let first = state.line.front().copied();
        if first.is_some() && first != ticket || !state.toq.has_room(posting.command.slots()) {
            return Err(Refused::Full(()));
        }
        let written_at = self.ranks.occupy_cpu(lane, self.clock.now(), self.machine.timing.post);
        let slot = state.toq.push(*posting, written_at);
        self.queues.counts.posted += u64::from(posting.command.commands());
        if let Some(timeline) = &mut self.timeline {
            timeline.command_posted(&self.machine, &self.queues, (queue, slot), posting, (lane, written_at));
        }
        self.kick(queue);
        Ok(())
    }

    /// Makes a queue request its engine for the next command, if there is one that may start and
    /// the queue has no request pending.
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
            let from = self.injector.unless_stalled(rank, engine as u8, number, self.clock.now().max(written_at));
            let start = self.senders.occupy(node, engine, from, picos);
            self.queues.get_mut(queue).due = true;
            self.ranks.begin_command(rank);
            if start > self.clock.now() {
                self.clock.push(start, EventKind::Start, queue);
                return;
            }
            self.start_next(queue);
        }
    }

    /// Handles a `Start` event.
    #[inline]
    pub(crate) fn start(&mut self, queue: u32) {
        self.start_next(queue);
        if self.queues.slots[queue as usize].state.is_some() {
            self.kick(queue);
        }
    }

    /// Returns how long a command occupies the send engine. A command that sends no payload takes
    /// the shortest time.
    fn occupies(&self, queue: u32, order: &Order) -> u64 {
        let timing = &self.machine.timing;
        let payload = match order.posting.command {
            Command::Put { from, len, blocks, .. } if len > 8 => {
                let from = from + blocks.stride.saturating_mul(order.block.into());
                match self.queues.own_memory(&self.memory, queue, from, len) {
                    Ok(_) => Cut::new(timing, order.posting.mtu, order.posting.gap).payload(timing, len.into()),
                    Err(_) => 0,
                }
            }
            Command::PutInline { bytes, .. } => timing.payload(bytes.as_bytes().len() as u64),
            _ => 0,
        };
        timing.gap.max(payload)
    }

    /// Fetches the queue's next command and executes it, for the engine. The flight takes over the
    /// command that [`Core::kick`] counted as in flight.
    fn start_next(&mut self, queue: u32) {
        let now = self.clock.now();
        let state = self.queues.get_mut(queue);
        state.due = false;
        let rank = state.rank;
        let order = if state.closed || state.has_stopped() { None } else { state.toq.take() };
        let Some(order) = order else {
            // The queue was closed or stopped, or lost its credit to a wrap.
            self.ranks.release_command(rank);
            return self.queues.retire(queue);
        };
        let waiting = !state.line.is_empty();
        self.queues.counts.started += 1;
        if waiting {
            self.wake_awaiting(rank, queue, Some(QueueReport::Room));
        }
        let sent = now.saturating_add(self.machine.timing.send);
        let prepared = match order.posting.command {
            Command::Nop => Ok(None),
            _ => self.prepare(queue, &order).map(Some),
        };
        let flight = match prepared {
            Ok(flight) => flight,
            Err(error) => {
                if let Some(timeline) = &mut self.timeline {
                    timeline.command_failed(queue, order.slot);
                }
                self.sent(queue, &order, sent, Err(error));
                return self.ranks.release_command(rank);
            }
        };
        // The time that a put's payload takes.
        let payload = match &flight {
            Some(flight) if flight.opcode == Opcode::Put => {
                flight.cut(&self.machine.timing).payload(&self.machine.timing, flight.len.into())
            }
            _ => 0,
        };
        let (place, command, out) = ((queue, order.slot), &order.posting.command, sent.saturating_add(payload));
        if let Some(timeline) = &mut self.timeline {
            timeline.command_started(&self.machine, &self.queues, place, command, (now, out));
        }
        self.sent(queue, &order, out, Ok(()));
        match flight {
            Some(flight) => self.dispatch(flight, sent, payload),
            None => self.ranks.release_command(rank),
        }
    }

    /// Reports that a command has left the send engine at `at`, or has failed there.
    #[inline]
    fn sent(&mut self, queue: u32, order: &Order, at: u64, status: Result<(), QueueError>) {
        if status.is_ok() {
            self.queues.counts.sent += 1;
        }
        if matches!(order.posting.command, Command::Nop) || order.posting.command.advances() {
            self.queues.counts.completed += 1;
        }
        if order.posting.tcq_notice {
            self.completed(queue, at, Completion { tag: order.posting.tag, status });
        } else if let Err(error) = status {
            self.unasked(queue, error);
        }
    }

    /// Creates the flight of a command, reading the poster's memory now.
    fn prepare(&mut self, queue: u32, order: &Order) -> Result<Flight, QueueError> {
        let state = self.queues.get(queue);
        let (rank, from, checked) = (state.rank, state.id, state.checked);
        let posting = &order.posting;
        let new = |to: QueueId, opcode: Opcode, at: Stadd| Flight::new(rank, queue, from, to, opcode, at);
        let mut flight = match posting.command {
            Command::Put { to, from, at, len, blocks } => {
                let offset = blocks.stride.saturating_mul(order.block.into());
                let own = self.queues.own_memory(&self.memory, queue, from + offset, len)?;
                let mut flight = new(to, Opcode::Put, at + offset);
                flight.len = len;
                (flight.a, flight.bytes) = self.queues.flights.read(&self.memory, &own);
                flight
            }
            Command::PutInline { to, bytes, at } => {
                let mut flight = new(to, Opcode::Put, at);
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
                self.queues.own_memory(&self.memory, queue, at + offset, len)?;
                let mut flight = new(to, Opcode::Get, from + offset);
                (flight.own, flight.len) = (at + offset, len);
                flight
            }
            Command::Atomic { to, at, width, amo } => {
                let (opcode, a, b) = Opcode::of(amo);
                let mut flight = new(to, opcode, at);
                (flight.len, flight.a, flight.b) = (width as u32, low(width, a), low(width, b));
                flight
            }
            Command::Nop => new(from, Opcode::Nop, Stadd::fixed(0)),
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

    /// Passes a flight to the network; its payload takes `payload` picoseconds.
    fn dispatch(&mut self, mut flight: Flight, sent: u64, payload: u64) {
        let state = self.queues.get_mut(flight.queue);
        state.flights += 1;
        let sent = match flight.chains() && flight.slot >= state.chained {
            true => sent.saturating_add(self.machine.timing.queues.chain),
            false => sent,
        };
        let from = self.machine.node_of(flight.rank);
        let target = flight.to.rank().number();
        if target >= self.machine.ranks {
            flight.status = Err(QueueError::NotOpen(flight.to));
            let at = sent.saturating_add(payload + self.machine.timing.receive + self.machine.timing.post);
            let slot = self.queues.flights.insert(flight);
            return self.clock.push(at, EventKind::Answer, slot);
        }
        let to = self.machine.node_of(target);
        let trip = self.machine.map.trip(from, to, (flight.rank, target), flight.path);
        let wire = self.machine.timing.wire(trip.there);
        flight.back = self.machine.timing.wire(trip.back);
        self.queues.line_up(&mut flight);
        let extra = self.clock.extra();
        if self.network.has_router() {
            let atomic = flight.opcode.is_atomic();
            let engine = self.receive_engine(&flight);
            let mut packet = Packet::new(0, to, engine, atomic, trip.path);
            let cut = flight.cut(&self.machine.timing);
            let bytes = if flight.opcode == Opcode::Put { u64::from(flight.len) } else { 0 };
            let sender = flight.from.engine();
            packet.op = self.queues.flights.insert(flight) | FLIGHT;
            let enters = sent.saturating_add(extra);
            packet.born = self.injector.over_links(self.clock.now(), (from, to), enters, payload);
            self.network.inject(&self.machine, &mut self.clock, (from, sender), packet, bytes, cut);
            return self.deliver();
        }
        let (opcode, len) = (flight.opcode, flight.len);
        let may_be_halved = !flight.wants.strong_order;
        let slot = self.queues.flights.insert(flight);
        let (timing, now) = (&self.machine.timing, self.clock.now());
        let arrival = sent.saturating_add(wire + payload + timing.receive).saturating_add(extra);
        let arrival = self.injector.over_links(now, (from, to), arrival, payload);
        if may_be_halved && let Some(early) = self.injector.half_seen(timing, now, target, opcode, len.into(), arrival)
        {
            self.clock.push_detailed(early, EventKind::Half, slot, 1);
        }
        self.on_its_way(slot, arrival);
    }

    /// Handles a packet of a flight that a router's receive engine has taken.
    pub(crate) fn packet_of_flight(&mut self, slot: u32, last: bool) {
        if !last {
            return;
        }
        let flight = self.queues.flights.get(slot);
        let tail = match flight.opcode {
            Opcode::Put => flight.cut(&self.machine.timing).tail(&self.machine.timing, flight.len.into()),
            _ => 0,
        };
        self.on_its_way(slot, self.clock.now().saturating_add(self.machine.timing.receive + tail));
    }

    /// Schedules the `Reach` event of a flight that will have passed the target's receive engine at
    /// `arrival`.
    #[inline]
    fn on_its_way(&mut self, slot: u32, arrival: u64) {
        let arrival = if self.clock.is_random() { self.queues.arrives_in_order(slot, arrival) } else { arrival };
        self.clock.push(arrival, EventKind::Reach, slot);
    }

    /// Returns the receive engine at the target: that of the target queue's TNI. Atomics use only
    /// as many engines as the job provides for them.
    #[inline]
    pub(super) fn receive_engine(&self, flight: &Flight) -> u8 {
        let engine = u32::from(flight.to.engine()).min(self.machine.timing.engines - 1);
        (if flight.opcode.is_atomic() { engine % self.machine.receive_engines } else { engine }) as u8
    }
}

/// Returns the part of an operand that is used.
fn low(width: Width, operand: u64) -> u64 {
    match width {
        Width::Four => u64::from(operand as u32),
        Width::Eight => operand,
    }
}
