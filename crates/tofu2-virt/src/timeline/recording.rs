//! The points of a run that a timeline records.

use super::{Activity, SeenCommand, Timeline, Track, commands::Advance};
use crate::{
    control_queue::Queues,
    core::Machine,
    operation::{Op, Opcode},
    platform::Timing,
};
use rdma_fabric::control_queue::{Command, Posting, QueueId};

fn activity(op: &Op, poster: u32) -> Activity {
    let bytes = if op.opcode == Opcode::Nop { 0 } else { op.target.len };
    Activity::Command { opcode: op.opcode, bytes, poster, target: op.target.rank }
}

/// Returns the activity that represents a queue's command. The number of bytes is that of one
/// block.
fn queued(command: &Command, from: QueueId) -> Activity {
    let (opcode, bytes) = match command {
        Command::Put { len, .. } => (Opcode::Put, u64::from(*len)),
        Command::PutInline { bytes, .. } => (Opcode::Put, bytes.as_bytes().len() as u64),
        Command::Get { len, .. } => (Opcode::Get, u64::from(*len)),
        Command::Nop => (Opcode::Nop, 0),
        Command::Atomic { width, amo, .. } => (Opcode::of(*amo).0, *width as u64),
    };
    let target = command.target().unwrap_or(from).rank().number();
    Activity::Command { opcode, bytes, poster: from.rank().number(), target }
}

/// Returns the time for which a command that is taken at `start` and has left at `sent` keeps its
/// engine busy. The rest is latency.
fn engine_busy(timing: &Timing, start: u64, sent: u64) -> u64 {
    sent.saturating_sub(start.saturating_add(timing.send)).max(timing.gap)
}

/// Returns the time for which a put's data, or a request, occupies the receive engine.
fn receiver_busy(timing: &Timing, opcode: Opcode, bytes: u64) -> u64 {
    let payload = if opcode == Opcode::Put { timing.payload(bytes) } else { 0 };
    payload.max(timing.receive)
}

impl Timeline {
    /// Records an operation that the CPU of `rank` finished writing at `posted` (if it did), that
    /// the rank's send engine took at `start`, and that has left it at `sent`.
    #[cold]
    pub(crate) fn sent(
        &mut self,
        machine: &Machine,
        op: &Op,
        slot: u32,
        (rank, posted): (u32, Option<u64>),
        (start, sent): (u64, u64),
    ) {
        let activity = activity(op, self.rank_of(op.poster));
        let (node, timing) = (machine.node_of(rank), &machine.timing);
        let sender = (rank - node * machine.ranks_per_node) % timing.engines;
        let id = self.next_command();
        if op.opcode != Opcode::Nop && self.len() < self.limit {
            self.by_operation.insert(slot, id);
        }
        if let Some(posted) = posted {
            let written = posted.saturating_sub(timing.posting(op.prepared));
            self.slice(node, Track::Cpu(op.poster), written, posted, activity, Some(id));
        }
        let busy = engine_busy(timing, start, sent);
        self.slice(node, Track::Send(sender as u8), start, start.saturating_add(busy), activity, Some(id));
    }

    /// Records that an operation or its data have passed the target's receive engine now.
    #[cold]
    pub(crate) fn arrived(&mut self, machine: &Machine, op: &Op, slot: u32, now: u64) {
        let took = receiver_busy(&machine.timing, op.opcode, op.target.len);
        self.show_at(machine, op, slot, Track::Receive(op.engine), (took, now), !op.opcode.is_atomic());
    }

    /// Records that the atomic unit has finished an operation now.
    #[cold]
    pub(crate) fn served(&mut self, machine: &Machine, op: &Op, slot: u32, now: u64) {
        self.show_at(machine, op, slot, Track::Atomics, (machine.timing.service[0], now), true);
    }

    /// Records a slice of an operation. `last` is true for the operation's last slice.
    fn show_at(&mut self, machine: &Machine, op: &Op, slot: u32, track: Track, (took, now): (u64, u64), last: bool) {
        let node = machine.node_of(op.target.rank);
        let id = if last { self.by_operation.remove(&slot) } else { self.by_operation.get(&slot).copied() };
        self.slice(node, track, now.saturating_sub(took), now, activity(op, self.rank_of(op.poster)), id);
    }

    /// Records that a CPU has written a command into a slot of a queue at `written`.
    #[cold]
    pub(crate) fn command_posted(
        &mut self,
        machine: &Machine,
        queues: &Queues,
        (queue, slot): (u32, u64),
        posting: &Posting,
        (lane, written): (u32, u64),
    ) {
        let id = queues.id_of(queue);
        let (rank, begin) = (id.rank().number(), written.saturating_sub(machine.timing.post));
        let command = self.next_command();
        if self.len() < self.limit {
            self.by_slot.insert((queue, slot), command);
        }
        let shown = queued(&posting.command, id);
        self.slice(machine.node_of(rank), Track::Cpu(lane), begin, written, shown, Some(command));
        if written >= self.from {
            let seen = SeenCommand::posted(id, slot, posting, written);
            self.commands.posted(queues.opening(queue), seen, command, self.limit);
        }
        self.show_pointers(machine, queues, queue, written);
    }

    /// Records that a queue's engine executes the command in `slot` from `now` until `sent`.
    #[cold]
    pub(crate) fn command_started(
        &mut self,
        machine: &Machine,
        queues: &Queues,
        (queue, slot): (u32, u64),
        command: &Command,
        (now, sent): (u64, u64),
    ) {
        let id = queues.id_of(queue);
        let node = machine.node_of(id.rank().number());
        let end = now.saturating_add(engine_busy(&machine.timing, now, sent));
        // Only the first block of a strided command was recorded as posted.
        let known = self.by_slot.get(&(queue, slot)).copied();
        let command_id = known.unwrap_or_else(|| self.next_command());
        if self.len() < self.limit {
            self.by_slot.insert((queue, slot), command_id);
        }
        let shown = queued(command, id);
        self.commands.started((queues.opening(queue), slot), now);
        self.slice(node, Track::Queue(id.engine(), id.number()), now, end, shown, Some(command_id));
        self.slice(node, Track::Send(id.engine()), now, end, shown, None);
        self.show_pointers(machine, queues, queue, now);
        if *command == Command::Nop {
            self.by_slot.remove(&(queue, slot));
        }
    }

    /// Records that a queue's command has passed its target's receive engine now.
    #[cold]
    pub(crate) fn command_reached(&mut self, machine: &Machine, queues: &Queues, flight: u32, now: u64) {
        let (queue, slot, to, opcode, bytes) = queues.seen_flight(flight);
        let (target, poster) = (to.rank().number(), queues.id_of(queue).rank().number());
        let (node, begin) =
            (machine.node_of(target), now.saturating_sub(receiver_busy(&machine.timing, opcode, bytes)));
        let id = self.by_slot.remove(&(queue, slot));
        self.commands.arrived((queues.opening(queue), slot), now);
        let shown = Activity::Command { opcode, bytes, poster, target };
        self.slice(node, Track::Receive(to.engine()), begin, now, shown, id);
    }

    /// Records that a queue's session offset has moved by `slots` now. `by` is the queue and slot
    /// of the put that moved it.
    #[cold]
    pub(crate) fn offset_advanced(
        &mut self,
        machine: &Machine,
        queues: &Queues,
        queue: u32,
        slots: u8,
        by: Option<(u32, u64)>,
        now: u64,
    ) {
        let (id, to) = (queues.id_of(queue), queues.pointers(queue).scheduled);
        let node = machine.node_of(id.rank().number());
        self.mark(node, Track::Queue(id.engine(), id.number()), now, Activity::Advance(slots.into()));
        if now >= self.from {
            let (opening, from) = (queues.opening(queue), to.saturating_sub(slots.into()));
            let by = by.map(|(by, slot)| (queues.opening(by), slot));
            self.commands.advanced(Advance { opening, from, to, by }, self.limit);
        }
        self.show_pointers(machine, queues, queue, now);
    }

    /// Records that a rank or a helper computes from `begin` to `end`.
    pub(crate) fn computing(&mut self, machine: &Machine, lane: u32, begin: u64, end: u64) {
        self.slice(machine.node_of(self.rank_of(lane)), Track::Cpu(lane), begin, end, Activity::Compute, None);
    }

    /// Records that a fault that affects a rank has begun.
    pub(crate) fn fault(&mut self, machine: &Machine, rank: u32, now: u64, name: &'static str) {
        self.mark(machine.node_of(rank), Track::Cpu(rank), now, Activity::Fault(name));
    }

    /// Records that the command in `slot` failed when it was to start.
    pub(crate) fn command_failed(&mut self, queue: u32, slot: u64) {
        self.by_slot.remove(&(queue, slot));
    }

    fn show_pointers(&mut self, machine: &Machine, queues: &Queues, queue: u32, time: u64) {
        let (id, pointers) = (queues.id_of(queue), queues.pointers(queue));
        let at = [pointers.read, pointers.write, pointers.scheduled];
        self.pointers(machine.node_of(id.rank().number()), (id.engine(), id.number()), time, at);
    }
}
