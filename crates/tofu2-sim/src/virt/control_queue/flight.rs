//! Commands that the send engine has taken and that are not over, and how they are cut into
//! packets.

use super::super::{
    memory::{Loc, Memory},
    operation::Opcode,
    platform::Timing,
    slots::{NONE, Slots, Slotted},
    topology::PathId,
};
use rdma_fabric::control_queue::{MrqKind, QueueError, QueueId, Stadd};

/// Set in [`super::super::network::Packet::op`] of packets of queues: the rest is the flight.
pub(crate) const FLIGHT: u32 = 1 << 31;

/// Longer buffers are not kept for reuse.
const KEEP: usize = 4096;

/// A command under way.
#[derive(Debug)]
pub(super) struct Flight {
    /// Next free one.
    next: u32,
    /// The rank that posted it.
    pub(super) rank: u32,
    /// The queue it was posted to, which stays as long as the flight lasts.
    pub(super) queue: u32,
    pub(super) from: QueueId,
    pub(super) to: QueueId,
    /// Position in the queue.
    pub(super) slot: u64,
    /// The target's memory.
    pub(super) at: Stadd,
    /// Own memory, of a get.
    pub(super) own: Stadd,
    pub(super) len: u32,
    pub(super) opcode: Opcode,
    pub(super) wants: Wants,
    pub(super) edata: u8,
    pub(super) sps: u8,
    /// Largest packet and idle time between packets.
    pub(super) mtu: u16,
    pub(super) gap: u8,
    /// The poster's choice.
    pub(super) path: Option<PathId>,
    /// Strong order: how many atomics of the queue to this target come first.
    pub(super) after: u32,
    /// Wire latency of the leg back, in picoseconds.
    pub(super) back: u64,
    /// Operands; the bytes of a put of at most 8; the result.
    pub(super) a: u64,
    pub(super) b: u64,
    /// Of longer transfers.
    pub(super) bytes: Vec<u8>,
    pub(super) status: Result<(), QueueError>,
}

/// What a command asked for besides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    pub(super) local_notice: bool,
    pub(super) remote_notice: bool,
    pub(super) strong_order: bool,
    /// The poster's checking mode.
    pub(super) checked: bool,
}

impl Flight {
    pub(super) fn new(rank: u32, queue: u32, from: QueueId, to: QueueId, opcode: Opcode, at: Stadd) -> Self {
        let wants = Wants { local_notice: false, remote_notice: false, strong_order: false, checked: false };
        Flight {
            next: NONE,
            rank,
            queue,
            from,
            to,
            slot: 0,
            at,
            own: Stadd::fixed(0),
            len: 0,
            opcode,
            wants,
            edata: 0,
            sps: 0,
            mtu: 0,
            gap: 0,
            path: None,
            after: 0,
            back: 0,
            a: 0,
            b: 0,
            bytes: Vec::new(),
            status: Ok(()),
        }
    }

    /// The bytes of a put, or that were got.
    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        if self.len <= 8 { &bytemuck::bytes_of(&self.a)[..self.len as usize] } else { &self.bytes }
    }

    /// How it is cut into packets.
    #[inline]
    pub(super) fn cut(&self, timing: &Timing) -> Cut {
        Cut::new(timing, self.mtu, self.gap)
    }

    /// The notice at the poster.
    pub(super) fn local_kind(&self) -> MrqKind {
        match self.opcode {
            Opcode::Put => MrqKind::LocalPut,
            Opcode::Get => MrqKind::LocalGet,
            _ => MrqKind::LocalAtomic,
        }
    }

    /// The notice at the target.
    pub(super) fn remote_kind(&self) -> MrqKind {
        match self.opcode {
            Opcode::Put => MrqKind::RemotePut,
            Opcode::Get => MrqKind::RemoteGet,
            _ => MrqKind::RemoteAtomic,
        }
    }
}

impl Slotted for Flight {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }
}

/// All flights.
#[derive(Debug)]
pub(super) struct Flights {
    slots: Slots<Flight>,
    /// Buffers for the bytes of those to come.
    spare: Vec<Vec<u8>>,
}

impl Default for Flights {
    fn default() -> Self {
        Flights { slots: Slots::new(), spare: Vec::new() }
    }
}

impl Flights {
    #[inline]
    pub(super) fn insert(&mut self, flight: Flight) -> u32 {
        self.slots.insert(flight)
    }

    #[inline]
    pub(super) fn free(&mut self, slot: u32) {
        let mut bytes = std::mem::take(&mut self.slots.free(slot).bytes);
        if (1..=KEEP).contains(&bytes.capacity()) {
            bytes.clear();
            self.spare.push(bytes);
        }
    }

    /// An empty buffer.
    #[inline]
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Reads the payload of a flight: as a word if it is short, else in a buffer.
    #[inline]
    pub(super) fn read(&mut self, memory: &Memory, from: &Loc) -> (u64, Vec<u8>) {
        if from.len <= 8 {
            return (memory.short(from), Vec::new());
        }
        let mut bytes = self.buffer();
        memory.append_to(from, &mut bytes);
        (0, bytes)
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Flight {
        self.slots.get(slot)
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Flight {
        self.slots.get_mut(slot)
    }

    /// Most bytes in use at once, buffers not counted.
    pub(super) fn peak_bytes(&self) -> usize {
        self.slots.peak_bytes()
    }
}

/// How a payload is cut into packets.
///
/// The platform's rate holds for the network's largest packets without idle time; smaller packets
/// add their overhead at the link's rate, gaps add idle time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// Largest payload of a packet, in bytes.
    pub(crate) size: u64,
    /// Idle time between packets, in picoseconds.
    pub(crate) gap: u64,
}

impl Cut {
    /// As the network does it by itself.
    #[inline]
    pub(crate) fn usual(timing: &Timing) -> Self {
        Cut { size: timing.packet_payload, gap: 0 }
    }

    /// As a command asks for it; an MTU of 0 is the network's.
    #[inline]
    pub(super) fn new(timing: &Timing, mtu: u16, gap: u8) -> Self {
        let size = if mtu == 0 { timing.packet_payload } else { u64::from(mtu).min(timing.packet_payload) };
        Cut { size, gap: u64::from(gap) * timing.queues.packet_gap }
    }

    /// What the packets before the one at `offset` add to what their payload takes, in picoseconds.
    #[inline]
    pub(crate) fn extra_before(&self, timing: &Timing, offset: u64) -> u64 {
        if self.gap == 0 && self.size == timing.packet_payload {
            return 0;
        }
        let packets = offset / self.size;
        let usual = offset / timing.packet_payload;
        packets * self.gap + (packets - usual) * timing.occupancy(0)
    }

    /// Where the last packet of a message begins.
    #[inline]
    pub(super) fn last(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(1) / self.size * self.size
    }

    /// What a whole payload takes, beyond the first 8 bytes.
    #[inline]
    pub(super) fn payload(&self, timing: &Timing, bytes: u64) -> u64 {
        timing.payload(bytes) + self.extra_before(timing, self.last(bytes))
    }

    /// What the last packet's payload adds to its message's latency, after the others.
    #[inline]
    pub(super) fn tail(&self, timing: &Timing, bytes: u64) -> u64 {
        timing.payload(bytes).saturating_sub(timing.payload_before(self.last(bytes)))
    }
}
