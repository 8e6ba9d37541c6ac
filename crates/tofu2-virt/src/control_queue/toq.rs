//! The transmit order queue: posts in order, and the pointers into it.
//!
//! Positions count slots since the queue was opened. `read <= announced <= write`, and `write -
//! read` is less than the depth: one slot stays free, so that a full ring differs from an empty
//! one. A post of several blocks is stored once and counts the blocks begun.

use rdma_fabric::control_queue::{Pointers, Posting, QueueMode, QueueSpec};
use std::collections::VecDeque;

#[derive(Debug)]
pub(super) struct Toq {
    entries: VecDeque<Waiting>,
    depth: u32,
    /// The next slot to be executed.
    read: u64,
    /// The next slot to be written.
    write: u64,
    /// Slots before this one have been announced to the engine by the doorbell; delayed starts
    /// follow.
    announced: u64,
    /// The session offset; `None` in other modes. While it is at most `read + depth - 1`, the
    /// hardware's ring index is equivalent.
    offset: Option<u64>,
}

#[derive(Debug)]
struct Waiting {
    posting: Posting,
    /// The time at which the CPU has finished writing it, in picoseconds.
    written_at: u64,
    /// The number of blocks begun.
    begun: u32,
}

/// One command of the hardware: a block of a post, at a slot.
#[derive(Clone, Copy, Debug)]
pub(super) struct Order {
    pub(super) posting: Posting,
    pub(super) block: u32,
    pub(super) slot: u64,
}

/// The outcome of an advance.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Advance {
    Moved,
    /// The queue is not in session mode.
    Ignored,
    /// The offset would have reached this position, a whole ring ahead of the read pointer. As in
    /// the hardware, a ring's worth of credit was lost.
    Wrapped {
        would_be: u64,
    },
}

impl Toq {
    pub(super) fn new(spec: &QueueSpec) -> Self {
        let offset = (spec.mode == QueueMode::Session).then_some(u64::from(spec.initial_offset));
        Toq { entries: VecDeque::new(), depth: spec.depth, read: 0, write: 0, announced: 0, offset }
    }

    pub(super) fn pointers(&self) -> Pointers {
        Pointers { read: self.read, write: self.write, scheduled: self.offset.unwrap_or(self.write) }
    }

    pub(super) fn depth(&self) -> u32 {
        self.depth
    }

    #[inline]
    pub(super) fn has_room(&self, slots: u64) -> bool {
        self.write - self.read + slots < u64::from(self.depth)
    }

    /// Writes a post for which there is room. Returns its first slot.
    #[inline]
    pub(super) fn push(&mut self, posting: Posting, written_at: u64) -> u64 {
        let slot = self.write;
        self.write += posting.command.slots();
        if !posting.delay_start {
            self.announced = self.write;
        }
        self.entries.push_back(Waiting { posting, written_at, begun: 0 });
        slot
    }

    /// Returns the command that may be executed next, and the time at which it was written. `None`
    /// if there is none, or if it must wait for its start or for the session offset to pass all its
    /// slots.
    #[inline]
    pub(super) fn runnable(&self) -> Option<(Order, u64)> {
        let head = self.entries.front()?;
        let end = self.read + u64::from(head.posting.command.slots_each());
        let allowed = self.offset.map_or(self.announced, |offset| offset.min(self.announced));
        let order = Order { posting: head.posting, block: head.begun, slot: self.read };
        (end <= allowed).then_some((order, head.written_at))
    }

    /// Takes the command that may be executed next.
    #[inline]
    pub(super) fn take(&mut self) -> Option<Order> {
        let (order, _) = self.runnable()?;
        self.read += u64::from(order.posting.command.slots_each());
        if order.block + 1 == order.posting.command.commands() {
            self.entries.pop_front();
        } else if let Some(head) = self.entries.front_mut() {
            head.begun += 1;
        }
        Some(order)
    }

    /// Returns whether the queue has a session offset.
    pub(super) fn has_offset(&self) -> bool {
        self.offset.is_some()
    }

    /// Advances the session offset by `slots` slots, for a put that has arrived.
    #[inline]
    pub(super) fn advance(&mut self, slots: u8) -> Advance {
        let Some(offset) = &mut self.offset else { return Advance::Ignored };
        let would_be = *offset + u64::from(slots);
        *offset = would_be;
        if would_be - self.read < u64::from(self.depth) {
            return Advance::Moved;
        }
        while *offset - self.read >= u64::from(self.depth) {
            *offset -= u64::from(self.depth);
        }
        Advance::Wrapped { would_be }
    }

    /// Drops all commands that have not started. Returns their number.
    pub(super) fn clear(&mut self) -> u64 {
        let left = self.entries.drain(..).map(|entry| u64::from(entry.posting.command.commands() - entry.begun)).sum();
        self.entries = VecDeque::new();
        left
    }

    /// Returns the size of the ring's storage in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.entries.capacity() * size_of::<Waiting>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rdma_fabric::{
        Rank,
        control_queue::{Blocks, Command, Inline, QueueId, Stadd},
    };

    fn toq(depth: u32, ahead: u32) -> Toq {
        Toq::new(&QueueSpec::new(QueueMode::Session).depth(depth).ahead(ahead))
    }

    fn two_slots() -> Posting {
        let to = QueueId::new(Rank::new(0), 0, 0, 0);
        Posting::new(Command::PutInline { to, bytes: Inline::new(&[1; 9]).unwrap(), at: Stadd::fixed(0) })
    }

    #[test]
    fn a_command_waits_until_the_offset_has_passed_all_its_slots() {
        let mut ring = toq(8, 0);
        ring.push(two_slots(), 0);
        assert!(ring.runnable().is_none());
        assert_eq!(ring.advance(1), Advance::Moved);
        assert!(ring.take().is_none());
        assert_eq!(ring.advance(1), Advance::Moved);
        assert_eq!(ring.take().map(|order| order.slot), Some(0));
        assert_eq!(ring.pointers(), Pointers { read: 2, write: 2, scheduled: 2 });
    }

    #[test]
    fn one_slot_stays_free_and_blocks_take_theirs() {
        let mut ring = toq(8, 7);
        let to = QueueId::new(Rank::new(0), 0, 0, 0);
        let (from, at) = (Stadd::fixed(0), Stadd::fixed(1));
        let blocks = Blocks { count: 5, stride: 8 };
        assert!(ring.has_room(7) && !ring.has_room(8));
        ring.push(Command::Put { to, from, at, len: 8, blocks }.into(), 0);
        assert!(ring.has_room(2) && !ring.has_room(3));
        for block in 0..5 {
            assert_eq!(ring.take().map(|order| (order.block, order.slot)), Some((block, block.into())));
        }
        assert!(ring.take().is_none());
        assert!(ring.has_room(7));
    }

    #[test]
    fn delayed_starts_wait_for_the_next_posting() {
        let mut ring = Toq::new(&QueueSpec::new(QueueMode::Normal).depth(8));
        ring.push(Posting::new(Command::Nop).delayed(), 0);
        assert!(ring.runnable().is_none());
        ring.push(Command::Nop.into(), 0);
        ring.push(Posting::new(Command::Nop).delayed(), 0);
        assert!(ring.take().is_some() && ring.take().is_some() && ring.take().is_none());
        assert_eq!(ring.clear(), 1);
    }

    /// As observed on the public simulator: 400 times 15 into 2048 slots leaves 6000 mod 2048.
    #[test]
    fn credit_a_whole_ring_ahead_is_lost() {
        let mut ring = toq(2048, 0);
        let wraps = (0..400).filter(|_| matches!(ring.advance(15), Advance::Wrapped { .. })).count();
        assert_eq!((ring.pointers().scheduled, wraps), (1904, 2));
        assert_eq!(toq(4, 0).advance(4), Advance::Wrapped { would_be: 4 });
        assert_eq!(toq(4, 0).advance(3), Advance::Moved);
    }
}
