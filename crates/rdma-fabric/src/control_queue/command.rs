//! What a control queue can be told to do: commands, and how each is posted.

use super::{QueueId, Stadd};
use crate::Amo;

/// Bytes that travel in the descriptor itself: a *piggyback* put. At most [`Inline::MOST`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Inline {
    /// Those after `len` are 0.
    bytes: [u8; Inline::MOST],
    /// At most [`Inline::MOST`].
    len: u8,
}

impl Inline {
    /// The most bytes.
    pub const MOST: usize = 32;
    /// The most bytes of a command that takes one slot only.
    pub const ONE_SLOT: usize = 8;

    /// These bytes; `None` if they are more than [`Inline::MOST`].
    pub fn new(bytes: &[u8]) -> Option<Self> {
        let mut inline = Inline { bytes: [0; Self::MOST], len: bytes.len() as u8 };
        inline.bytes.get_mut(..bytes.len())?.copy_from_slice(bytes);
        Some(inline)
    }

    /// A word, in the byte order of the machine.
    pub fn word(value: u64) -> Self {
        let mut inline = Inline { bytes: [0; Self::MOST], len: 8 };
        inline.bytes[..8].copy_from_slice(&value.to_ne_bytes());
        inline
    }

    /// The bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.bytes[..usize::from(self.len)]
    }
}

/// Width of an atomic.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Width {
    /// 4 bytes.
    Four = 4,
    /// 8 bytes.
    Eight = 8,
}

/// An atomic read-modify-write with one operand. Of 4-byte words the low half of the operand counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Armw {
    /// Store the operand.
    Swap(u64),
    /// Add it, wrapping.
    Add(u64),
    /// Exclusive or.
    Xor(u64),
    /// And.
    And(u64),
    /// Or.
    Or(u64),
}

impl Armw {
    /// The same as an atomic of eight bytes.
    #[inline]
    pub const fn amo(self) -> Amo<u64> {
        match self {
            Armw::Swap(value) => Amo::Swap(value),
            Armw::Add(value) => Amo::Add(value),
            Armw::Xor(value) => Amo::Xor(value),
            Armw::And(value) => Amo::And(value),
            Armw::Or(value) => Amo::Or(value),
        }
    }
}

/// Equal blocks at equal distances: block `i` starts `i * stride` bytes after the first, on both sides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Blocks {
    /// How many; at least 1.
    pub count: u32,
    /// From the start of one to the start of the next, in bytes.
    pub stride: u64,
}

impl Blocks {
    /// One block: an ordinary command.
    pub const ONE: Blocks = Blocks { count: 1, stride: 0 };
}

/// A command: plain data, checked when it is posted and again when it is executed.
///
/// `to` is the queue at the target: what `at` means there, who gets the remote notice, and whose session offset is
/// advanced.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Copy `len` bytes from own memory to the target's, for each of the blocks.
    Put {
        /// The target's queue.
        to: QueueId,
        /// Own memory, as the posting queue addresses it.
        from: Stadd,
        /// The target's, as `to` addresses it.
        at: Stadd,
        /// Bytes of each block.
        len: u32,
        /// Several blocks behave in every way as so many commands, posted together.
        blocks: Blocks,
    },
    /// Write bytes that the descriptor carries.
    PutInline {
        /// The target's queue.
        to: QueueId,
        /// The bytes.
        bytes: Inline,
        /// The target's memory.
        at: Stadd,
    },
    /// Copy `len` bytes from the target's memory to own memory, for each of the blocks.
    Get {
        /// The target's queue.
        to: QueueId,
        /// The target's memory.
        from: Stadd,
        /// Own memory.
        at: Stadd,
        /// Bytes of each block.
        len: u32,
        /// As of [`Command::Put`].
        blocks: Blocks,
    },
    /// Fetch and modify a word of the target.
    Armw {
        /// The target's queue.
        to: QueueId,
        /// The word, aligned to its width.
        at: Stadd,
        /// How wide it is.
        width: Width,
        /// What to do.
        op: Armw,
    },
    /// Store `new` if the word equals `expected`.
    CompareSwap {
        /// The target's queue.
        to: QueueId,
        /// The word, aligned to its width.
        at: Stadd,
        /// How wide it is.
        width: Width,
        /// What it must hold.
        expected: u64,
        /// What to store then.
        new: u64,
    },
    /// Do nothing, in order with the others.
    Nop,
}

impl Command {
    /// A put of one block.
    pub const fn put(to: QueueId, from: Stadd, at: Stadd, len: u32) -> Self {
        Command::Put { to, from, at, len, blocks: Blocks::ONE }
    }

    /// A get of one block.
    pub const fn get(to: QueueId, from: Stadd, at: Stadd, len: u32) -> Self {
        Command::Get { to, from, at, len, blocks: Blocks::ONE }
    }

    /// The target's queue; `None` for [`Command::Nop`].
    pub const fn target(&self) -> Option<QueueId> {
        match self {
            Command::Put { to, .. }
            | Command::PutInline { to, .. }
            | Command::Get { to, .. }
            | Command::Armw { to, .. }
            | Command::CompareSwap { to, .. } => Some(*to),
            Command::Nop => None,
        }
    }

    /// How many commands of the hardware it is: the number of blocks.
    pub const fn commands(&self) -> u32 {
        match self {
            Command::Put { blocks, .. } | Command::Get { blocks, .. } => blocks.count,
            _ => 1,
        }
    }

    /// How many 32-byte slots of the transmit order queue each of them takes.
    pub fn slots_each(&self) -> u32 {
        match self {
            Command::PutInline { bytes, .. } if bytes.as_bytes().len() > Inline::ONE_SLOT => 2,
            Command::CompareSwap { width: Width::Eight, .. } => 2,
            _ => 1,
        }
    }

    /// All slots it takes.
    pub fn slots(&self) -> u64 {
        u64::from(self.commands()) * u64::from(self.slots_each())
    }

    /// Whether its arrival advances the session offset of the target's queue: puts only.
    pub const fn advances(&self) -> bool {
        matches!(self, Command::Put { .. } | Command::PutInline { .. })
    }
}

/// A command and how it is posted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Posting {
    /// What to do.
    pub command: Command,
    /// Comes back with the completion in the TCQ (uTofu's callback pointer).
    pub tag: u64,
    /// Comes with the notices in both MRQs.
    pub edata: u8,
    /// By how many *slots* a put advances the session offset of the target's queue: 0 to 15.
    pub sps: u8,
    /// Report the completion in the own TCQ: the local buffer may be reused.
    pub tcq_notice: bool,
    /// Report in the own MRQ that the target has acknowledged, with the result of a get or atomic. A nop never does.
    pub local_notice: bool,
    /// Leave a notice in the target queue's MRQ.
    pub remote_notice: bool,
    /// No memory effect of this command is seen before those of earlier ones of this queue to the same target. Within
    /// one put, the last 8 bytes are seen last.
    pub strong_order: bool,
    /// Queue the command but don't tell the engine; the next posting without it starts both.
    pub delay_start: bool,
    /// The path that the packets take, in the provider's numbering; `None`: the default one. Timing only.
    pub path: Option<u8>,
    /// Largest packet, in bytes of payload; 0: the network's. Timing only.
    pub mtu: u16,
    /// Idle time between packets, in the provider's units; 0: none. Timing only.
    pub gap: u8,
}

impl Posting {
    /// `command`, with no notice, no advance and no order asked for.
    pub const fn new(command: Command) -> Self {
        Posting {
            command,
            tag: 0,
            edata: 0,
            sps: 0,
            tcq_notice: false,
            local_notice: false,
            remote_notice: false,
            strong_order: false,
            delay_start: false,
            path: None,
            mtu: 0,
            gap: 0,
        }
    }

    /// Report the completion in the own TCQ, with `tag`.
    pub const fn tcq(mut self, tag: u64) -> Self {
        self.tcq_notice = true;
        self.tag = tag;
        self
    }

    /// Report acknowledgement and result in the own MRQ, with `edata`.
    pub const fn local(mut self, edata: u8) -> Self {
        self.local_notice = true;
        self.edata = edata;
        self
    }

    /// Leave a notice with `edata` in the target queue's MRQ.
    pub const fn remote(mut self, edata: u8) -> Self {
        self.remote_notice = true;
        self.edata = edata;
        self
    }

    /// Advance the session offset of the target's queue by `slots`.
    pub const fn sps(mut self, slots: u8) -> Self {
        self.sps = slots;
        self
    }

    /// Keep the order of memory effects.
    pub const fn strong_order(mut self) -> Self {
        self.strong_order = true;
        self
    }

    /// Queue only; see [`Posting::delay_start`].
    pub const fn delayed(mut self) -> Self {
        self.delay_start = true;
        self
    }
}

impl From<Command> for Posting {
    fn from(command: Command) -> Self {
        Posting::new(command)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Rank;

    /// The table of slots: one each, but for long piggyback puts and 8-byte compare-and-swap; blocks count.
    #[test]
    fn commands_take_one_slot_or_two() {
        let to = QueueId::new(Rank::new(1), 0, 0, 0);
        let at = Stadd::fixed(0);
        let inline = |len| Command::PutInline { to, bytes: Inline::new(&vec![7; len]).unwrap(), at };
        let swap = |width| Command::CompareSwap { to, at, width, expected: 0, new: 1 };
        let slots = |command: Command| command.slots();
        assert_eq!(slots(Command::put(to, at, at, 1 << 20)), 1);
        assert_eq!(slots(Command::get(to, at, at, 0)), 1);
        assert_eq!([0, 1, 8, 9, 32].map(|len| slots(inline(len))), [1, 1, 1, 2, 2]);
        assert_eq!([swap(Width::Four), swap(Width::Eight)].map(slots), [1, 2]);
        assert_eq!(slots(Command::Armw { to, at, width: Width::Eight, op: Armw::Add(1) }), 1);
        assert_eq!(slots(Command::Nop), 1);
        let blocks = Blocks { count: 5, stride: 64 };
        assert_eq!(slots(Command::Put { to, from: at, at, len: 8, blocks }), 5);
        assert_eq!(Inline::new(&[0; 33]), None);
    }
}
