//! Routers: input queues with credits, arbitrated outputs, cut-through links.
//!
//! An event is needed only for a packet that has become the head of its queue before it has
//! arrived, and for a link that is awaited. All upstream effects of a freed buffer happen in the
//! same event, driven by a work list.

use super::{
    super::{
        clock::{Clock, EventKind},
        core::Machine,
        nic::{Receivers, Room},
        slots::NONE,
        topology::Map,
    },
    Arbiter,
    arbiter::Turn,
    node::{Output, Packet, Packets, RouterNode},
};

#[derive(Debug)]
pub(super) struct Router {
    /// Nodes and switches. Each router is created when a packet first enters it.
    nodes: Vec<Option<Box<RouterNode>>>,
    packets: Packets,
    /// The number of links of a node. It is also the number of the output to the receive engines
    /// and that of the local input port.
    links: u8,
    /// The number of virtual channels of a link port.
    channels: u8,
    engines: u8,
    /// The number of packets that a virtual channel of a link port holds.
    credits: u16,
    arbiter: Arbiter,
    /// Outputs to examine, as node and output.
    work: Vec<(u32, u8)>,
}

/// The parts of the machine that a router needs.
#[derive(Debug)]
pub(super) struct Around<'a> {
    pub(super) machine: &'a Machine,
    pub(super) clock: &'a mut Clock,
    pub(super) receivers: &'a mut Receivers,
    /// Packets that receive engines have taken, in order.
    pub(super) delivered: &'a mut Vec<Delivered>,
}

/// A packet that a receive engine has taken.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    pub(crate) op: u32,
    /// Whether it is the last of its message.
    pub(crate) last: bool,
}

impl Router {
    pub(super) fn new(map: &Map, engines: u32, credits: u16, arbiter: Arbiter) -> Self {
        Router {
            nodes: (0..map.places()).map(|_| None).collect(),
            packets: Packets::new(),
            links: map.links(),
            channels: map.channels(),
            engines: engines as u8,
            credits: credits.max(1),
            arbiter,
            work: Vec::new(),
        }
    }

    /// Puts a packet at the end of its engine's queue at `node`.
    pub(super) fn inject(&mut self, around: &mut Around<'_>, node: u32, sender: u8, mut packet: Packet) {
        let mut queue = self.links * self.channels + sender;
        if packet.to == node {
            queue += self.engines;
            packet.leg = around.machine.map.last_leg();
        }
        let packet = self.packets.insert(packet);
        self.enqueue(around, node, queue, packet);
    }

    #[inline]
    fn enqueue(&mut self, around: &mut Around<'_>, node: u32, queue: u8, packet: u32) {
        let (links, engines) = (self.links, self.engines);
        let here = self.nodes[node as usize]
            .get_or_insert_with(|| Box::new(RouterNode::new(&around.machine.map, node, links, engines)));
        if here.push(&mut self.packets, queue, packet) {
            self.present(around, node, queue);
        }
    }

    /// Makes the head of a queue, which has changed, request its output: now, or when it has
    /// arrived.
    #[inline]
    fn present(&mut self, around: &mut Around<'_>, node: u32, queue: u8) {
        let Some(here) = self.nodes[node as usize].as_deref_mut() else { return };
        let Some(head) = here.head(queue) else { return };
        let packet = self.packets.get_mut(head);
        if packet.ready_at > around.clock.now() {
            around.clock.push_detailed(packet.ready_at, EventKind::Head, node, queue.into());
            return;
        }
        let (output, via) = match around.machine.map.next(node, packet.to, packet.path, packet.leg) {
            Some(hop) => {
                packet.leg = hop.leg;
                (hop.link, here.channel(queue, hop))
            }
            None => (self.links, 0),
        };
        here.request(queue, output, via);
        self.work.push((node, output));
    }

    /// Handles a `Head` event.
    pub(super) fn head_ready(&mut self, around: &mut Around<'_>, node: u32, queue: u16) {
        self.present(around, node, queue as u8);
        self.run(around);
    }

    /// Handles an `Output` event.
    pub(super) fn output_free(&mut self, around: &mut Around<'_>, node: u32, output: u16) {
        if let Some(here) = self.nodes[node as usize].as_deref_mut() {
            here.awaited &= !(1u32 << output);
        }
        self.work.push((node, output as u8));
        self.run(around);
    }

    /// Handles a receive engine of `node` that has room again.
    pub(super) fn receiver_free(&mut self, around: &mut Around<'_>, node: u32) {
        self.work.push((node, self.links));
        self.run(around);
    }

    /// Moves all packets that can move now.
    #[inline]
    pub(super) fn run(&mut self, around: &mut Around<'_>) {
        while let Some((node, output)) = self.work.pop() {
            while self.grant(around, node, output) {}
        }
    }

    /// Moves one packet through an output, if possible. Returns whether one moved.
    #[inline]
    fn grant(&mut self, around: &mut Around<'_>, node: u32, output: u8) -> bool {
        match self.nodes[node as usize].as_deref() {
            Some(here) if here.output(output).wanted != 0 => {}
            _ => return false,
        }
        if output == self.links { self.grant_receiver(around, node) } else { self.grant_link(around, node, output) }
    }

    #[inline]
    fn grant_link(&mut self, around: &mut Around<'_>, node: u32, output: u8) -> bool {
        let Some(here) = self.nodes[node as usize].as_deref() else { return false };
        let &Output { free_at, next, to_switch, .. } = here.output(output);
        let room = self.nodes[next as usize].as_deref().map_or(u32::MAX, |next| next.room(output, self.credits));
        if !here.output(output).is_wanted_by(room) {
            return false;
        }
        let turn = Turn { here, packets: &self.packets, arbiter: self.arbiter, output };
        let Some(queue) = turn.choose(room, |_| true) else { return false };
        let channel = here.via(queue);
        if free_at > around.clock.now() {
            self.await_output(around, node, output, free_at);
            return false;
        }
        let moved = self.take(around, node, queue, output);
        let packet = self.packets.get_mut(moved);
        let latency = if to_switch { 0 } else { around.machine.timing.hop };
        packet.ready_at = around.clock.now().saturating_add(latency);
        let occupancy = around.machine.timing.occupancy(packet.payload.into());
        if let Some(here) = self.nodes[node as usize].as_deref_mut() {
            here.output_mut(output).free_at = around.clock.now().saturating_add(occupancy);
        }
        self.enqueue(around, next, output * self.channels + channel, moved);
        true
    }

    fn grant_receiver(&mut self, around: &mut Around<'_>, node: u32) -> bool {
        let Some(here) = self.nodes[node as usize].as_deref() else { return false };
        let mut soonest = None;
        let turn = Turn { here, packets: &self.packets, arbiter: self.arbiter, output: self.links };
        let chosen = turn.choose(u32::MAX, |packet| {
            match around.receivers.room(&around.machine.timing, node, packet.engine, packet.atomic, around.clock.now())
            {
                Room::Now => return true,
                Room::At(time) => soonest = Some(soonest.map_or(time, |s: u64| s.min(time))),
                Room::AfterService => {}
            }
            false
        });
        let Some(queue) = chosen else {
            if let Some(time) = soonest {
                self.await_output(around, node, self.links, time);
            }
            return false;
        };
        let moved = self.take(around, node, queue, self.links);
        let packet = *self.packets.get(moved);
        match packet.atomic {
            true => around.receivers.take_atomic(node, packet.engine),
            false => {
                // For at least as long as its payload takes, so that messages of one sender
                // complete in their order.
                let payload = u64::from(packet.payload);
                let occupancy =
                    around.machine.timing.occupancy(payload).max(around.machine.timing.payload_before(payload));
                around.receivers.take_data(node, packet.engine, around.clock.now(), occupancy);
            }
        }
        around.delivered.push(Delivered { op: packet.op, last: packet.last });
        self.packets.free(moved);
        true
    }

    /// Schedules another check of the output when it is free, unless one is scheduled already.
    fn await_output(&mut self, around: &mut Around<'_>, node: u32, output: u8, time: u64) {
        let Some(here) = self.nodes[node as usize].as_deref_mut() else { return };
        if here.awaited >> output & 1 == 0 {
            here.awaited |= 1 << output;
            around.clock.push_detailed(time, EventKind::Output, node, output.into());
        }
    }

    /// Takes the head out of a queue. Its place becomes free for the router upstream, and the next
    /// packet requests its output.
    #[inline]
    fn take(&mut self, around: &mut Around<'_>, node: u32, queue: u8, output: u8) -> u32 {
        let Some(here) = self.nodes[node as usize].as_deref_mut() else { return NONE };
        let packet = here.pop(&self.packets, queue, output);
        if queue < self.links * self.channels {
            let link = queue / self.channels;
            self.work.push((here.behind(link), link));
        }
        self.present(around, node, queue);
        packet
    }
}
