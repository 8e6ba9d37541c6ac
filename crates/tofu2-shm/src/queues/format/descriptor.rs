//! Commands as 32-byte slots of a transmit order queue.
//!
//! | word | bits | holds |
//! |---|---|---|
//! | 0 | 0–39, 40–63 | the target's queue, bytes of the command |
//! | 1 | all | local address, operand, expected value, or bytes carried |
//! | 2 | all | the target's address |
//! | 3 | | kind, flags, edata, SPS and path: see the constants |
//!
//! A second slot carries bytes 0 to 31 of a long inline put, or the new value of an 8-byte
//! compare-and-swap. Unused fields are 0. Decoding checks every bit and refuses every bit pattern
//! that encoding does not produce. Puts and gets of several blocks are also refused: they are
//! encoded as one descriptor per block.
//!
//! [`Posting::tag`] is not part of the descriptor: as on the hardware, the poster keeps it.

use rdma_fabric::{
    Amo,
    control_queue::{Blocks, Command, Inline, Posting, QueueId, Stadd, Width},
};

/// Words of a slot.
pub(crate) const SLOT: usize = 4;

/// A descriptor: one slot, and the contents of a second one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Descriptor {
    pub(crate) first: [u64; SLOT],
    pub(crate) second: Option<[u64; SLOT]>,
}

/// The command's kind, in bits 0 to 7 of word 3. It is never 0, so that a slot of zeros is not a
/// command.
mod kind {
    pub(super) const PUT: u64 = 1;
    pub(super) const INLINE: u64 = 2;
    pub(super) const INLINE_LONG: u64 = 3;
    pub(super) const GET: u64 = 4;
    pub(super) const ARMW: u64 = 5;
    pub(super) const CSWAP4: u64 = 6;
    pub(super) const CSWAP8: u64 = 7;
    pub(super) const NOP: u64 = 8;
}

const TCQ: u64 = 1 << 8;
const LOCAL: u64 = 1 << 9;
const REMOTE: u64 = 1 << 10;
const STRONG: u64 = 1 << 11;
const DELAY: u64 = 1 << 12;
const HAS_PATH: u64 = 1 << 13;
/// Marks an atomic that is 8 bytes wide, not 4.
const WIDE: u64 = 1 << 14;
/// Position of the number of an atomic's operation: 3 bits.
const OP: u32 = 15;
/// Position of the SPS: 4 bits.
const SPS: u32 = 18;
const EDATA: u32 = 22;
const PATH: u32 = 30;
/// Position of the MTU: 16 bits.
const MTU: u32 = 38;
/// Position of the gap: 8 bits; those above are 0.
const GAP: u32 = 54;
/// Position of the command's length in bytes, in word 0.
const LEN: u32 = 40;

/// Encodes one command of `posting`, which must have one block, an SPS of 4 bits and a length of 24.
#[inline]
pub(crate) fn encode(posting: &Posting) -> Descriptor {
    let (kind, more, len, one, at, second) = match posting.command {
        Command::Put { from, at, len, .. } => (kind::PUT, 0, len, from.to_bits(), at, None),
        Command::Get { from, at, len, .. } => (kind::GET, 0, len, at.to_bits(), from, None),
        Command::PutInline { bytes, at, .. } => {
            let (carried, len): ([u64; SLOT], _) = (bytemuck::cast(*bytes.padded()), bytes.as_bytes().len() as u32);
            match bytes.is_long() {
                false => (kind::INLINE, 0, len, carried[0], at, None),
                true => (kind::INLINE_LONG, 0, len, 0, at, Some(carried)),
            }
        }
        Command::Atomic { at, width, amo, .. } => {
            let armw = |number: u64, operand| {
                let wide = if width == Width::Eight { WIDE } else { 0 };
                (kind::ARMW, wide | number << OP, 0, operand, at, None)
            };
            match amo {
                Amo::Swap(value) => armw(1, value),
                Amo::Add(value) => armw(2, value),
                Amo::Xor(value) => armw(3, value),
                Amo::And(value) => armw(4, value),
                Amo::Or(value) => armw(5, value),
                Amo::CompareSwap { expected, new } => match width {
                    Width::Four => (kind::CSWAP4, 0, 0, u64::from(expected as u32) | new << 32, at, None),
                    Width::Eight => (kind::CSWAP8, 0, 0, expected, at, Some([new, 0, 0, 0])),
                },
            }
        }
        Command::Nop => (kind::NOP, 0, 0, 0, Stadd::from_bits(0), None),
    };
    let flag = |is: bool, bit: u64| if is { bit } else { 0 };
    let flags = flag(posting.tcq_notice, TCQ)
        | flag(posting.local_notice, LOCAL)
        | flag(posting.remote_notice, REMOTE)
        | flag(posting.strong_order, STRONG)
        | flag(posting.delay_start, DELAY)
        | flag(posting.path.is_some(), HAS_PATH);
    let numbers = u64::from(posting.sps & 0xf) << SPS
        | u64::from(posting.edata) << EDATA
        | u64::from(posting.path.unwrap_or(0)) << PATH
        | u64::from(posting.mtu) << MTU
        | u64::from(posting.gap) << GAP;
    let to = posting.command.target().map_or(0, QueueId::to_bits);
    let first = [to | u64::from(len) << LEN, one, at.to_bits(), kind | more | flags | numbers];
    Descriptor { first, second }
}

/// Returns the number of slots of the command that starts with this one; `None` if no command
/// starts like this.
pub(crate) fn slots(first: &[u64; SLOT]) -> Option<u64> {
    match first[3] & 0xff {
        kind::INLINE_LONG | kind::CSWAP8 => Some(2),
        kind::PUT..=kind::NOP => Some(1),
        _ => None,
    }
}

/// Inverts [`encode`], with tag 0. `None` for anything that is not the encoding of a command.
pub(crate) fn decode(descriptor: &Descriptor) -> Option<Posting> {
    let Descriptor { first: [zero, one, two, three], second } = *descriptor;
    let to = QueueId::from_bits(zero & ((1 << LEN) - 1))?;
    let (len, at) = ((zero >> LEN) as u32, Stadd::from_bits(two));
    let width = if three & WIDE != 0 { Width::Eight } else { Width::Four };
    let command = match three & 0xff {
        kind::PUT => Command::put(to, Stadd::from_bits(one), at, len),
        kind::GET => Command::get(to, at, Stadd::from_bits(one), len),
        kind::INLINE => Command::PutInline { to, bytes: inline(&[one, 0, 0, 0], len)?, at },
        kind::INLINE_LONG => Command::PutInline { to, bytes: inline(&second?, len)?.long(), at },
        kind::ARMW => {
            let amo = match three >> OP & 7 {
                1 => Amo::Swap(one),
                2 => Amo::Add(one),
                3 => Amo::Xor(one),
                4 => Amo::And(one),
                5 => Amo::Or(one),
                _ => return None,
            };
            Command::Atomic { to, at, width, amo }
        }
        kind::CSWAP4 => Command::Atomic {
            to,
            at,
            width: Width::Four,
            amo: Amo::CompareSwap { expected: one & 0xffff_ffff, new: one >> 32 },
        },
        kind::CSWAP8 => {
            Command::Atomic { to, at, width: Width::Eight, amo: Amo::CompareSwap { expected: one, new: second?[0] } }
        }
        kind::NOP => Command::Nop,
        _ => return None,
    };
    let posting = Posting {
        command,
        tag: 0,
        edata: (three >> EDATA) as u8,
        sps: (three >> SPS) as u8 & 0xf,
        tcq_notice: three & TCQ != 0,
        local_notice: three & LOCAL != 0,
        remote_notice: three & REMOTE != 0,
        strong_order: three & STRONG != 0,
        delay_start: three & DELAY != 0,
        path: (three & HAS_PATH != 0).then_some((three >> PATH) as u8),
        mtu: (three >> MTU) as u16,
        gap: (three >> GAP) as u8,
    };
    is_said(descriptor).then_some(posting)
}

/// A frequent command of one slot: a nop, or a put that the poster observes only through its
/// completion.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Brief {
    pub(crate) to: QueueId,
    pub(crate) at: Stadd,
    pub(crate) payload: Payload,
    pub(crate) edata: u8,
    pub(crate) sps: u8,
    pub(crate) tcq_notice: bool,
    pub(crate) remote_notice: bool,
}

/// The source of a [`Brief`] command's put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Payload {
    Nothing,
    /// Eight inline bytes.
    Word(u64),
    Memory(Stadd, u32),
}

/// Decodes a [`Brief`] command, in registers.
#[inline(always)]
pub(crate) fn brief(first: [u64; SLOT]) -> Option<Brief> {
    let [zero, one, two, three] = first;
    let len = (zero >> LEN) as u32;
    let payload = match three & 0xff {
        kind::NOP => Payload::Nothing,
        kind::INLINE if len == 8 => Payload::Word(one),
        kind::PUT => Payload::Memory(Stadd::from_bits(one), len),
        _ => return None,
    };
    if three & LOCAL != 0 || !is_said(&Descriptor { first, second: None }) {
        return None;
    }
    Some(Brief {
        to: QueueId::from_bits(zero & ((1 << LEN) - 1))?,
        at: Stadd::from_bits(two),
        payload,
        edata: (three >> EDATA) as u8,
        sps: (three >> SPS) as u8 & 0xf,
        tcq_notice: three & TCQ != 0,
        remote_notice: three & REMOTE != 0,
    })
}

/// The [fixed part](fixed_part) of a nop without notices.
pub(crate) const NOP: [u64; SLOT] = [0, 0, 0, kind::NOP];

/// Returns a slot without the numbers that a program renews: the word that an inline put carries,
/// and edata. If [`brief`] decodes a slot, it decodes every slot with the same fixed part.
#[inline(always)]
pub(crate) fn fixed_part([zero, one, two, three]: [u64; SLOT]) -> [u64; SLOT] {
    let one = if three & 0xff == kind::INLINE { 0 } else { one };
    [zero, one, two, three & !(0xff << EDATA)]
}

/// Returns the slot with the fixed part of `slot` and these numbers. `word` is for inline puts of 8
/// bytes.
#[inline(always)]
pub(crate) fn renewed([zero, one, two, three]: [u64; SLOT], edata: Option<u8>, word: Option<u64>) -> [u64; SLOT] {
    let three = edata.map_or(three, |edata| three & !(0xff << EDATA) | u64::from(edata) << EDATA);
    [zero, word.unwrap_or(one), two, three]
}

/// Returns the edata of a slot that starts a command.
#[inline(always)]
pub(crate) fn edata(first: [u64; SLOT]) -> u8 {
    (first[3] >> EDATA) as u8
}

/// Returns whether only meaningful bits are set: other bits would be lost.
#[inline(always)]
fn is_said(descriptor: &Descriptor) -> bool {
    let Descriptor { first: [zero, one, two, three], second } = *descriptor;
    let kind = three & 0xff;
    let of_kind = match kind {
        kind::ARMW => WIDE | 7 << OP,
        _ => 0,
    };
    let path = if three & HAS_PATH != 0 { 0xff << PATH } else { 0 };
    let flags = TCQ | LOCAL | REMOTE | STRONG | DELAY | HAS_PATH;
    let numbers = 0xf << SPS | 0xff << EDATA | path | 0xffff << MTU | 0xff << GAP;
    // Bytes beyond the `len` inline ones.
    let len = (zero >> LEN) as usize;
    let blank = |word: u64, at: usize| len.saturating_sub(at) >= 8 || word >> (8 * len.saturating_sub(at)) == 0;
    let rest = match (kind, second) {
        (kind::PUT | kind::GET, None) => true,
        (kind::INLINE, None) => len <= Inline::ONE_SLOT && blank(one, 0),
        (kind::INLINE_LONG, Some(words)) => one == 0 && words.iter().enumerate().all(|(at, &word)| blank(word, 8 * at)),
        (kind::ARMW | kind::CSWAP4, None) | (kind::CSWAP8, Some([_, 0, 0, 0])) => len == 0,
        (kind::NOP, None) => zero | one | two == 0,
        _ => false,
    };
    rest && three & !(0xff | of_kind | flags | numbers) == 0
}

/// Splits a posting of several blocks into single-block commands.
pub(crate) fn each_block(posting: Posting) -> impl Iterator<Item = Posting> {
    let blocks = match posting.command {
        Command::Put { blocks, .. } | Command::Get { blocks, .. } => blocks,
        _ => Blocks::ONE,
    };
    (0..u64::from(blocks.count)).map(move |number| {
        let ahead = number.saturating_mul(blocks.stride);
        let mut one = posting;
        if let Command::Put { from, at, blocks, .. } | Command::Get { from, at, blocks, .. } = &mut one.command {
            (*from, *at, *blocks) = (*from + ahead, *at + ahead, Blocks::ONE);
        }
        one
    })
}

fn inline(words: &[u64; SLOT], len: u32) -> Option<Inline> {
    let bytes: &[u8] = bytemuck::bytes_of(words);
    Inline::new(bytes.get(..usize::try_from(len).ok()?)?)
}

#[cfg(test)]
mod tests;
