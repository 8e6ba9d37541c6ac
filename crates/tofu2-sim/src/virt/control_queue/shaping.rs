//! What a command's own packet size and gap cost.
//!
//! The platform's rate holds for the network's largest packets without idle time; smaller packets add their overhead
//! at the link's rate, gaps add idle time.

use super::super::platform::Timing;

/// How a payload is cut into packets.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Cut {
    /// Largest payload of a packet, in bytes.
    pub(in super::super) size: u64,
    /// Idle time between packets, in picoseconds.
    pub(in super::super) gap: u64,
}

impl Cut {
    /// As the network does it by itself.
    #[inline]
    pub(in super::super) fn usual(timing: &Timing) -> Self {
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
    pub(in super::super) fn extra_before(&self, timing: &Timing, offset: u64) -> u64 {
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
