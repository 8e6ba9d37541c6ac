//! Packets under way.

use super::super::topology::{LegIndex, PathId};

pub(super) const NONE: u32 = u32::MAX;

/// One packet. The operation it belongs to knows the rest.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct Packet {
    /// When its head can leave the queue it is in, in picoseconds.
    pub(in super::super) ready_at: u64,
    /// When it was sent: its age.
    pub(in super::super) born: u64,
    pub(in super::super) op: u32,
    /// Target node.
    pub(in super::super) to: u32,
    /// Next packet of the queue.
    pub(super) next: u32,
    /// Payload in bytes.
    pub(in super::super) payload: u16,
    /// Receive engine.
    pub(in super::super) engine: u8,
    pub(in super::super) atomic: bool,
    pub(in super::super) last: bool,
    pub(in super::super) path: PathId,
    /// Where it stands on its route.
    pub(super) leg: LegIndex,
}

const _: () = assert!(size_of::<Packet>() <= 40);

impl Packet {
    pub(in super::super) fn new(op: u32, to: u32, engine: u8, atomic: bool, path: PathId) -> Self {
        Packet { ready_at: 0, born: 0, op, to, next: NONE, payload: 0, engine, atomic, last: true, path, leg: 0 }
    }
}

#[derive(Debug)]
pub(super) struct Packets {
    slots: Vec<Packet>,
    free: u32,
}

impl Packets {
    pub(super) fn new() -> Self {
        Packets { slots: Vec::new(), free: NONE }
    }

    #[inline]
    pub(super) fn insert(&mut self, packet: Packet) -> u32 {
        if self.free == NONE {
            self.slots.push(packet);
            return self.slots.len() as u32 - 1;
        }
        let slot = self.free;
        self.free = self.slots[slot as usize].next;
        self.slots[slot as usize] = packet;
        slot
    }

    #[inline]
    pub(super) fn free(&mut self, slot: u32) {
        self.slots[slot as usize].next = self.free;
        self.free = slot;
    }

    #[inline]
    pub(super) fn get(&self, slot: u32) -> &Packet {
        &self.slots[slot as usize]
    }

    #[inline]
    pub(super) fn get_mut(&mut self, slot: u32) -> &mut Packet {
        &mut self.slots[slot as usize]
    }
}
