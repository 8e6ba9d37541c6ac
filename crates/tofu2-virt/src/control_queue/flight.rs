//! Flights: commands that the send engine has taken and that have not completed; and the division
//! of payloads into packets.

use super::super::{
    memory::{Loc, Memory},
    operation::Opcode,
    platform::{LONGEST, Timing},
    slots::{NONE, Slots, Slotted},
    topology::PathId,
};
use rdma_fabric::control_queue::{MrqKind, QueueError, QueueId, Stadd};

/// Set in [`super::super::network::Packet::op`] for packets of control queues; the other bits are
/// the flight.
pub(crate) const FLIGHT: u32 = 1 << 31;

/// Buffers longer than this, in bytes, are not kept for reuse.
const KEEP: usize = 4096;

/// A command in flight.
#[derive(Debug)]
pub(super) struct Flight {
    /// The next slot of the free list.
    next: u32,
    /// The rank that posted it.
    pub(super) rank: u32,
    /// The queue to which it was posted, whose slot is kept as long as the flight lasts.
    pub(super) queue: u32,
    pub(super) from: QueueId,
    pub(super) to: QueueId,
    /// Its position in the queue.
    pub(super) slot: u64,
    /// The target's memory.
    pub(super) at: Stadd,
    /// For a get, the place in the poster's memory.
    pub(super) own: Stadd,
    pub(super) len: u32,
    pub(super) opcode: Opcode,
    pub(super) wants: Wants,
    pub(super) edata: u8,
    pub(super) sps: u8,
    /// The largest packet, and the idle time between packets.
    pub(super) mtu: u16,
    pub(super) gap: u8,
    /// The path, if the poster chose one.
    pub(super) path: Option<PathId>,
    /// For strong order: the number of atomics of the queue to this target that precede it.
    pub(super) after: u32,
    /// Wire latency of the return leg, in picoseconds.
    pub(super) back: u64,
    /// The first operand, the bytes of a put of at most 8, then the result. `b` is the second
    /// operand.
    pub(super) a: u64,
    pub(super) b: u64,
    /// The payload, if it is longer than 8 bytes.
    pub(super) bytes: Vec<u8>,
    pub(super) status: Result<(), QueueError>,
}

/// What else a command requests.
#[derive(Clone, Copy, Debug)]
pub(super) struct Wants {
    pub(super) local_notice: bool,
    pub(super) remote_notice: bool,
    pub(super) strong_order: bool,
    /// Whether the poster is in checking mode.
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

    /// Returns the bytes of a put, or those that a get has read.
    #[inline]
    pub(super) fn payload(&self) -> &[u8] {
        if self.len <= 8 { &bytemuck::bytes_of(&self.a)[..self.len as usize] } else { &self.bytes }
    }

    /// Returns the division of the payload into packets.
    #[inline]
    pub(super) fn cut(&self, timing: &Timing) -> Cut {
        Cut::new(timing, self.mtu, self.gap)
    }

    /// Returns whether it is a put by which a rank releases commands of its own queues.
    #[inline]
    pub(super) fn chains(&self) -> bool {
        self.sps > 0 && self.opcode == Opcode::Put && self.from.rank() == self.to.rank()
    }

    /// Returns the kind of its notice at the poster.
    pub(super) fn local_kind(&self) -> MrqKind {
        match self.opcode {
            Opcode::Put => MrqKind::LocalPut,
            Opcode::Get => MrqKind::LocalGet,
            _ => MrqKind::LocalAtomic,
        }
    }

    /// Returns the kind of its notice at the target.
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
    /// Buffers for the payloads of later flights.
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

    /// Returns an empty buffer.
    #[inline]
    pub(super) fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Reads a flight's payload: as a word if it is short, else into a buffer.
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

    /// Returns the peak size of the table in bytes, without buffers.
    pub(super) fn peak_bytes(&self) -> usize {
        self.slots.peak_bytes()
    }
}

/// The division of a payload into packets.
///
/// The platform's rate holds for the network's largest packets without idle time. Smaller packets
/// add their overhead at the link's rate; gaps add idle time.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    /// The largest payload of a packet, in bytes.
    pub(crate) size: u64,
    /// Idle time between packets, in picoseconds.
    pub(crate) gap: u64,
}

impl Cut {
    /// Returns the network's default division.
    #[inline]
    pub(crate) fn usual(timing: &Timing) -> Self {
        Cut { size: timing.packet_payload, gap: 0 }
    }

    /// Returns the division that a command requests for its payload. An MTU of 0 means the
    /// network's.
    #[inline]
    pub(super) fn new(timing: &Timing, mtu: u16, gap: u8) -> Self {
        let size = if mtu == 0 { timing.packet_payload } else { u64::from(mtu).min(timing.packet_payload) };
        Cut { size, gap: u64::from(gap) * timing.queues.packet_gap }
    }

    /// Returns the time that the packets before the one at `offset` take in addition to their
    /// payload, in picoseconds: at most [`LONGEST`].
    #[inline]
    pub(crate) fn extra_before(&self, timing: &Timing, offset: u64) -> u64 {
        if self.gap == 0 && self.size == timing.packet_payload {
            return 0;
        }
        let packets = offset / self.size;
        let usual = offset / timing.packet_payload;
        // A packet is no longer than usual.
        let more = packets.saturating_sub(usual).saturating_mul(timing.occupancy(0));
        packets.saturating_mul(self.gap).saturating_add(more).min(LONGEST)
    }

    /// Returns the offset at which the last packet of a message begins.
    #[inline]
    pub(super) fn last(&self, bytes: u64) -> u64 {
        bytes.saturating_sub(1) / self.size * self.size
    }

    /// Returns the time of a whole payload, beyond the first 8 bytes, in picoseconds.
    #[inline]
    pub(super) fn payload(&self, timing: &Timing, bytes: u64) -> u64 {
        timing.payload(bytes) + self.extra_before(timing, self.last(bytes))
    }

    /// Returns the time that the last packet's payload adds to its message's latency, after the
    /// others, in picoseconds.
    #[inline]
    pub(super) fn tail(&self, timing: &Timing, bytes: u64) -> u64 {
        timing.payload(bytes).saturating_sub(timing.payload_before(self.last(bytes)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::platform::Platform;

    /// The smallest packets, with the longest gaps of a machine between them.
    #[test]
    fn times_of_many_packets_can_be_added() {
        let with = |name, value| Platform::fx100().with(name, value).unwrap();
        for platform in [
            with("packet_gap", 1_000_000_000_000),
            with("packet_overhead", 1 << 20).with("link_byte", 10_000_000_000).unwrap(),
        ] {
            let timing = Timing::new(&platform, 1).unwrap();
            let cut = Cut::new(&timing, 1, u8::MAX);
            let longest = u64::from(timing.queues.longest);
            let times = [cut.extra_before(&timing, longest), cut.payload(&timing, longest), timing.payload(1 << 50)];
            let sum = times.into_iter().try_fold(timing.receive, u64::checked_add);
            assert!(sum.is_some(), "{} and {times:?}", platform.name());
        }
    }
}
