//! The constants in the form that the event path uses: looked up once, in picoseconds.
//!
//! # The parts of an operation's latency
//! Only two sums are calibrated: the one-way latency of an 8-byte put to a neighbour, and the time
//! that the wire adds to a round trip. A leg is *post* (CPU) + *send engine* + *wire* + *receive
//! engine*; the receive engine takes the remainder of the put's latency (FX100: 710 = 150 + 150 +
//! 260 + 150 ns). The return leg is send engine + wire + receive engine + polling for the result,
//! where polling takes as long as posting. The wire takes half the round trip for the first hop,
//! `hop` for each further one, and nothing inside a node. These figures include the first 8 bytes
//! of a payload; each further byte takes `payload_byte`.
//!
//! So on FX100 an unloaded fetch-add takes 2 x 450 + 269.5 ns inside a node, and 520 ns more to a
//! neighbour.

use super::{
    DESCRIPTOR, Platform,
    parts::{ATOMICS, COLOURS, CROSSBARS, GATES, ORDERED_PUTS, QUEUES},
    software::Software,
};
use rdma_fabric::{Atomics, FabricError, barrier::GateId, control_queue::QueueLimits};

#[derive(Clone, Debug)]
pub(crate) struct Timing {
    /// The unit that executes atomics.
    pub(crate) atomics: Atomics,
    /// Service time of an atomic, in picoseconds, when `i + 1` receive engines have one (index
    /// `i`).
    pub(crate) service: Vec<u64>,
    pub(crate) post: u64,
    /// The additional time to build a descriptor; not part of posting a prepared one.
    descriptor: u64,
    pub(crate) send: u64,
    pub(crate) receive: u64,
    pub(crate) gap: u64,
    /// One-way wire latency of the first hop.
    pub(crate) wire: u64,
    /// Wire latency of each further hop.
    pub(crate) hop: u64,
    /// In femtoseconds per byte.
    link_byte: u64,
    /// In femtoseconds per byte.
    payload_byte: u64,
    pub(crate) packet_payload: u64,
    packet_overhead: u64,
    pub(crate) engines: u32,
    pub(crate) queues_per_engine: u32,
    pub(crate) transmit_queue: u32,
    pub(crate) receive_queue: u32,
    pub(crate) engine_room: u8,
    pub(crate) max_transfer: u64,
    pub(crate) notice_bits: u32,
    pub(crate) yield_: u64,
    pub(crate) node_memory: u64,
    /// Whether a command may copy between two other ranks' memory.
    pub(crate) third_party_copy: bool,
    /// Whether one command may put several blocks.
    pub(crate) block_puts: bool,
    /// Time from the crossbar that all multicasts pass to the members' receive engines; 0 if the
    /// network has no multicasts.
    pub(crate) multicast: u64,
    /// The time of that crossbar for each byte, in femtoseconds, in case it is slower than a link.
    multicast_byte: u64,
    /// Whether puts of one rank to another become visible in the order posted.
    pub(crate) ordered_puts: bool,
    /// The nodes of a row of crossbars, if these join the nodes.
    pub(crate) crossbar_row: Option<u32>,
    /// All zeros if there are none that programs can open.
    pub(crate) queues: QueueTable,
    /// Time from a barrier gate's last input to its outputs.
    pub(crate) barrier_gate: u64,
    /// The number of start/end gates of a node's barrier unit.
    pub(crate) barrier_channels: u32,
    /// The number of all gates of a node's barrier unit; 0 if there is none.
    pub(crate) barrier_gates: u32,
    /// The number of colours of hardware barriers; 0 if there are no such barriers.
    pub(crate) barrier_colours: u32,
    /// Time from the last member's signal of a hardware barrier to the notice of every member.
    pub(crate) colour_barrier: u64,
    /// Software layers by name; a list, since there are only a few.
    pub(crate) software: Software,
}

/// Payload bytes that the latency figures already include.
const FREE_BYTES: u64 = 8;
/// The most engines of a node.
pub(crate) const MOST_ENGINES: u32 = 16;
/// The longest time of a payload, in picoseconds: a quarter of virtual time, so that a sum of two of
/// them and of times of the table stays within it.
pub(crate) const LONGEST: u64 = u64::MAX / 4;

impl Timing {
    pub(crate) fn new(platform: &Platform, receive_engines: u32) -> Result<Self, FabricError> {
        platform.check_bounds()?;
        let wrong = |problem: String| FabricError::setting("platform constant", problem);
        let atomics = match platform.part(&ATOMICS)? {
            None => Atomics::None,
            Some(1) => Atomics::Software,
            Some(2) => Atomics::Hardware,
            Some(other) => return Err(wrong(format!("atomics is {other}, none of 0, 1 and 2"))),
        };
        // For a machine without atomics, these are never used.
        let [alone, serial, room] =
            ["atomic_service", "atomic_serial", "engine_room"].map(|name| platform.value(name).unwrap_or(1));
        if serial > 10_000 {
            return Err(wrong(format!("atomic_serial is {serial}, more than 10000 ten-thousandths")));
        }
        if room == 0 {
            return Err(wrong("engine_room is 0".to_owned()));
        }
        // A job refuses more receive engines than the node has.
        #[expect(clippy::arithmetic_side_effects, reason = "few engines, and a share of at most 10,000")]
        let service = (1..=u64::from(receive_engines.clamp(1, MOST_ENGINES)))
            .map(|k| (u128::from(alone) * u128::from(serial * k + 10_000 - serial) / u128::from(10_000 * k)) as u64)
            .collect();
        let (put, round_trip) = (platform.need("put_one_way")?, platform.need("wire_round_trip")?);
        let (post, send) = (platform.need("post")?, platform.need("send_engine")?);
        let before = (round_trip / 2).saturating_add(post).saturating_add(send);
        let receive = put.checked_sub(before).ok_or_else(|| {
            wrong(format!("put_one_way {put} is less than post {post} + send_engine {send} + wire {}", round_trip / 2))
        })?;
        let (wire, hop) = (round_trip / 2, platform.need("hop")?);
        if hop > wire {
            return Err(wrong(format!("hop {hop} is more than the first hop's {wire}")));
        }
        let at_least_one = |name: &'static str| match platform.need(name)? {
            0 => Err(wrong(format!("{name} is 0"))),
            n => Ok(u32::try_from(n).unwrap_or(u32::MAX)),
        };
        let gates = platform.part(&GATES)?.unwrap_or(0);
        let [channels, barrier_gate] = match gates {
            0 => [0; 2],
            _ => [u64::from(at_least_one("barrier_channels")?), platform.need("barrier_gate")?],
        };
        if channels > gates || gates > u64::from(GateId::INDICES) {
            return Err(wrong(format!(
                "barrier_channels {channels}, barrier_gates {gates}: at most {} gates",
                GateId::INDICES
            )));
        }
        let colours = platform.part(&COLOURS)?.unwrap_or(0);
        let row = platform.part(&CROSSBARS)?.map(|row| u32::try_from(row).unwrap_or(u32::MAX));
        Ok(Timing {
            atomics,
            service,
            post,
            descriptor: platform.value(DESCRIPTOR).unwrap_or(0),
            send,
            receive,
            gap: platform.need("send_gap")?,
            wire,
            hop,
            link_byte: platform.need("link_byte")?,
            payload_byte: platform.need("payload_byte")?,
            packet_payload: u64::from(at_least_one("packet_payload")?).min(u64::from(u16::MAX)),
            packet_overhead: platform.need("packet_overhead")?,
            engines: at_least_one("engines")?,
            queues_per_engine: at_least_one("queues_per_engine")?,
            transmit_queue: at_least_one("transmit_queue")?,
            receive_queue: at_least_one("receive_queue")?,
            engine_room: room.min(255) as u8,
            max_transfer: u64::from(at_least_one("max_transfer")?),
            notice_bits: at_least_one("notice_bits")?.min(64),
            yield_: u64::from(at_least_one("yield")?),
            node_memory: platform.need("node_memory")?,
            queues: QueueTable::new(platform)?,
            ordered_puts: platform.part(&ORDERED_PUTS)?.is_some(),
            crossbar_row: row,
            third_party_copy: platform.need("third_party_copy")? != 0,
            block_puts: platform.need("block_puts")? != 0,
            multicast: platform.value("multicast").unwrap_or(0),
            multicast_byte: platform.value("multicast_byte").unwrap_or(0),
            barrier_gate,
            barrier_channels: channels as u32,
            barrier_gates: gates as u32,
            barrier_colours: u32::try_from(colours).unwrap_or(u32::MAX),
            colour_barrier: platform.value("colour_barrier").unwrap_or(0),
            software: Software::new(platform)?,
        })
    }

    /// Returns the time in which the CPU posts an operation, whose descriptor was built earlier
    /// (`prepared`) or is built now.
    #[inline]
    pub(crate) fn posting(&self, prepared: bool) -> u64 {
        if prepared { self.post } else { self.post.saturating_add(self.descriptor) }
    }

    /// Returns the time that a payload adds to a leg, at most [`LONGEST`].
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "more bytes than are free")]
    pub(crate) fn payload(&self, bytes: u64) -> u64 {
        if bytes <= FREE_BYTES { 0 } else { scaled(bytes - FREE_BYTES, self.payload_byte) }
    }

    /// Returns the time taken by the payload of a message that precedes the packet at `offset`, in
    /// bytes.
    #[inline]
    pub(crate) fn payload_before(&self, offset: u64) -> u64 {
        scaled(offset, self.payload_byte)
    }

    /// Returns the time that the last packet's payload adds to the message's latency, after the
    /// other packets.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "rounds down; a packet has a payload")]
    pub(crate) fn last_packet(&self, bytes: u64) -> u64 {
        let before = bytes.saturating_sub(1) / self.packet_payload * self.packet_payload;
        self.payload(bytes).saturating_sub(self.payload_before(before))
    }

    /// Returns the time for which a packet with this payload occupies a link or a receive engine.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`check_bounds` bounds the overhead, memory the payload")]
    pub(crate) fn occupancy(&self, payload: u64) -> u64 {
        scaled(payload + self.packet_overhead, self.link_byte)
    }

    /// Returns the time in which a result gets back, over a wire that takes `wire`: send engine,
    /// wire, receive engine, polling.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`check_bounds` and the length of routes bound the sum")]
    pub(crate) fn leg_back(&self, wire: u64) -> u64 {
        self.send + wire + self.receive + self.post
    }

    /// Returns the wire latency over `hops` hops.
    #[inline]
    #[expect(clippy::arithmetic_side_effects, reason = "`check_bounds` and the length of routes bound the sum")]
    pub(crate) fn wire(&self, hops: u32) -> u64 {
        if hops == 0 { 0 } else { self.wire + u64::from(hops - 1) * self.hop }
    }

    /// Returns the time in which the bytes of a multicast pass the crossbar of all multicasts,
    /// excluding the bytes that the latency includes.
    pub(crate) fn multicast_payload(&self, bytes: u64) -> u64 {
        self.payload(bytes).max(scaled(bytes.saturating_sub(FREE_BYTES), self.multicast_byte))
    }
}

/// Returns the picoseconds that `bytes` bytes take at `femtos` femtoseconds per byte, at most
/// [`LONGEST`].
#[inline]
pub(super) fn scaled(bytes: u64, femtos: u64) -> u64 {
    match bytes.checked_mul(femtos) {
        Some(product) => product / 1000,
        None => {
            let picos = u128::from(bytes).saturating_mul(femtos.into()) / 1000;
            picos.min(LONGEST.into()) as u64
        }
    }
}

/// The capabilities of control queues, in the form that the event path uses.
#[derive(Clone, Debug, Default)]
pub(crate) struct QueueTable {
    pub(crate) engines: u8,
    /// The CQs of each engine that programs can use.
    pub(crate) numbers: u8,
    pub(crate) contexts: u8,
    pub(crate) session: u32,
    pub(crate) exclusive: u32,
    pub(crate) depth: u32,
    pub(crate) fixed_tags: u32,
    pub(crate) automatic_tags: u32,
    /// Whether all queues of a rank share one address space.
    pub(crate) shared_tags: bool,
    /// Picoseconds per unit of a command's gap.
    pub(crate) packet_gap: u64,
    /// Picoseconds that the first put of a chain takes in addition.
    pub(crate) chain: u64,
    /// The longest command, in bytes.
    pub(crate) longest: u32,
}

impl QueueTable {
    fn new(platform: &Platform) -> Result<Self, FabricError> {
        if platform.part(&QUEUES)?.is_none() {
            return Ok(QueueTable::default());
        }
        let most = |name: &'static str, most: u64| match platform.need(name)? {
            value if value <= most => Ok(value as u32),
            value => Err(FabricError::setting("platform constant", format!("{name} is {value}, more than {most}"))),
        };
        Ok(QueueTable {
            engines: most("engines", 16)? as u8,
            numbers: most("queues_per_engine", 255)?.saturating_sub(most("system_queues", 255)?) as u8,
            contexts: most("queue_contexts", 16)? as u8,
            session: most("session_queues", 255)?,
            exclusive: most("exclusive_queues", 255)?,
            depth: most("queue_depth", 1 << 31)?,
            fixed_tags: most("fixed_tags", 256)?,
            automatic_tags: most("automatic_tags", (1 << 24) - 0x1000)?,
            shared_tags: platform.need("shared_tags")? != 0,
            packet_gap: platform.need("packet_gap")?,
            chain: platform.need("queue_chain")?,
            longest: platform.need("max_transfer")?.min((1 << 24) - 1) as u32,
        })
    }

    /// Returns the limits that a rank sees when `free` CQs of its node are free.
    pub(crate) fn limits(&self, free: u32) -> QueueLimits {
        let mut limits = QueueLimits::new(self.engines, self.numbers);
        limits.contexts = self.contexts;
        limits.free = free;
        limits.most_depth = self.depth;
        limits.longest = self.longest;
        limits.fixed_tags = self.fixed_tags;
        limits.shared_address_space = self.shared_tags;
        limits
    }
}
