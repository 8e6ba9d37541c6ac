//! The constants as the event path uses them: looked up once, picoseconds.
//!
//! # How an operation's latency is made up
//! Only two sums are calibrated: the one-way latency of an 8-byte put to a neighbour and what the wire adds to a round
//! trip. A leg is *post* (CPU) + *send engine* + *wire* + *receive engine*; the receive engine takes what the put's
//! latency leaves (FX100: 710 = 150 + 150 + 260 + 150 ns). The leg back is send engine + wire + receive engine + polling the
//! result, polling taking as long as posting. The wire takes half the round trip for the first hop and `hop` for each
//! further one, nothing inside a node. The first 8 bytes of a payload are in these figures; further ones take `payload_byte` each.
//!
//! So an unloaded fetch-add takes 2 x 450 + 269.5 ns inside a node of FX100 and 520 ns more to a neighbour.

use super::{Platform, QueueTable, SOFTWARE};
use rdma_fabric::{FabricError, barrier::GateId};

#[derive(Clone, Debug)]
pub(in super::super) struct Timing {
    /// Service time of an atomic when `i + 1` receive engines have one, in picoseconds.
    pub(in super::super) service: Vec<u64>,
    pub(in super::super) post: u64,
    pub(in super::super) send: u64,
    pub(in super::super) receive: u64,
    pub(in super::super) gap: u64,
    /// One way, first hop.
    pub(in super::super) wire: u64,
    /// Each further hop.
    pub(in super::super) hop: u64,
    /// Femtoseconds per byte.
    link_byte: u64,
    /// Femtoseconds per byte.
    payload_byte: u64,
    pub(in super::super) packet_payload: u64,
    packet_overhead: u64,
    pub(in super::super) engines: u32,
    pub(in super::super) queues_per_engine: u32,
    pub(in super::super) transmit_queue: u32,
    pub(in super::super) receive_queue: u32,
    pub(in super::super) engine_room: u8,
    pub(in super::super) max_transfer: u64,
    pub(in super::super) notice_bits: u32,
    pub(in super::super) yield_: u64,
    pub(in super::super) node_memory: u64,
    pub(in super::super) queues: QueueTable,
    /// From a barrier gate's last input to its outputs.
    pub(in super::super) barrier_gate: u64,
    /// Start/end gates of a node's barrier unit.
    pub(in super::super) barrier_channels: u32,
    /// All its gates.
    pub(in super::super) barrier_gates: u32,
    /// Layers by name; few, so a list.
    software: Vec<(&'static str, u64)>,
}

/// Bytes whose transfer the latency figures contain.
const FREE_BYTES: u64 = 8;

impl Timing {
    pub(in super::super) fn new(platform: &Platform, receive_engines: u32) -> Result<Self, FabricError> {
        let wrong = |problem: String| FabricError::setting("platform constant", problem);
        let (alone, serial) = (platform.need("atomic_service")?, platform.need("atomic_serial")?);
        if serial > 10_000 {
            return Err(wrong(format!("atomic_serial is {serial}, more than 10000 ten-thousandths")));
        }
        let service = (1..=u64::from(receive_engines.max(1)))
            .map(|k| (u128::from(alone) * u128::from(serial * k + 10_000 - serial) / u128::from(10_000 * k)) as u64)
            .collect();
        let (put, round_trip) = (platform.need("put_one_way")?, platform.need("wire_round_trip")?);
        let (post, send) = (platform.need("post")?, platform.need("send_engine")?);
        let receive = put.checked_sub(round_trip / 2 + post + send).ok_or_else(|| {
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
        let (channels, gates) = (platform.need("barrier_channels")?, platform.need("barrier_gates")?);
        if channels > gates || gates > u64::from(GateId::INDICES) {
            return Err(wrong(format!(
                "barrier_channels {channels}, barrier_gates {gates}: at most {} gates",
                GateId::INDICES
            )));
        }
        let software = platform.constants().iter().filter_map(|c| Some((c.name.strip_prefix(SOFTWARE)?, c.value)));
        Ok(Timing {
            service,
            post,
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
            engine_room: at_least_one("engine_room")?.min(255) as u8,
            max_transfer: u64::from(at_least_one("max_transfer")?),
            notice_bits: at_least_one("notice_bits")?.min(64),
            yield_: u64::from(at_least_one("yield")?),
            node_memory: platform.need("node_memory")?,
            queues: QueueTable::new(platform)?,
            barrier_gate: platform.need("barrier_gate")?,
            barrier_channels: at_least_one("barrier_channels")?,
            barrier_gates: at_least_one("barrier_gates")?,
            software: software.collect(),
        })
    }

    /// What a payload adds to a leg.
    #[inline]
    pub(in super::super) fn payload(&self, bytes: u64) -> u64 {
        if bytes <= FREE_BYTES { 0 } else { scaled(bytes - FREE_BYTES, self.payload_byte) }
    }

    /// What the payload of a message takes that goes before a packet at this offset, in bytes.
    #[inline]
    pub(in super::super) fn payload_before(&self, offset: u64) -> u64 {
        scaled(offset, self.payload_byte)
    }

    /// What the last packet's payload adds to its message's latency, after the others.
    #[inline]
    pub(in super::super) fn last_packet(&self, bytes: u64) -> u64 {
        let before = bytes.saturating_sub(1) / self.packet_payload * self.packet_payload;
        self.payload(bytes).saturating_sub(self.payload_before(before))
    }

    /// How long a packet with so much payload occupies a link or a receive engine.
    #[inline]
    pub(in super::super) fn occupancy(&self, payload: u64) -> u64 {
        scaled(payload + self.packet_overhead, self.link_byte)
    }

    /// What the way back of a result takes whose wire takes `wire`: send engine, wire, receive engine, polling.
    #[inline]
    pub(in super::super) fn leg_back(&self, wire: u64) -> u64 {
        self.send + wire + self.receive + self.post
    }

    /// Wire latency over so many hops.
    #[inline]
    pub(in super::super) fn wire(&self, hops: u32) -> u64 {
        if hops == 0 { 0 } else { self.wire + u64::from(hops - 1) * self.hop }
    }

    /// What passing a software layer costs; nothing if it is unknown.
    pub(in super::super) fn software(&self, layer: &str) -> u64 {
        self.software.iter().find(|(name, _)| *name == layer).map_or(0, |(_, cost)| *cost)
    }
}

/// Picoseconds of so many bytes at femtoseconds per byte.
#[inline]
fn scaled(bytes: u64, femtos: u64) -> u64 {
    match bytes.checked_mul(femtos) {
        Some(product) => product / 1000,
        None => u64::try_from(u128::from(bytes) * u128::from(femtos) / 1000).unwrap_or(u64::MAX),
    }
}
