//! Multicasts: one command that the network delivers to several nodes.
//!
//! The network has only one crossbar that turns one message into several, so it executes one
//! multicast after another. The path is: the poster's send engine, a first hop to the crossbar,
//! which is busy for the message's length, and from there to all members at the same time
//! (`multicast` of the platform's table). There is no contention with other messages, in either
//! network model.

use super::{
    super::{
        clock::EventKind,
        core::{Core, Machine},
        memory::Loc,
        provider::Me,
    },
    Attachment, Op, Opcode,
    posting::{Payload, owned, posted, same_length},
    token,
};
use rdma_fabric::{
    Node, Rank, Result,
    error::MulticastError,
    provider::{Place, Posted},
};

impl Machine {
    /// Checks that the network can multicast to these ranks.
    ///
    /// # Errors
    /// [`rdma_fabric::FabricError::Multicast`].
    pub(crate) fn reaches(&self, members: &[Rank]) -> Result<()> {
        let mut seats: Vec<_> = members.iter().map(|rank| (self.node_of(rank.number()), *rank)).collect();
        seats.sort_unstable();
        if let Some(pair) = seats.windows(2).find(|pair| pair[0].0 == pair[1].0) {
            let (node, first) = pair[0];
            return Err(MulticastError::SameNode { first, second: pair[1].1, node: Node::new(node) }.into());
        }
        let nodes: Vec<_> = seats.into_iter().map(|(node, _)| node).collect();
        if nodes.is_empty() || self.map.fills_box(&nodes) {
            Ok(())
        } else {
            Err(MulticastError::NoBox { members: nodes.len() }.into())
        }
    }
}

impl Me {
    /// Posts a multicast, copying its bytes now.
    pub(crate) fn multicast(&self, to: &[Place], payload: &Payload<'_>) -> Posted {
        posted(self.try_multicast(to, payload))
    }

    fn try_multicast(&self, to: &[Place], payload: &Payload<'_>) -> Result<Posted> {
        let lane = self.lane();
        let mut core = self.world.core();
        if let Payload::Registered(from) = payload {
            core.check(from)?;
        }
        let to = to.iter().map(|place| self.loc(place)).collect::<Result<Vec<Loc>>>()?;
        for place in &to {
            same_length(payload.len(), place.len)?;
            core.check(place)?;
        }
        if core.ranks.is_full(lane, core.machine.timing.transmit_queue) {
            return Ok(Posted::Full);
        }
        let copied = |place: &Loc| {
            let bytes = match payload {
                Payload::Bytes(from) => owned(from)?,
                Payload::Registered(from) => core.memory.copied(from),
            };
            let mut put = Op::new(Opcode::Put, lane, *place);
            put.attachment = Some(Box::new(Attachment { bytes, ..Attachment::default() }));
            Ok(put)
        };
        let puts = to.iter().map(copied).collect::<Result<Vec<_>>>()?;
        let reusable_at = core.multicast(lane, payload.len(), puts);
        Ok(Posted::Pending(token::at(&mut core, lane, reusable_at)))
    }
}

impl Core {
    /// Posts puts of the same `bytes` bytes as one command. Returns the time at which the source is
    /// reusable.
    fn multicast(&mut self, lane: u32, bytes: u64, puts: Vec<Op>) -> u64 {
        let (timing, now) = (&self.machine.timing, self.clock.now());
        let rank = self.ranks.rank_of(lane);
        let node = self.machine.node_of(rank);
        let sender = (rank - node * self.machine.ranks_per_node) % timing.engines;
        let written = self.ranks.occupy_cpu(lane, now, timing.posting(false));
        let start = self.senders.take(timing, node, sender, written, bytes);
        let (sent, payload) = (start.saturating_add(timing.send), timing.multicast_payload(bytes));
        let busy = timing.occupancy(bytes).max(payload);
        let begins = self.network.takes_turn(sent.saturating_add(timing.wire(1)), busy);
        let arrival = begins.saturating_add(timing.multicast + payload + timing.receive);
        let reusable = sent.saturating_add(payload);
        // Shown once.
        let mut written = Some(written);
        for mut put in puts {
            let (target, to) = (put.target.rank, self.machine.node_of(put.target.rank));
            put.back = self.machine.wire_between(to, node);
            self.ranks.begin(lane);
            self.ranks.put_posted(lane, target, now);
            self.counts.count(&put, rank, node != to);
            let late = arrival.saturating_add(self.clock.extra());
            let late = self.injector.over_links(now, (node, to), late, payload);
            let late = if timing.ordered_puts { self.network.in_order((rank, target), late).1 } else { late };
            let slot = self.operations.insert(put);
            if let Some(timeline) = &mut self.timeline {
                let put = self.operations.get(slot);
                timeline.sent(&self.machine, put, slot, (rank, written.take()), (start, reusable));
            }
            self.clock.push(late, EventKind::Arrive, slot);
        }
        reusable
    }
}
