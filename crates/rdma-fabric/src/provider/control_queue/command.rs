//! The commands of a control queue.

use super::{QueueId, Stadd};
use crate::{Amo, Blocks};

/// The bytes of a *piggyback* put, at most [`Inline::MOST`], which travel in the descriptor itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Bytes after `len` are 0.
    bytes: [u8; Inline::MOST],
    /// At most [`Inline::MOST`].
    len: u8,
    /// Whether the descriptor takes two slots; always if there are more than [`Inline::ONE_SLOT`] bytes.
    is_long: bool,
}

impl Inline {
    /// The maximum number of bytes that a piggyback put carries.
    pub const MOST: usize = 32;
    /// The maximum number of bytes of a piggyback put that takes only one slot.
    pub const ONE_SLOT: usize = 8;

    /// Creates a piggyback put from `bytes`; `None` if there are more than [`Inline::MOST`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let is_long = bytes.len() > Self::ONE_SLOT;
        let mut inline = Inline { bytes: [0; Self::MOST], len: bytes.len() as u8, is_long };
        inline.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(inline)
    }

    /// Returns the same put in the long form of the descriptor, which takes two slots.
    #[must_use]
    pub fn long(self) -> Self {
        Inline { is_long: true, ..self }
    }

    /// Returns whether the descriptor takes two slots.
    #[inline]
    pub fn is_long(&self) -> bool {
        self.is_long
    }

    /// Creates a piggyback put from a word, in the byte order of the machine.
    #[inline]
    pub fn word(value: u64) -> Self {
        let mut inline = Inline { bytes: [0; Self::MOST], len: 8, is_long: false };
        inline.bytes[..8].copy_from_slice(&value.to_ne_bytes());
        inline
    }

    /// Returns the bytes, followed by zeros.
    #[inline]
    pub fn padded(&self) -> &[u8; Self::MOST] {
        &self.bytes
    }

    /// Returns the bytes.
    #[inline]
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// The width of an atomic's word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 4 bytes.
    Four = 4,
    /// 8 bytes.
    Eight = 8,
}

/// A command: plain data, checked when it is posted and again when it is executed.
///
/// `to` is the queue at the target: it determines the meaning of `at`, receives the remote notice,
/// and has its session offset advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Copies `len` bytes from local memory to the target's memory, for each of the blocks.
    Put {
        /// The target's queue.
        to: QueueId,
        /// Local memory, as addressed by the posting queue.
        from: Stadd,
        /// The target's memory, as addressed by `to`.
        at: Stadd,
        /// Bytes of each block.
        len: u32,
        /// Several blocks behave exactly like as many commands posted together.
        blocks: Blocks,
    },
    /// Writes bytes that the descriptor carries.
    PutInline {
        /// The target's queue.
        to: QueueId,
        /// The bytes.
        bytes: Inline,
        /// The target's memory.
        at: Stadd,
    },
    /// Copies `len` bytes from the target's memory to local memory, for each of the blocks.
    Get {
        /// The target's queue.
        to: QueueId,
        /// The target's memory.
        from: Stadd,
        /// The poster's memory.
        at: Stadd,
        /// Bytes of each block.
        len: u32,
        /// Several blocks behave exactly like as many commands posted together.
        blocks: Blocks,
    },
    /// Fetches and modifies a word of the target (ARMW).
    Atomic {
        /// The target's queue.
        to: QueueId,
        /// The word, aligned to its width.
        at: Stadd,
        /// The width of the word.
        width: Width,
        /// The change. For 4-byte words the low halves of the operands are used.
        amo: Amo<u64>,
    },
    /// Does nothing, in order with the other commands.
    Nop,
}

impl Command {
    /// Creates a put of one block.
    pub const fn put(to: QueueId, from: Stadd, at: Stadd, len: u32) -> Self {
        Command::Put { to, from, at, len, blocks: Blocks::ONE }
    }

    /// Creates a get of one block.
    pub const fn get(to: QueueId, from: Stadd, at: Stadd, len: u32) -> Self {
        Command::Get { to, from, at, len, blocks: Blocks::ONE }
    }

    /// Returns the target's queue; `None` for [`Command::Nop`].
    pub const fn target(&self) -> Option<QueueId> {
        match self {
            Command::Put { to, .. }
            | Command::PutInline { to, .. }
            | Command::Get { to, .. }
            | Command::Atomic { to, .. } => Some(*to),
            Command::Nop => None,
        }
    }

    /// Returns the number of hardware commands: the number of blocks.
    pub const fn commands(&self) -> u32 {
        match self {
            Command::Put { blocks, .. } | Command::Get { blocks, .. } => blocks.count,
            _ => 1,
        }
    }

    /// Returns the number of 32-byte slots of the transmit order queue that each of its hardware
    /// commands takes.
    #[inline]
    pub fn slots_each(&self) -> u32 {
        match self {
            Command::PutInline { bytes, .. } if bytes.is_long => 2,
            Command::Atomic { width: Width::Eight, amo: Amo::CompareSwap { .. }, .. } => 2,
            _ => 1,
        }
    }

    /// Returns the total number of slots that the command takes.
    #[inline]
    pub fn slots(&self) -> u64 {
        u64::from(self.commands()) * u64::from(self.slots_each())
    }

    /// Returns whether the command's arrival advances the session offset of the target's queue:
    /// puts only.
    pub const fn advances(&self) -> bool {
        matches!(self, Command::Put { .. } | Command::PutInline { .. })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    /// The table of slots: one each, except for long piggyback puts and 8-byte compare-and-swap;
    /// blocks count.
    #[test]
    fn commands_take_one_slot_or_two() {
        let to = QueueId::new(Rank::new(1), 0, 0, 0);
        let at = Stadd::fixed(0);
        let inline = |len| Command::PutInline { to, bytes: Inline::new(&vec![7; len]).unwrap(), at };
        let swap = |width| Command::Atomic { to, at, width, amo: Amo::CompareSwap { expected: 0, new: 1 } };
        let slots = |command: Command| command.slots();
        assert_eq!(slots(Command::put(to, at, at, 1 << 20)), 1);
        assert_eq!(slots(Command::get(to, at, at, 0)), 1);
        assert_eq!([0, 1, 8, 9, 32].map(|len| slots(inline(len))), [1, 1, 1, 2, 2]);
        let long = Command::PutInline { to, bytes: Inline::word(7).long(), at };
        assert_eq!(slots(long), 2);
        assert_eq!([swap(Width::Four), swap(Width::Eight)].map(slots), [1, 2]);
        assert_eq!(slots(Command::Atomic { to, at, width: Width::Eight, amo: Amo::Add(1) }), 1);
        assert_eq!(slots(Command::Nop), 1);
        let blocks = Blocks { count: 5, stride: 64 };
        assert_eq!(slots(Command::Put { to, from: at, at, len: 8, blocks }), 5);
        assert_eq!(Inline::new(&[0; 33]), None);
    }
}
