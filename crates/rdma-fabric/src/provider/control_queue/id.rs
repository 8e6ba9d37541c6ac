//! Identifiers of control queues, and addresses of memory as used by a control queue.

use crate::Rank;
use core::{fmt, ops::Add};

/// Identifies a control queue of the job (uTofu's VCQ ID). Plain data: exchange it like any other
/// value.
///
/// It consists of the rank, the engine (TNI), the number of the CQ on that engine, and the context,
/// which distinguishes virtual queues that share a CQ opened in normal mode.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct QueueId(u64);

impl QueueId {
    /// Number of bits used, from the lowest up: CQ 8, engine 4, context 4, rank 24.
    pub const BITS: u32 = 40;

    /// Creates the ID of queue `number` of engine `engine`; `context` is its number among those
    /// that share it.
    ///
    /// # Panics
    /// If `rank` needs more than 24 bits, `engine` or `context` more than 4.
    pub const fn new(rank: Rank, engine: u8, number: u8, context: u8) -> Self {
        assert!(rank.number() < 1 << 24 && engine < 16 && context < 16);
        QueueId((rank.number() as u64) << 16 | (context as u64) << 12 | (engine as u64) << 8 | number as u64)
    }

    /// Returns the rank to which the queue belongs.
    pub const fn rank(self) -> Rank {
        Rank::new((self.0 >> 16) as u32 & 0xff_ffff)
    }

    /// Returns the queue's RDMA engine (TNI).
    pub const fn engine(self) -> u8 {
        (self.0 >> 8) as u8 & 0xf
    }

    /// Returns the queue's number among the CQs of the engine.
    pub const fn number(self) -> u8 {
        self.0 as u8
    }

    /// Returns the queue's number among the virtual queues that share the CQ; 0 unless the mode is
    /// [`super::QueueMode::Normal`].
    pub const fn context(self) -> u8 {
        (self.0 >> 12) as u8 & 0xf
    }

    /// Returns the id in one word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Restores the id from [`QueueId::to_bits`]; `None` if bits are set that no id has.
    pub const fn from_bits(bits: u64) -> Option<Self> {
        if bits >> Self::BITS == 0 { Some(QueueId(bits)) } else { None }
    }
}

impl fmt::Debug for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for QueueId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CQ {}.{}", self.engine(), self.number())?;
        if self.context() != 0 {
            write!(f, "/{}", self.context())?;
        }
        write!(f, " of {}", self.rank())
    }
}

/// A steering address: memory as addressed by one control queue. It holds a steering tag (STag) in
/// bits 40 and up, and an offset in bytes below.
///
/// `stadd + n` addresses the byte n further on. A STADD has meaning only on the queue on which its
/// memory was [registered](crate::provider::Queue::register).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(transparent)]
pub struct Stadd(u64);

impl Stadd {
    /// Bits of the offset.
    pub const OFFSET_BITS: u32 = 40;
    /// Tags below this are fixed, chosen by the program; the others are assigned automatically.
    pub const FIRST_AUTOMATIC: u32 = 0x1000;

    /// Creates the address of byte `offset` of the memory registered under `tag`.
    ///
    /// # Panics
    /// If `tag` needs more than 24 bits or `offset` more than 40.
    pub const fn new(tag: u32, offset: u64) -> Self {
        assert!(tag < 1 << 24 && offset < 1 << Self::OFFSET_BITS);
        Stadd((tag as u64) << Self::OFFSET_BITS | offset)
    }

    /// Creates the address of the first byte of the memory that some queue has registered, or will
    /// register, under the fixed tag `tag` (uTofu: `query_stadd`). No communication: the existence
    /// of the memory is checked only when the address is used.
    pub const fn fixed(tag: u8) -> Self {
        Stadd::new(tag as u32, 0)
    }

    /// Returns the tag.
    pub const fn tag(self) -> u32 {
        (self.0 >> Self::OFFSET_BITS) as u32
    }

    /// Returns the offset, in bytes.
    pub const fn offset(self) -> u64 {
        self.0 & ((1 << Self::OFFSET_BITS) - 1)
    }

    /// Returns the address in one word.
    pub const fn to_bits(self) -> u64 {
        self.0
    }

    /// Restores the address from [`Stadd::to_bits`]: every word is an address, though not
    /// necessarily one of existing memory.
    pub const fn from_bits(bits: u64) -> Self {
        Stadd(bits)
    }
}

impl Add<u64> for Stadd {
    type Output = Stadd;

    /// Returns the address `bytes` further on. An offset that exceeds 40 bits is clamped to the
    /// highest one, which is beyond any memory.
    fn add(self, bytes: u64) -> Stadd {
        let most = (1 << Self::OFFSET_BITS) - 1;
        Stadd::new(self.tag(), self.offset().saturating_add(bytes).min(most))
    }
}

impl fmt::Debug for Stadd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Stadd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "tag {:#x} + {}", self.tag(), self.offset())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_keeps_its_parts() {
        let id = QueueId::new(Rank::new(0xff_fffe), 3, 11, 7);
        assert_eq!((id.rank().number(), id.engine(), id.number(), id.context()), (0xff_fffe, 3, 11, 7));
        assert_eq!(QueueId::from_bits(id.to_bits()), Some(id));
        assert_eq!(QueueId::from_bits(1 << 40), None);
        assert_eq!(id.to_string(), "CQ 3.11/7 of rank 16777214");
    }

    #[test]
    fn steering_addresses_add_up_and_never_change_their_tag() {
        let base = Stadd::fixed(5);
        assert_eq!((base.tag(), base.offset()), (5, 0));
        assert_eq!((base + 4096 + 7).offset(), 4103);
        assert_eq!((base + u64::MAX + u64::MAX).tag(), 5);
        assert_eq!(Stadd::from_bits((base + 9).to_bits()), base + 9);
    }
}
