//! The network, which moves requests and data from node to node.
//!
//! *Latency*: a fixed time per hop, no contention, and one event per message, for scale.
//!
//! *Router*: packets move hop by hop and contend for links, buffers and receive engines; see
//! [`NetworkModel::Router`]. In both models, replies (results of atomics and gets,
//! acknowledgements) take only their latency; the data of a get also occupies the target's send
//! engine.

mod arbiter;
mod channel;
mod node;
mod router;

pub use arbiter::Arbiter;
pub(super) use node::Packet;
pub(super) use router::Delivered;

use super::{clock::Clock, control_queue::Cut, core::Machine, nic::Receivers};
use router::{Around, Router};
use std::{collections::HashMap, mem};

/// The network model of a job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum NetworkModel {
    /// Fixed latencies, no contention between nodes. Send engines, receive side and atomic units
    /// are still modelled.
    #[default]
    Latency,
    /// A router per node.
    ///
    /// * Input ports: one per neighbour and direction, and *one* local port that the node's engines
    ///   share (an assumption; each engine has its own queue there, and loopback another, so that
    ///   they don't block each other).
    /// * A link port has two virtual channels of a few packets each (an assumption: credits return
    ///   immediately). A packet moves to the second channel when it crosses a ring's wrap-around,
    ///   and back to the first with the next axis, so that rings can't deadlock even with one
    ///   credit (the dateline rule). On a [`super::TofuShape`] a link port has two more channels
    ///   for the leg inside the target's group, after the way between groups.
    /// * Each output is granted to one input port after another (or to the oldest packet:
    ///   [`Arbiter`]). A link is busy for the packet's length at the link rate; the head moves on
    ///   after the hop's latency (cut-through).
    /// * A crossbar is a router too ([`super::Crossbar`]), with a port for each of its nodes and
    ///   the same buffers; the latency of a hop covers both of its links.
    /// * The last router passes a packet to the target's receive engine only when the engine has
    ///   room; loopback competes there as one more port. A busy receive side therefore fills the
    ///   network (the parking-lot effect).
    Router,
}

/// The network of a job.
#[derive(Debug, Default)]
pub(super) struct Network {
    /// The hop-by-hop network, if the job has one.
    routed: Option<(Router, Receivers)>,
    /// Packets that receive engines have taken and that are yet to be handled.
    delivered: Vec<Delivered>,
    /// The arrival time of the last put of each pair of ranks that keeps its order: any put on a
    /// machine that orders puts, those with a notice in runs with randomness. Never iterated.
    last_ordered: HashMap<(u32, u32), u64>,
    /// The time at which the crossbar of all multicasts is free, in picoseconds.
    multicast_free_at: u64,
}

impl Network {
    /// Creates a network with a router at each place.
    pub(super) fn routed(machine: &Machine, credits: u16, arbiter: Arbiter) -> Self {
        let (engines, places) = (machine.timing.engines, machine.map.places());
        let router = Router::new(&machine.map, engines, credits, arbiter);
        Network { routed: Some((router, Receivers::new(places, engines))), ..Network::default() }
    }

    /// Returns whether messages go through routers.
    #[inline]
    pub(super) fn has_router(&self) -> bool {
        self.routed.is_some()
    }

    #[inline]
    pub(super) fn has_delivered(&self) -> bool {
        !self.delivered.is_empty()
    }

    #[inline]
    pub(super) fn take_delivered(&mut self) -> Vec<Delivered> {
        mem::take(&mut self.delivered)
    }

    /// Keeps the storage of handled packets for reuse.
    #[inline]
    pub(super) fn keep(&mut self, delivered: Vec<Delivered>) {
        self.delivered = delivered;
    }

    /// Returns the arrival time of a put that would arrive at `arrival`, after the previous one of
    /// the same pair of ranks that keeps its order; and, first, the arrival time of that one.
    pub(super) fn in_order(&mut self, pair: (u32, u32), arrival: u64) -> (u64, u64) {
        let last = self.last_ordered.entry(pair).or_default();
        let before = *last;
        *last = arrival.max(before.saturating_add(1));
        (before, *last)
    }

    /// Returns the time at which a multicast that is at the crossbar at `at` passes it, in turn,
    /// for `busy` picoseconds.
    pub(super) fn takes_turn(&mut self, at: u64, busy: u64) -> u64 {
        let begins = at.max(self.multicast_free_at);
        self.multicast_free_at = begins.saturating_add(busy);
        begins
    }

    #[inline]
    fn act(&mut self, machine: &Machine, clock: &mut Clock, act: impl FnOnce(&mut Router, &mut Around<'_>)) {
        let Some((router, receivers)) = &mut self.routed else { return };
        act(router, &mut Around { machine, clock, receivers, delivered: &mut self.delivered });
    }

    /// Passes a message of `bytes` bytes to the routers, divided into packets like `packet`: at the
    /// node and engine `from`, at the packet's birth time.
    pub(super) fn inject(
        &mut self,
        machine: &Machine,
        clock: &mut Clock,
        (from, sender): (u32, u8),
        mut packet: Packet,
        bytes: u64,
        cut: Cut,
    ) {
        let timing = &machine.timing;
        let entry = if packet.to == from { 0 } else { timing.wire - timing.hop };
        let mut offset = 0;
        loop {
            let payload = (bytes - offset).min(cut.size);
            packet.payload = payload as u16;
            packet.last = offset + payload == bytes;
            let before = entry + timing.payload_before(offset) + cut.extra_before(timing, offset);
            packet.ready_at = packet.born.saturating_add(before);
            self.act(machine, clock, |router, around| router.inject(around, from, sender, packet));
            offset += payload;
            if packet.last {
                break;
            }
        }
        self.act(machine, clock, |router, around| router.run(around));
    }

    /// Handles a `Head` event.
    #[inline]
    pub(super) fn head_ready(&mut self, machine: &Machine, clock: &mut Clock, node: u32, queue: u16) {
        self.act(machine, clock, |router, around| router.head_ready(around, node, queue));
    }

    /// Handles an `Output` event.
    #[inline]
    pub(super) fn output_free(&mut self, machine: &Machine, clock: &mut Clock, node: u32, output: u16) {
        self.act(machine, clock, |router, around| router.output_free(around, node, output));
    }

    /// Releases an atomic that a receive engine of the node has held.
    pub(super) fn receiver_free(&mut self, machine: &Machine, clock: &mut Clock, node: u32, engine: u8) {
        self.act(machine, clock, |router, around| {
            around.receivers.release_atomic(node, engine);
            router.receiver_free(around, node);
        });
    }
}
