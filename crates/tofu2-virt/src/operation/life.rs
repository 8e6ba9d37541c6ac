//! The life cycle of an operation: posted, in flight, served at its target, complete at its poster.

use super::{
    super::{clock::EventKind, control_queue::Cut, core::Core, memory::Loc, network::Packet, slots::NONE},
    Attachment, Op, Opcode,
};
use rdma_fabric::{FabricError, Notice, Rank};

impl Core {
    /// Posts an operation: the CPU writes the command, the send engine takes it, and the network
    /// receives it. Returns the slot and the time at which the source is reusable.
    #[inline]
    pub(crate) fn post(&mut self, op: Op) -> (u32, u64) {
        let posting = self.machine.timing.posting(op.prepared);
        let written = self.ranks.occupy_cpu(op.poster, self.clock.now(), posting);
        self.hand_over(op, written, true)
    }

    /// Passes an operation that its poster's CPU had written at `written` to the send engine. A
    /// timeline shows the write if the operation `is_first` of those written at that time.
    #[inline]
    pub(super) fn hand_over(&mut self, op: Op, written: u64, is_first: bool) -> (u32, u64) {
        let timing = &self.machine.timing;
        let (lane, opcode, target) = (op.poster, op.opcode, op.target);
        let rank = self.ranks.rank_of(lane);
        let (from, to) = (self.machine.node_of(rank), self.machine.node_of(target.rank));
        let local = rank - from * self.machine.ranks_per_node;
        let sender = local % timing.engines;
        let bytes = if opcode == Opcode::Put { target.len } else { 0 };
        self.ranks.begin(lane);
        let start = self.senders.take(timing, from, sender, written, bytes);
        let posted = is_first.then_some(written);
        let sent = start.saturating_add(timing.send);
        self.counts.count(&op, rank, from != to);
        if opcode == Opcode::Nop {
            let slot = self.operations.insert(op);
            if let Some(timeline) = &mut self.timeline {
                timeline.sent(&self.machine, self.operations.get(slot), slot, (rank, posted), (start, sent));
            }
            self.clock.push(sent, EventKind::Complete, slot);
            return (slot, sent);
        }
        self.travel(op, (rank, sender), posted, start)
    }

    /// Sends an operation that the send engine `sender` of a rank's node took at `start`. The rank
    /// is the poster, whose CPU had written the operation at `posted`, or the owner of a copy's
    /// source. Returns the slot and the time at which the source is reusable.
    #[inline]
    fn travel(&mut self, mut op: Op, (rank, sender): (u32, u32), posted: Option<u64>, start: u64) -> (u32, u64) {
        let timing = &self.machine.timing;
        let (opcode, target) = (op.opcode, op.target);
        let (from, to) = (self.machine.node_of(rank), self.machine.node_of(target.rank));
        let local = rank - from * self.machine.ranks_per_node;
        let bytes = if opcode == Opcode::Put { target.len } else { 0 };
        let sent = start.saturating_add(timing.send);
        let receive_engines = self.machine.receive_engines;
        op.engine = if receive_engines == 1 { 0 } else { (local % receive_engines) as u8 };
        let trip = self.machine.map.trip(from, to, (rank, target.rank), None);
        let wire = timing.wire(trip.there);
        let poster = self.ranks.rank_of(op.poster);
        op.back = if rank == poster {
            timing.wire(trip.back)
        } else {
            self.machine.wire_between(to, self.machine.node_of(poster))
        };
        let extra = self.clock.extra();
        let payload = timing.payload(bytes);
        let reusable = sent.saturating_add(payload);
        if self.network.has_router() {
            let mut packet = Packet::new(0, to, op.engine, opcode.is_atomic(), trip.path);
            let slot = self.operations.insert(op);
            packet.op = slot;
            if let Some(timeline) = &mut self.timeline {
                timeline.sent(&self.machine, self.operations.get(slot), slot, (rank, posted), (start, reusable));
            }
            let cut = Cut::usual(timing);
            packet.born = self.injector.over_links(self.clock.now(), (from, to), sent.saturating_add(extra), payload);
            self.network.inject(&self.machine, &mut self.clock, (from, sender as u8), packet, bytes, cut);
            self.deliver();
            return (slot, reusable);
        }
        let arrival = sent.saturating_add(wire + payload + timing.receive).saturating_add(extra);
        let (mut earliest, mut arrival) = (0, self.injector.over_links(self.clock.now(), (from, to), arrival, payload));
        if opcode == Opcode::Put && (timing.ordered_puts || self.clock.is_random() && op.notifies()) {
            (earliest, arrival) = self.network.in_order((rank, target.rank), arrival);
        }
        let slot = self.operations.insert(op);
        if let Some(timeline) = &mut self.timeline {
            timeline.sent(&self.machine, self.operations.get(slot), slot, (rank, posted), (start, reusable));
        }
        let timing = &self.machine.timing;
        if let Some(early) = self.injector.half_seen(timing, self.clock.now(), target.rank, opcode, bytes, arrival) {
            self.clock.push(early.max(earliest), EventKind::Half, slot);
        }
        self.clock.push(arrival, EventKind::Arrive, slot);
        (slot, reusable)
    }

    /// Handles a request that has passed its target's receive engine.
    #[inline]
    pub(crate) fn arrive(&mut self, slot: u32) {
        if let Some(timeline) = &mut self.timeline {
            timeline.arrived(&self.machine, self.operations.get(slot), slot, self.clock.now());
        }
        let op = self.operations.get_mut(slot);
        match op.opcode {
            Opcode::Put => self.arrive_put(slot),
            Opcode::Get => self.arrive_get(slot),
            Opcode::Copy => self.arrive_copy(slot),
            _ => {
                op.at = self.clock.now();
                self.queue_atomic(slot);
            }
        }
    }

    /// Returns whether an operation that has reached its target takes effect there: its memory may
    /// be deregistered, or the loss of its poster known (E4).
    #[inline]
    fn takes_effect(&self, poster: u32, target: &Loc) -> bool {
        self.memory.is_live(target) && !self.ranks.is_lost(poster)
    }

    /// Handles an operation that the atomic unit of a node has finished.
    pub(crate) fn served(&mut self, node: u32) {
        let slot = self.units.finish(node);
        if let Some(timeline) = &mut self.timeline {
            timeline.served(&self.machine, self.operations.get(slot), slot, self.clock.now());
        }
        let takes_effect = self.takes_effect(self.operations.get(slot).poster, &self.operations.get(slot).target);
        let op = self.operations.get_mut(slot);
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
            self.ranks.touched(&target);
        } else if flight == NONE {
            let error = self.unusable(&target);
            self.fail(slot, error);
        }
        if flight == NONE {
            if poster < self.machine.ranks {
                self.ranks.prefetch(poster);
                self.soon = Some(poster);
            }
            let answer = self.answer_time(slot);
            self.clock.push(answer, EventKind::Complete, slot);
        } else {
            self.operations.retire(slot);
        }
        self.units.start(&self.machine.timing, &self.operations, &mut self.clock, node);
        self.free_receiver(node, engine);
        if flight != NONE {
            self.atomic_served(flight, old_value);
        }
    }

    /// Returns the time at which the poster receives the answer that leaves the target now.
    #[inline]
    fn answer_time(&mut self, slot: u32) -> u64 {
        let extra = self.clock.extra();
        let leg = self.machine.timing.leg_back(self.operations.get(slot).back);
        self.clock.now().saturating_add(leg).saturating_add(extra)
    }

    #[cold]
    fn fail(&mut self, slot: u32, error: FabricError) {
        self.operations.get_mut(slot).attachment.get_or_insert_default().error = Some(error);
    }

    fn arrive_put(&mut self, slot: u32) {
        let known_at = self.answer_time(slot);
        let op = self.operations.get_mut(slot);
        let (poster, target, inline, attachment) = (op.poster, op.target, op.a, op.attachment.take());
        self.operations.retire(slot);
        let live = self.takes_effect(poster, &target);
        let error = if live { None } else { Some(self.unusable(&target)) };
        if live {
            match &attachment {
                Some(attachment) if !attachment.bytes.is_empty() => self.write(&target, &attachment.bytes),
                _ => self.write(&target, &inline.to_ne_bytes()[..target.len as usize]),
            }
        }
        if let Some(data) = attachment.and_then(|attachment| attachment.notice) {
            let end = target.offset + target.len;
            let from = Rank::new(self.ranks.rank_of(poster));
            let notice = Notice { from, data, region: target.key(), end };
            self.ranks.leave_notice(target.rank, live.then_some(notice), self.machine.timing.receive_queue);
        }
        self.flushes_end(poster, target.rank, known_at, error);
        self.ranks.release(poster);
    }

    /// Records that a put has taken effect, or failed, at its target, which its poster can know at
    /// `known_at`.
    fn flushes_end(&mut self, poster: u32, target: u32, known_at: u64, error: Option<FabricError>) {
        for (time, others) in self.ranks.put_arrived(poster, target, known_at, error).into_iter().flatten() {
            self.clock.wake_at(poster, time);
            if others {
                let rank = self.ranks.rank_of(poster);
                self.clock.wake_at(rank, time);
                self.ranks.helpers_of(rank).iter().for_each(|&lane| self.clock.wake_at(lane, time));
            }
        }
    }

    /// Handles a `Half` event: the first half of a put's bytes become visible.
    pub(crate) fn half_of_put(&mut self, slot: u32) {
        let op = self.operations.get(slot);
        let mut first = op.target;
        first.len /= 2;
        if let Some(attachment) = &op.attachment
            && self.takes_effect(op.poster, &op.target)
            && attachment.bytes.len() >= first.len as usize
        {
            self.memory.copy_in(&first, &attachment.bytes[..first.len as usize]);
            self.ranks.touched(&first);
        }
    }

    fn arrive_get(&mut self, slot: u32) {
        let op = self.operations.get_mut(slot);
        let target = op.target;
        if !self.memory.is_live(&target) {
            let error = self.unusable(&target);
            self.fail(slot, error);
            let answer = self.answer_time(slot);
            return self.clock.push(answer, EventKind::Complete, slot);
        }
        if target.len <= 8 && op.attachment.is_none() {
            op.a = self.memory.short(&target);
        } else {
            op.attachment.get_or_insert_default().bytes = self.memory.copied(&target);
        }
        let (node, engine) = (self.machine.node_of(target.rank), u32::from(op.engine));
        let (timing, now) = (&self.machine.timing, self.clock.now());
        let start = self.senders.take(timing, node, engine, now, target.len);
        let waits = start.saturating_sub(now) + timing.payload(target.len);
        let answer = self.answer_time(slot).saturating_add(waits);
        self.clock.push(answer, EventKind::Complete, slot);
    }

    /// Handles a copy's command at its source's node, whose send engine puts to the destination. A
    /// message sent after the data notifies the poster that the source is reusable.
    fn arrive_copy(&mut self, slot: u32) {
        let op = self.operations.get_mut(slot);
        let (poster, source) = (op.poster, op.target);
        let Some(to) = op.attachment.as_mut().and_then(|attachment| attachment.sink.take()) else { return };
        if !self.takes_effect(poster, &source) {
            let error = self.unusable(&source);
            self.fail(slot, error);
            let answer = self.answer_time(slot);
            self.flushes_end(poster, to.rank, answer, None);
            return self.clock.push(answer, EventKind::Complete, slot);
        }
        let mut put = Op::new(Opcode::Put, poster, to);
        if source.len <= 8 {
            put.a = self.memory.short(&source);
        } else {
            put.attachment = Some(Box::new(Attachment { bytes: self.memory.copied(&source), ..Attachment::default() }));
        }
        let (timing, now, node) = (&self.machine.timing, self.clock.now(), self.machine.node_of(source.rank));
        let sender = (source.rank - node * self.machine.ranks_per_node) % timing.engines;
        let start = self.senders.take(timing, node, sender, now, source.len);
        self.ranks.begin(poster);
        let (_, reusable) = self.travel(put, (source.rank, sender), None, start);
        let waits = reusable.saturating_sub(now.saturating_add(self.machine.timing.send));
        let answer = self.answer_time(slot).saturating_add(waits);
        self.clock.push(answer, EventKind::Complete, slot);
    }

    /// Handles a result that has reached its poster.
    #[inline]
    pub(crate) fn complete(&mut self, slot: u32) {
        let op = self.operations.get_mut(slot);
        let (poster, awaited, detached) = (op.poster, op.awaited, op.detached);
        op.done = true;
        if op.opcode == Opcode::Get && op.attachment.is_some() {
            self.store_got(slot);
        }
        let waiter = self.ranks.waiter_for(poster, slot);
        if detached {
            self.operations.retire(slot);
        } else if awaited {
            self.ranks.wake(waiter);
        }
        self.ranks.release(poster);
    }

    /// Stores the bytes of a get in the poster's registered memory, if its sink is there.
    fn store_got(&mut self, slot: u32) {
        let attachment = self.operations.get(slot).attachment.as_deref();
        let Some(Attachment { bytes, sink: Some(sink), error: None, .. }) = attachment else { return };
        let sink = *sink;
        if self.memory.is_live(&sink) {
            self.memory.copy_in(&sink, bytes);
            self.ranks.touched(&sink);
        } else {
            let error = self.unusable(&sink);
            self.fail(slot, error);
        }
    }
}
