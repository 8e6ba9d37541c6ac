//! One router's state, and the packets in its queues.
//!
//! Input queues are numbered: virtual channel `c` of link `l` is `channels l + c`. After these
//! there is one queue per engine for packets that leave the node and one per engine for packets
//! that stay. Input ports are the links and, after them, the local port.

use super::{
    super::{
        slots::{NONE, Slots, Slotted},
        topology::{Hop, LegIndex, Map, PathId},
    },
    channel::channel,
};

/// One packet. The remaining data is in its operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Packet {
    /// The time at which its head can leave its queue, in picoseconds.
    pub(crate) ready_at: u64,
    /// The time at which it was sent, which determines its age.
    pub(crate) born: u64,
    pub(crate) op: u32,
    /// Target node.
    pub(crate) to: u32,
    /// The next packet in the queue.
    pub(super) next: u32,
    /// The payload in bytes.
    pub(crate) payload: u16,
    /// The receive engine.
    pub(crate) engine: u8,
    pub(crate) atomic: bool,
    pub(crate) last: bool,
    pub(crate) path: PathId,
    /// The current leg of its route.
    pub(super) leg: LegIndex,
}

const _: () = assert!(size_of::<Packet>() <= 40);

impl Packet {
    pub(crate) fn new(op: u32, to: u32, engine: u8, atomic: bool, path: PathId) -> Self {
        Packet { ready_at: 0, born: 0, op, to, next: NONE, payload: 0, engine, atomic, last: true, path, leg: 0 }
    }
}

impl Slotted for Packet {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// All packets in flight.
pub(super) type Packets = Slots<Packet>;

#[derive(Debug)]
pub(super) struct RouterNode {
    queues: Box<[Queue]>,
    outputs: Box<[Output]>,
    /// The requests by output and port.
    cells: Box<[Cell]>,
    /// For each link, the node that sends over it to this node.
    behind: Box<[u32]>,
    /// A bit per output, set while an `Output` event is pending.
    pub(super) awaited: u32,
    links: u8,
    /// The binary logarithm of the number of virtual channels of a link.
    channel_bits: u8,
}

/// An output: a link, or the connection to the receive engines.
#[derive(Clone, Copy, Debug)]
pub(super) struct Output {
    /// The time at which the link is free, in picoseconds.
    pub(super) free_at: u64,
    /// The node to which the link leads.
    pub(super) next: u32,
    /// A bit per port that has a request.
    pub(super) wanted: u32,
    /// The number of requests by the channel they need at the next router.
    by_channel: [u8; 4],
    /// The port served last.
    pub(super) last_port: u8,
    /// Whether the link closes a ring.
    pub(super) wraps: bool,
    /// Whether the link leads to a switch, so that its latency is counted on the next link.
    pub(super) to_switch: bool,
}

/// One port's requests for one output.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Cell {
    /// A bit per queue of the port, set while the queue's head waits for the output.
    pub(super) requests: u32,
    /// The queue served last.
    pub(super) last: u8,
}

#[derive(Clone, Copy, Debug)]
struct Queue {
    head: u32,
    tail: u32,
    len: u32,
    /// The channel that the head needs at the next router, once it has made its request.
    via: u8,
}

impl Output {
    /// Returns whether a request needs one of the channels in the mask `room`.
    #[inline]
    pub(super) fn is_wanted_by(&self, room: u32) -> bool {
        self.by_channel.iter().enumerate().any(|(channel, &requests)| requests > 0 && room >> channel & 1 == 1)
    }
}

impl RouterNode {
    pub(super) fn new(map: &Map, node: u32, links: u8, engines: u8) -> Self {
        let ports = usize::from(links) + 1;
        let channels = map.channels();
        let queues = usize::from(channels) * usize::from(links) + 2 * usize::from(engines);
        RouterNode {
            queues: vec![Queue { head: NONE, tail: NONE, len: 0, via: 0 }; queues].into(),
            outputs: (0..=links)
                .map(|link| {
                    let (next, wraps) = if link == links { (node, false) } else { map.over(node, link) };
                    let to_switch = map.is_switch(next) && next != node;
                    Output { free_at: 0, next, wanted: 0, by_channel: [0; 4], last_port: 0, wraps, to_switch }
                })
                .collect(),
            cells: vec![Cell::default(); ports * ports].into(),
            behind: (0..links).map(|link| map.behind(node, link)).collect(),
            awaited: 0,
            links,
            channel_bits: channels.trailing_zeros() as u8,
        }
    }

    #[inline]
    pub(super) fn ports(&self) -> u8 {
        self.links + 1
    }

    /// Returns the port of a queue and the queue's number in that port.
    #[inline]
    fn port_of(&self, queue: u8) -> (u8, u8) {
        let after_links = self.links << self.channel_bits;
        if queue < after_links {
            (queue >> self.channel_bits, queue & ((1 << self.channel_bits) - 1))
        } else {
            (self.links, queue - after_links)
        }
    }

    /// Inverts [`RouterNode::port_of`].
    #[inline]
    pub(super) fn queue_at(&self, port: u8, number: u8) -> u8 {
        (port << self.channel_bits) + number
    }

    /// Returns the channel that the head of a queue needs at the next router.
    #[inline]
    pub(super) fn channel(&self, queue: u8, hop: Hop) -> u8 {
        channel(self.port_of(queue), hop, self.output(hop.link).wraps)
    }

    #[inline]
    fn cell_index(&self, output: u8, port: u8) -> usize {
        usize::from(output) * usize::from(self.ports()) + usize::from(port)
    }

    /// Appends a packet to a queue. Returns whether it is now the head.
    #[inline]
    pub(super) fn push(&mut self, packets: &mut Packets, queue: u8, packet: u32) -> bool {
        let queue = &mut self.queues[usize::from(queue)];
        packets.get_mut(packet).next = NONE;
        queue.len += 1;
        let first = queue.head == NONE;
        if first {
            queue.head = packet;
        } else {
            packets.get_mut(queue.tail).next = packet;
        }
        queue.tail = packet;
        first
    }

    /// Takes out the head of a queue that has been granted `output`.
    #[inline]
    pub(super) fn pop(&mut self, packets: &Packets, queue: u8, output: u8) -> u32 {
        let (port, number) = self.port_of(queue);
        let cell = self.cell_index(output, port);
        let cell = &mut self.cells[cell];
        cell.requests &= !(1 << number);
        cell.last = number;
        let output = &mut self.outputs[usize::from(output)];
        if cell.requests == 0 {
            output.wanted &= !(1 << port);
        }
        output.last_port = port;
        let queue = &mut self.queues[usize::from(queue)];
        output.by_channel[usize::from(queue.via)] -= 1;
        let packet = queue.head;
        queue.head = packets.get(packet).next;
        queue.len -= 1;
        packet
    }

    #[inline]
    pub(super) fn request(&mut self, queue: u8, output: u8, via: u8) {
        let (port, number) = self.port_of(queue);
        self.queues[usize::from(queue)].via = via;
        let cell = self.cell_index(output, port);
        self.cells[cell].requests |= 1 << number;
        let output = &mut self.outputs[usize::from(output)];
        output.wanted |= 1 << port;
        output.by_channel[usize::from(via)] += 1;
    }

    #[inline]
    pub(super) fn head(&self, queue: u8) -> Option<u32> {
        let head = self.queues[usize::from(queue)].head;
        (head != NONE).then_some(head)
    }

    /// Returns the value that [`RouterNode::channel`] returned when the head made its request.
    #[inline]
    pub(super) fn via(&self, queue: u8) -> u8 {
        self.queues[usize::from(queue)].via
    }

    /// Returns the virtual channels of a link port that hold fewer than `credits` packets, as a
    /// mask.
    #[inline]
    pub(super) fn room(&self, link: u8, credits: u16) -> u32 {
        let first = usize::from(link) << self.channel_bits;
        let channels = &self.queues[first..first + (1 << self.channel_bits)];
        channels.iter().rev().fold(0, |mask, queue| mask << 1 | u32::from(queue.len < credits.into()))
    }

    #[inline]
    pub(super) fn output(&self, output: u8) -> &Output {
        &self.outputs[usize::from(output)]
    }

    #[inline]
    pub(super) fn output_mut(&mut self, output: u8) -> &mut Output {
        &mut self.outputs[usize::from(output)]
    }

    #[inline]
    pub(super) fn cell(&self, output: u8, port: u8) -> &Cell {
        &self.cells[self.cell_index(output, port)]
    }

    /// Returns the node that sends over a link to this one.
    #[inline]
    pub(super) fn behind(&self, link: u8) -> u32 {
        self.behind[usize::from(link)]
    }
}
