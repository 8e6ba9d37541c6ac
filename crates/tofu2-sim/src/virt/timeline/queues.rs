//! The points in a command's life on a control queue that a timeline shows.

use super::{Place, SeenCommand, What, commands::Advance};
use crate::virt::{core::Core, op::Verb};
use rdma_fabric::control_queue::{Command, Posting, QueueId};

/// What a command is shown as. The numbers of blocks and of bytes are those of one block.
fn what(command: &Command, from: QueueId) -> What {
    let (verb, bytes) = match command {
        Command::Put { len, .. } => (Verb::Put, u64::from(*len)),
        Command::PutInline { bytes, .. } => (Verb::Put, bytes.as_bytes().len() as u64),
        Command::Get { len, .. } => (Verb::Get, u64::from(*len)),
        Command::Nop => (Verb::Nop, 0),
        Command::Atomic { width, amo, .. } => (Verb::of(*amo).0, *width as u64),
    };
    let target = command.target().unwrap_or(from).rank().number();
    What::Command { verb, bytes, poster: from.rank().number(), target }
}

impl Core {
    /// The CPU has written a command into the slot of a queue at `written`.
    #[inline]
    pub(in super::super) fn seen_command(&mut self, queue: u32, slot: u64, posting: &Posting, written: u64) {
        if self.timeline.is_some() {
            self.show_command(queue, slot, posting, written);
        }
    }

    #[cold]
    fn show_command(&mut self, queue: u32, slot: u64, posting: &Posting, written: u64) {
        let id = self.queues.id_of(queue);
        let (node, begin) = (self.node_of(id.rank().number()), written.saturating_sub(self.timing.post));
        let opening = self.queues.opening(queue);
        let Some(timeline) = &mut self.timeline else { return };
        let flight = timeline.take_off();
        if timeline.len() < timeline.limit {
            timeline.queued.insert((queue, slot), flight);
        }
        let shown = what(&posting.command, id);
        timeline.slice(node, Place::Cpu(id.rank().number()), begin, written, shown, Some(flight));
        if written >= timeline.from {
            let seen = SeenCommand::posted(id, slot, posting, written);
            timeline.commands.posted(opening, seen, flight, timeline.limit);
        }
        self.show_pointers(queue, written);
    }

    /// A queue's engine executes the command in `slot` from now until `sent`.
    #[inline]
    pub(in super::super) fn seen_started(&mut self, queue: u32, slot: u64, command: &Command, sent: u64) {
        if self.timeline.is_some() {
            self.show_started(queue, slot, command, sent);
        }
    }

    #[cold]
    fn show_started(&mut self, queue: u32, slot: u64, command: &Command, sent: u64) {
        let id = self.queues.id_of(queue);
        let (node, now) = (self.node_of(id.rank().number()), self.now);
        let end = now + self.engine_busy(now, sent);
        let opening = self.queues.opening(queue);
        let Some(timeline) = &mut self.timeline else { return };
        // Of a strided command, the first block alone was posted.
        let known = timeline.queued.get(&(queue, slot)).copied();
        let flight = known.unwrap_or_else(|| timeline.take_off());
        if timeline.len() < timeline.limit {
            timeline.queued.insert((queue, slot), flight);
        }
        let what = what(command, id);
        timeline.commands.started((opening, slot), now);
        timeline.slice(node, Place::Queue(id.engine(), id.number()), now, end, what, Some(flight));
        timeline.slice(node, Place::Send(id.engine()), now, end, what, None);
        self.show_pointers(queue, now);
        if *command == Command::Nop
            && let Some(timeline) = &mut self.timeline
        {
            timeline.queued.remove(&(queue, slot));
        }
    }

    /// The command in `slot` failed where it was to start.
    #[inline]
    pub(in super::super) fn seen_failed(&mut self, queue: u32, slot: u64) {
        if let Some(timeline) = &mut self.timeline {
            timeline.queued.remove(&(queue, slot));
        }
    }

    /// A command of a queue is through its target's receive engine now.
    #[inline]
    pub(in super::super) fn seen_reached(&mut self, flight: u32) {
        if self.timeline.is_some() {
            self.show_reached(flight);
        }
    }

    #[cold]
    fn show_reached(&mut self, flight: u32) {
        let (queue, slot, to, verb, bytes) = self.queues.seen_flight(flight);
        let (poster, opening) = (self.queues.id_of(queue).rank().number(), self.queues.opening(queue));
        let (target, engine) = (to.rank().number(), to.engine());
        let (node, begin) = (self.node_of(target), self.now.saturating_sub(self.receiver_busy(verb, bytes)));
        let Some(timeline) = &mut self.timeline else { return };
        let flight = timeline.queued.remove(&(queue, slot));
        timeline.commands.arrived((opening, slot), self.now);
        let what = What::Command { verb, bytes, poster, target };
        timeline.slice(node, Place::Receive(engine), begin, self.now, what, flight);
    }

    /// The session offset of a queue has moved by `slots` now; `by`: queue and slot of the put that did it.
    #[inline]
    pub(in super::super) fn seen_advanced(&mut self, queue: u32, slots: u8, by: Option<(u32, u64)>) {
        if self.timeline.is_some() {
            self.show_advanced(queue, slots, by);
        }
    }

    #[cold]
    fn show_advanced(&mut self, queue: u32, slots: u8, by: Option<(u32, u64)>) {
        let to = self.queues.pointers(queue).scheduled;
        let (opening, by) = (self.queues.opening(queue), by.map(|(by, slot)| (self.queues.opening(by), slot)));
        let id = self.queues.id_of(queue);
        let (node, now) = (self.node_of(id.rank().number()), self.now);
        if let Some(timeline) = &mut self.timeline {
            timeline.mark(node, Place::Queue(id.engine(), id.number()), now, What::Advance(slots.into()));
            if now >= timeline.from {
                let from = to.saturating_sub(slots.into());
                timeline.commands.advanced(Advance { opening, from, to, by }, timeline.limit);
            }
        }
        self.show_pointers(queue, now);
    }

    fn show_pointers(&mut self, queue: u32, time: u64) {
        let (id, pointers) = (self.queues.id_of(queue), self.queues.pointers(queue));
        let node = self.node_of(id.rank().number());
        if let Some(timeline) = &mut self.timeline {
            let at = [pointers.read, pointers.write, pointers.scheduled];
            timeline.pointers(node, (id.engine(), id.number()), time, at);
        }
    }
}
