//! Operations in flight: a table of small slots, each tagged with a generation.

mod blocks;
mod life;
mod multicast;
mod posting;
mod token;

pub(super) use posting::{Payload, posted, same_length};

use super::{
    memory::Loc,
    slots::{NONE, Slots, Slotted},
};
use rdma_fabric::{Amo, FabricError};

/// The number of generations of a slot before they wrap around.
pub(super) const GENERATIONS: u32 = 1 << 30;

/// The kind of a command to the NIC, as in its descriptor. Operands are kept separately: with an
/// [`Amo`] inside, an [`Op`] would take 112 bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Opcode {
    Put,
    Get,
    /// Third-party copy: a command to the source's interface, which puts.
    Copy,
    #[default]
    Nop,
    Add,
    Swap,
    CompareSwap,
    Or,
    And,
    Xor,
}

impl Opcode {
    /// Returns an atomic's opcode and operands; the expected value of a comparison is the first.
    #[inline]
    pub(super) fn of<W: Copy>(amo: Amo<W>) -> (Opcode, W, W) {
        match amo {
            Amo::Add(v) => (Opcode::Add, v, v),
            Amo::Swap(v) => (Opcode::Swap, v, v),
            Amo::CompareSwap { expected, new } => (Opcode::CompareSwap, expected, new),
            Amo::Or(v) => (Opcode::Or, v, v),
            Amo::And(v) => (Opcode::And, v, v),
            Amo::Xor(v) => (Opcode::Xor, v, v),
        }
    }

    pub(super) fn is_atomic(self) -> bool {
        !matches!(self, Opcode::Put | Opcode::Get | Opcode::Copy | Opcode::Nop)
    }
}

/// One posted operation: the poster's rank, the target's place, and operands. It allocates only if
/// it moves more than 8 bytes.
#[derive(Debug, Default)]
pub(super) struct Op {
    /// Incremented when the slot is freed.
    pub(super) generation: u32,
    /// Next slot in the list of this one: the free list or an engine's queue.
    pub(super) next: u32,
    /// The rank, or the helper's lane.
    pub(super) poster: u32,
    /// The flight of the control queue's command that the atomic unit executes; [`NONE`] for a
    /// fabric operation.
    pub(super) flight: u32,
    /// Wire latency of the return leg, in picoseconds.
    pub(super) back: u64,
    pub(super) target: Loc,
    /// First operand, or payload of a short put; later the result.
    pub(super) a: u64,
    /// Second operand.
    pub(super) b: u64,
    /// For an atomic, the time at which it reaches the unit's entrance.
    pub(super) at: u64,
    pub(super) attachment: Option<Box<Attachment>>,
    pub(super) opcode: Opcode,
    /// Receive engine at the target.
    pub(super) engine: u8,
    /// Whether the result has arrived.
    pub(super) done: bool,
    /// Whether the handle has been dropped.
    pub(super) detached: bool,
    /// Whether a task waits for the result.
    pub(super) awaited: bool,
    /// Whether its descriptor was built in advance.
    pub(super) prepared: bool,
}

const _: () = assert!(size_of::<Op>() <= 96);

/// Data that only few operations have.
#[derive(Debug, Default)]
pub(super) struct Attachment {
    pub(super) bytes: Vec<u8>,
    /// For a get into registered memory of the poster, or a third-party copy, the destination of
    /// the data.
    pub(super) sink: Option<Loc>,
    /// The data of a notice to leave at the target.
    pub(super) notice: Option<u64>,
    pub(super) error: Option<FabricError>,
}

impl Op {
    pub(super) fn new(opcode: Opcode, poster: u32, target: Loc) -> Self {
        Op { next: NONE, poster, flight: NONE, target, opcode, ..Op::default() }
    }

    /// Returns whether this is a put that leaves a notice.
    #[inline]
    fn notifies(&self) -> bool {
        self.attachment.as_ref().is_some_and(|attachment| attachment.notice.is_some())
    }

    /// Returns the word's value after this atomic found `old`.
    #[inline]
    pub(super) fn applied(&self, old: u64) -> u64 {
        match self.target.len {
            4 => u64::from(self.amo(|bits| bits as u32).apply(old as u32)),
            _ => self.amo(|bits| bits).apply(old),
        }
    }

    #[inline]
    fn amo<W>(&self, word: impl Fn(u64) -> W) -> Amo<W> {
        match self.opcode {
            Opcode::Swap => Amo::Swap(word(self.a)),
            Opcode::CompareSwap => Amo::CompareSwap { expected: word(self.a), new: word(self.b) },
            Opcode::Or => Amo::Or(word(self.a)),
            Opcode::And => Amo::And(word(self.a)),
            Opcode::Xor => Amo::Xor(word(self.a)),
            _ => Amo::Add(word(self.a)),
        }
    }
}

impl Slotted for Op {
    #[inline]
    fn next(&mut self) -> &mut u32 {
        &mut self.next
    }

    #[inline]
    fn succeed(&mut self, before: &Self) {
        self.generation = before.generation;
    }
}

/// The in-flight table.
pub(super) type Operations = Slots<Op>;

impl Operations {
    /// Frees the slot of a completed operation. The slot's next operation has another generation.
    #[inline]
    pub(super) fn retire(&mut self, slot: u32) {
        let op = self.free(slot);
        op.generation = (op.generation + 1) % GENERATIONS;
        op.attachment = None;
    }

    /// Returns the operation, if the slot still belongs to it.
    #[inline]
    pub(super) fn of(&mut self, slot: u32, generation: u32) -> Option<&mut Op> {
        self.find(slot).filter(|op| op.generation == generation)
    }
}

/// A first-in-first-out list of slots, linked through [`Op::next`].
#[derive(Clone, Copy, Debug)]
pub(super) struct Line {
    head: u32,
    tail: u32,
}

impl Line {
    pub(super) const EMPTY: Line = Line { head: NONE, tail: NONE };

    #[inline]
    pub(super) fn head(self) -> Option<u32> {
        (self.head != NONE).then_some(self.head)
    }

    #[inline]
    pub(super) fn push(&mut self, operations: &mut Operations, slot: u32) {
        operations.get_mut(slot).next = NONE;
        if self.head == NONE {
            self.head = slot;
        } else {
            operations.get_mut(self.tail).next = slot;
        }
        self.tail = slot;
    }

    #[inline]
    pub(super) fn pop(&mut self, operations: &Operations) -> Option<u32> {
        let slot = self.head()?;
        self.head = operations.get(slot).next;
        Some(slot)
    }
}
