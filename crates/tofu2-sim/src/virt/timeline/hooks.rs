//! The points of a run that a timeline shows.

use super::{Place, What};
use crate::virt::{
    core::Core,
    op::{Op, Verb},
};

fn what(op: &Op) -> What {
    let bytes = if op.verb == Verb::Nop { 0 } else { op.target.len };
    What::Command { verb: op.verb, bytes, poster: op.poster, target: op.target.rank }
}

impl Core {
    /// A command was written by the CPU until `cpu_until`, was taken by the send engine at `start`, and is out at `sent`.
    #[inline]
    pub(in super::super) fn seen_posted(&mut self, slot: u32, sender: u32, start: u64, sent: u64) {
        if self.timeline.is_some() {
            self.show_posted(slot, sender, start, sent);
        }
    }

    #[cold]
    fn show_posted(&mut self, slot: u32, sender: u32, start: u64, sent: u64) {
        let op = self.slab.get(slot);
        let (rank, op_verb, what) = (op.poster, op.verb, what(op));
        let (node, posted) = (self.node_of(rank), self.ranks[rank as usize].cpu_until);
        let busy = self.engine_busy(start, sent);
        let Some(timeline) = &mut self.timeline else { return };
        let flight = timeline.take_off();
        if op_verb != Verb::Nop && timeline.len() < timeline.limit {
            timeline.flying.insert(slot, flight);
        }
        let written = posted.saturating_sub(self.timing.post);
        timeline.slice(node, Place::Cpu(rank), written, posted, what, Some(flight));
        timeline.slice(node, Place::Send(sender as u8), start, start + busy, what, Some(flight));
    }

    /// How long a command that is taken at `start` and out at `sent` keeps its engine from the next one. The rest is latency.
    pub(super) fn engine_busy(&self, start: u64, sent: u64) -> u64 {
        sent.saturating_sub(start + self.timing.send).max(self.timing.gap)
    }

    /// How long a put's data come in, or a request.
    pub(super) fn receiver_busy(&self, verb: Verb, bytes: u64) -> u64 {
        let payload = if verb == Verb::Put { self.timing.payload(bytes) } else { 0 };
        payload.max(self.timing.receive)
    }

    /// A command or its data are through the target's receive engine now.
    #[inline]
    pub(in super::super) fn seen_arrived(&mut self, slot: u32) {
        if self.timeline.is_some() {
            let (verb, bytes) = (self.slab.get(slot).verb, self.slab.get(slot).target.len);
            self.show_at(slot, |op| Place::Receive(op.engine), self.receiver_busy(verb, bytes), !verb.is_atomic());
        }
    }

    /// The atomic unit has finished an operation now, that it began `service` ago.
    #[inline]
    pub(in super::super) fn seen_served(&mut self, slot: u32, service: u64) {
        if self.timeline.is_some() {
            self.show_at(slot, |_| Place::Atomics, service, true);
        }
    }

    /// `last`: nothing of the command is shown after this.
    #[cold]
    fn show_at(&mut self, slot: u32, place: impl Fn(&Op) -> Place, took: u64, last: bool) {
        let op = self.slab.get(slot);
        let (node, place, what) = (self.node_of(op.target.rank), place(op), what(op));
        let Some(timeline) = &mut self.timeline else { return };
        let flight = if last { timeline.flying.remove(&slot) } else { timeline.flying.get(&slot).copied() };
        timeline.slice(node, place, self.now.saturating_sub(took), self.now, what, flight);
    }

    /// A rank computes until then.
    #[inline]
    pub(in super::super) fn seen_computing(&mut self, rank: u32, begin: u64, end: u64) {
        let node = self.node_of(rank);
        if let Some(timeline) = &mut self.timeline {
            timeline.slice(node, Place::Cpu(rank), begin, end, What::Compute, None);
        }
    }
}
