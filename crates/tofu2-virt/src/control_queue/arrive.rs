//! The receive side: the effects of commands at their target.

use super::{
    super::{
        clock::EventKind,
        core::Core,
        faults::LateCredit,
        memory::{Loc, Memory},
        operation::{Op, Opcode},
        ranks::Status,
    },
    Queues,
    toq::Advance,
};
use rdma_fabric::control_queue::{MrqNotice, QueueError, QueueId, Stadd};

impl Core {
    /// Handles a `Reach` event: a command has passed its target's receive engine.
    #[inline]
    pub(crate) fn reach(&mut self, slot: u32) {
        self.queues.counts.arrived += 1;
        if let Some(timeline) = &mut self.timeline {
            timeline.command_reached(&self.machine, &self.queues, slot, self.clock.now());
        }
        if !self.queues.holds(slot) {
            self.take_effect(slot);
        }
    }

    /// Executes a command at its target.
    pub(super) fn take_effect(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        let (to, opcode, from) = (flight.to, flight.opcode, flight.from);
        if self.ranks.is_lost(flight.rank) {
            // The loss is known to all ranks by now (E4).
            return self.refuse(slot, QueueError::PeerLost(from));
        }
        let target = match self.target(to) {
            Ok(target) => target,
            Err(error) => return self.refuse(slot, error),
        };
        match opcode {
            Opcode::Put => self.put_arrives(slot, target),
            Opcode::Get => self.get_arrives(slot, target),
            _ => self.atomic_arrives(slot, target),
        }
    }

    /// Returns the queue that a command addresses.
    fn target(&self, to: QueueId) -> Result<u32, QueueError> {
        let rank = to.rank().number();
        match self.queues.find(to, self.machine.node_of(rank)) {
            Some(queue) if self.queues.get(queue).has_stopped() => Err(QueueError::Stopped(to)),
            Some(queue) => Ok(queue),
            None if self.ranks.status_of(rank) == Some(Status::Lost) => Err(QueueError::PeerLost(to)),
            None => Err(QueueError::NotOpen(to)),
        }
    }

    /// Refuses a command: it has no effect at the target, and the poster receives the error.
    fn refuse(&mut self, slot: u32, error: QueueError) {
        let flight = self.queues.flights.get_mut(slot);
        flight.status = Err(error);
        let (queue, to, atomic) = (flight.queue, flight.to, flight.opcode.is_atomic());
        if atomic {
            let engine = self.receive_engine(self.queues.flights.get(slot));
            self.free_receiver(self.machine.node_of(to.rank().number()), engine);
            self.answer_later(slot, 0);
            return self.atomic_over(queue, to);
        }
        self.answer_later(slot, 0);
    }

    fn put_arrives(&mut self, slot: u32, target: u32) {
        let flight = self.queues.flights.get(slot);
        let (at, len, sps) = (flight.at, flight.len, flight.sps);
        let to = match self.queues.written(&self.memory, target, at, len.into()) {
            Ok(to) => to,
            Err(error) => return self.refuse(slot, error),
        };
        self.memory.copy_in(&to, flight.payload());
        self.ranks.touched(&to);
        self.queues.counts.visible += 1;
        self.leave_remote_notice(slot, target, at + u64::from(len));
        if sps > 0 {
            self.advance(slot, target, sps);
        }
        let flight = self.queues.flights.get(slot);
        if flight.wants.local_notice || flight.status.is_err() {
            return self.answer_later(slot, 0);
        }
        self.flight_ends(slot);
    }

    /// Advances the session offset of a put's target, after the put's bytes and notice.
    fn advance(&mut self, slot: u32, target: u32, sps: u8) {
        let flight = self.queues.flights.get(slot);
        let (poster, from, position, poster_checks) = (flight.queue, flight.from, flight.slot, flight.wants.checked);
        let chains = flight.chains();
        let state = self.queues.get(target);
        if state.has_stopped() {
            return;
        }
        let generation = self.queues.slots[target as usize].generation;
        let credit = LateCredit { queue: target, generation, slots: sps };
        if state.toq.has_offset()
            && let Some((index, by)) = self.injector.credit_late(state.rank, credit)
        {
            self.clock.push(self.clock.now().saturating_add(by), EventKind::Credit, index);
            self.queues.counts.released += 1;
            return;
        }
        match self.move_offset(target, sps, Some((poster, position)), chains) {
            Some(true) => self.queues.counts.released += 1,
            Some(false) => {}
            None if poster_checks => {
                let error = QueueError::CreditIgnored { queue: from, sps };
                self.queues.flights.get_mut(slot).status = Err(error);
            }
            None => {}
        }
    }

    /// Advances the session offset of a queue and starts the commands that this releases. Returns
    /// whether the offset moved; `None` if the queue has none. `by` is the queue and slot of the
    /// put that caused this, if known, and `chains` whether it came from a queue of the same rank.
    fn move_offset(&mut self, queue: u32, slots: u8, by: Option<(u32, u64)>, chains: bool) -> Option<bool> {
        let state = self.queues.get_mut(queue);
        match state.toq.advance(slots) {
            Advance::Ignored => return None,
            Advance::Wrapped { would_be } if state.checked => {
                let (id, read, depth) = (state.id, state.toq.pointers().read, state.toq.depth());
                self.stop(queue, QueueError::CreditOverrun { queue: id, read, scheduled: would_be, depth });
                return Some(false);
            }
            Advance::Moved | Advance::Wrapped { .. } => {}
        }
        if chains {
            state.chained = state.toq.pointers().scheduled;
        }
        if let Some(timeline) = &mut self.timeline {
            timeline.offset_advanced(&self.machine, &self.queues, queue, slots, by, self.clock.now());
        }
        self.kick(queue);
        Some(true)
    }

    /// Handles a `Credit` event: executes a delayed advance, unless the queue is closed or has
    /// stopped.
    pub(crate) fn late_advance(&mut self, index: u32) {
        let Some(LateCredit { queue, generation, slots }) = self.injector.late_credit(index) else { return };
        if self.queues.is_open(queue, generation) && !self.queues.get(queue).has_stopped() {
            self.move_offset(queue, slots, None, false);
        }
    }

    /// Makes the first half of a put's bytes visible while the rest is still in flight.
    pub(crate) fn half_of_flight(&mut self, slot: u32) {
        let flight = self.queues.flights.get(slot);
        if self.ranks.is_lost(flight.rank) {
            return;
        }
        let (to, at, half) = (flight.to, flight.at, flight.len as usize / 2);
        let Ok(target) = self.target(to) else { return };
        let Ok(to) = self.queues.written(&self.memory, target, at, half as u64) else { return };
        let flight = self.queues.flights.get(slot);
        if flight.bytes.len() >= half {
            self.memory.copy_in(&to, &flight.bytes[..half]);
            self.ranks.touched(&to);
        }
    }

    fn get_arrives(&mut self, slot: u32, target: u32) {
        let flight = self.queues.flights.get(slot);
        let (at, len, to) = (flight.at, flight.len, flight.to);
        let cut = flight.cut(&self.machine.timing);
        let engine = u32::from(self.receive_engine(flight));
        let from = match self.queues.own_memory(&self.memory, target, at, len) {
            Ok(from) => from,
            Err(error) => return self.refuse(slot, error),
        };
        let (word, bytes) = self.queues.flights.read(&self.memory, &from);
        let flight = self.queues.flights.get_mut(slot);
        flight.a = word;
        if len > 8 {
            flight.bytes = bytes;
        }
        self.queues.counts.visible += 1;
        self.leave_remote_notice(slot, target, at + u64::from(len));
        let payload = cut.payload(&self.machine.timing, len.into());
        let node = self.machine.node_of(to.rank().number());
        let start = self.senders.occupy(node, engine, self.clock.now(), self.machine.timing.gap.max(payload));
        self.answer_later(slot, start.saturating_sub(self.clock.now()) + payload);
    }

    fn atomic_arrives(&mut self, slot: u32, target: u32) {
        let flight = self.queues.flights.get(slot);
        let (rank, at, width, to) = (flight.rank, flight.at, flight.len as u8, flight.to);
        let (opcode, a, b) = (flight.opcode, flight.a, flight.b);
        let engine = self.receive_engine(flight);
        let place = if at.offset() % u64::from(width) == 0 {
            self.queues.written(&self.memory, target, at, width.into())
        } else {
            Err(QueueError::Misaligned { queue: to, stadd: at, width })
        };
        let place = match place {
            Ok(place) => place,
            Err(error) => return self.refuse(slot, error),
        };
        let mut op = Op::new(opcode, rank, place);
        (op.a, op.b, op.at, op.engine, op.flight) = (a, b, self.clock.now(), engine, slot);
        let op = self.operations.insert(op);
        self.queue_atomic(op);
    }

    /// Finishes a command that the atomic unit has executed; `old` is `None` if its memory was
    /// deregistered by then.
    pub(crate) fn atomic_served(&mut self, slot: u32, old: Option<u64>) {
        let flight = self.queues.flights.get_mut(slot);
        let (queue, to, at) = (flight.queue, flight.to, flight.at);
        match old {
            Some(old) => {
                flight.a = old;
                self.queues.counts.visible += 1;
                if let Ok(target) = self.target(to) {
                    self.leave_remote_notice(slot, target, at);
                }
            }
            None => flight.status = Err(QueueError::Stale { queue: to, stadd: at }),
        }
        self.answer_later(slot, 0);
        self.atomic_over(queue, to);
    }

    fn leave_remote_notice(&mut self, slot: u32, target: u32, remote: Stadd) {
        let flight = self.queues.flights.get(slot);
        if flight.wants.remote_notice {
            let (kind, peer, edata) = (flight.remote_kind(), flight.from, flight.edata);
            let zero = Stadd::from_bits(0);
            self.notify(target, MrqNotice { kind, peer, edata, value: 0, local: zero, remote, status: Ok(()) });
        }
    }
}

/// Address resolution of queues.
impl Queues {
    /// Returns the memory behind an address of an open queue, and whether it is read-only.
    #[inline]
    fn resolve(&self, memory: &Memory, queue: u32, at: Stadd, len: u64) -> Result<(Loc, bool), QueueError> {
        let state = self.get(queue);
        let there = self.spaces[state.space as usize].find(at);
        let there = there.ok_or(QueueError::NoSuchTag { queue: state.id, stadd: at })?;
        if at.offset().saturating_add(len) > there.len {
            return Err(QueueError::OutOfBounds { queue: state.id, stadd: at, len, registered: there.len });
        }
        let loc = Loc::new(state.rank, there.key, at.offset(), len);
        if !memory.is_live(&loc) {
            return Err(QueueError::Stale { queue: state.id, stadd: at });
        }
        Ok((loc, there.read_only))
    }

    /// Returns memory for a peer's write.
    #[inline]
    fn written(&self, memory: &Memory, queue: u32, at: Stadd, len: u64) -> Result<Loc, QueueError> {
        match self.resolve(memory, queue, at, len)? {
            (_, true) => Err(QueueError::ReadOnly { queue: self.get(queue).id, stadd: at }),
            (loc, false) => Ok(loc),
        }
    }

    /// Returns memory of the queue's own rank.
    #[inline]
    pub(super) fn own_memory(&self, memory: &Memory, queue: u32, at: Stadd, len: u32) -> Result<Loc, QueueError> {
        self.resolve(memory, queue, at, len.into()).map(|(loc, _)| loc)
    }
}
