//! The first half of making a request: a member checks its blocks, then both ends of every edge
//! compare their expectations.

use super::{
    channels::{Channel, EdgeEnd, Name},
    guard::Binding,
};
use crate::{
    Edge, EndOfData, Options, PrdmaError, Result, Side,
    buffer::{Memory, Width},
    engine::Data,
    layout::{Layout, Piece, count_blocks, pieces},
    topology::Topology,
};
use bytemuck::{Pod, Zeroable};

/// A member's declaration about one channel.
#[derive(Clone, Copy, Debug, Pod, Zeroable)]
#[repr(C)]
pub(crate) struct Terms {
    name: Name,
    /// 1 + label of the edge with outgoing data, 0 for none.
    sends: u64,
    /// 1 + label of the edge with incoming data, 0 for none.
    receives: u64,
    /// [`crate::Options::direct_blocks`].
    direct_blocks: u64,
    /// [`crate::Options::direct_bytes`].
    direct_bytes: u64,
    /// 1 for [`EndOfData::Separate`], otherwise 0.
    separate_end: u64,
    /// Bytes of a cell of the send buffer, and of the receive buffer.
    cells: [u64; 2],
    send: [u64; Layout::WORDS],
    receive: [u64; Layout::WORDS],
}

impl Terms {
    /// The kind of tables of terms.
    pub(super) const KIND: u64 = 0x7465_726d_7320_6f66;
}

/// The agreement of the two ends of a channel.
#[derive(Clone, Debug, Default)]
pub(crate) struct Agreed {
    pub(crate) out: Option<Outgoing>,
    pub(crate) inn: Option<Incoming>,
    /// How the data of both directions end.
    pub(crate) end: EndOfData,
    /// The tables that were compared.
    pub(crate) binding: Binding,
}

impl Agreed {
    /// Records the tables that were compared.
    pub(super) fn bound(self, binding: Binding) -> Self {
        Agreed { binding, ..self }
    }

    /// Returns the number of commands of the data that are sent, if there are any.
    pub(crate) fn data_slots(&self) -> Option<u64> {
        self.out.as_ref().map(|out| Data::slots(&out.pieces))
    }
}

/// The sending side of an edge.
#[derive(Clone, Debug)]
pub(crate) struct Outgoing {
    /// If the block is packed first: the layout in the program's buffer.
    pub(crate) packed: Option<Layout>,
    /// The pieces, with offsets from the starts of the source and destination memory.
    pub(crate) pieces: Vec<Piece>,
    /// Bytes of the block.
    pub(crate) bytes: u64,
    /// The width of the cells in which the CPU puts it, as both buffers allow.
    pub(crate) width: Width,
}

/// The receiving side of an edge.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Incoming {
    /// If the block arrives packed: the layout in the program's buffer.
    pub(crate) packed: Option<Layout>,
    /// Bytes of the block.
    pub(crate) bytes: u64,
    /// The width of the cells, as both buffers allow; the same at the other end.
    pub(crate) width: Width,
}

/// A block as passed by its member.
pub(crate) struct Block {
    pub(crate) memory: Memory,
    pub(crate) layout: Layout,
}

/// The blocks of both sides, by slot.
pub(crate) struct Blocks {
    pub(crate) sends: Vec<Block>,
    pub(crate) receives: Vec<Block>,
}

/// Returns this member's terms for `channel`.
pub(crate) fn terms(channel: &Channel, sends: &[Block], receives: &[Block], options: &Options) -> Terms {
    let block = |end: Option<EdgeEnd>, blocks: &[Block]| match end {
        None => (0, [0; Layout::WORDS]),
        Some(EdgeEnd { slot, .. }) => {
            let Block { memory, layout } = &blocks[slot];
            (memory.width().bytes(), layout.to_words())
        }
    };
    let (send_cell, send) = block(channel.out, sends);
    let (receive_cell, receive) = block(channel.inn, receives);
    Terms {
        name: Name::of(channel),
        sends: EdgeEnd::to_word(channel.out),
        receives: EdgeEnd::to_word(channel.inn),
        direct_blocks: options.direct_blocks.into(),
        direct_bytes: options.direct_bytes.into(),
        separate_end: u64::from(options.end == EndOfData::Separate),
        cells: [send_cell, receive_cell],
        send,
        receive,
    }
}

/// Compares this member's terms of a channel with the neighbour's `table`.
///
/// # Errors
/// [`PrdmaError::Unmatched`], [`PrdmaError::Size`], [`PrdmaError::Damaged`].
pub(crate) fn agree(me: usize, channel: &Channel, mine: &Terms, table: &[Terms], longest: u32) -> Result<Agreed> {
    let theirs = table.iter().find(|terms| terms.name == Name::other(channel, me));
    let (sends, receives) = theirs.map_or((0, 0), |terms| (terms.sends, terms.receives));
    let unmatched = |side, slot| PrdmaError::Unmatched { side, slot, member: channel.member };
    if let Some(end) = channel.out
        && mine.sends != receives
    {
        return Err(unmatched(Side::Destination, end.slot));
    }
    if let Some(end) = channel.inn
        && mine.receives != sends
    {
        return Err(unmatched(Side::Source, end.slot));
    }
    let damaged = || PrdmaError::Damaged { member: channel.member };
    let theirs = theirs.ok_or_else(damaged)?;
    let layout = |words: &[u64; Layout::WORDS]| Layout::from_words(*words).ok_or_else(damaged);
    let both = Options {
        direct_blocks: mine.direct_blocks.min(theirs.direct_blocks) as u32,
        direct_bytes: mine.direct_bytes.max(theirs.direct_bytes) as u32,
        ..Options::default()
    };
    let edge = |side, slot, from: &[u64; Layout::WORDS], at: &[u64; Layout::WORDS]| -> Result<(Layout, Layout, bool)> {
        let (from, at) = (layout(from)?, layout(at)?);
        if from.bytes() != at.bytes() {
            let (mine, theirs) =
                if side == Side::Destination { (from.bytes(), at.bytes()) } else { (at.bytes(), from.bytes()) };
            return Err(PrdmaError::Size { side, slot, member: channel.member, mine, theirs });
        }
        Ok((from, at, both.packs(count_blocks(&from, &at), from.bytes())))
    };
    let out = match channel.out {
        None => None,
        Some(end) => {
            let (from, at, pack) = edge(Side::Destination, end.slot, &mine.send, &theirs.receive)?;
            let bytes = from.bytes();
            let packed = (pack && !from.is_contiguous()).then_some(from);
            let straight = |layout: Layout| if pack && !layout.is_contiguous() { Layout::first(bytes) } else { layout };
            let pieces = pieces(&straight(from), &straight(at), longest).map_err(|_| damaged())?;
            let width = Width::of_bytes(mine.cells[0].min(theirs.cells[1]));
            Some(Outgoing { packed, pieces, bytes, width })
        }
    };
    let inn = match channel.inn {
        None => None,
        Some(end) => {
            let (_, at, pack) = edge(Side::Source, end.slot, &theirs.send, &mine.receive)?;
            let width = Width::of_bytes(theirs.cells[0].min(mine.cells[1]));
            Some(Incoming { packed: (pack && !at.is_contiguous()).then_some(at), bytes: at.bytes(), width })
        }
    };
    let end = match [mine.separate_end, theirs.separate_end] {
        [0, 0] => EndOfData::WithData,
        _ => EndOfData::Separate,
    };
    Ok(Agreed { out, inn, end, binding: Binding::default() })
}

/// Checks that there is a block for each slot, inside its buffer, and that no received block shares
/// bytes with another block or itself. Blocks of slots without a neighbour are ignored.
///
/// # Errors
/// [`PrdmaError::Slots`], [`PrdmaError::OutOfBounds`], [`PrdmaError::Overlap`],
/// [`PrdmaError::Layout`].
pub(crate) fn check(topology: &Topology, sends: &[Block], receives: &[Block]) -> Result<()> {
    let sides = [(Side::Destination, sends, topology.destinations()), (Side::Source, receives, topology.sources())];
    for (side, blocks, slots) in sides {
        if blocks.len() != slots.len() {
            return Err(PrdmaError::Slots { side, given: blocks.len(), slots: slots.len() });
        }
        for (side, slot, block) in used(side, blocks, slots) {
            let (end, len) = (block.layout.end(), block.memory.bytes());
            if end > len {
                return Err(PrdmaError::OutOfBounds { side, slot, end, len });
            }
        }
    }
    let sent = used(Side::Destination, sends, topology.destinations());
    let received = used(Side::Source, receives, topology.sources());
    for (at, (_, slot, block)) in received.iter().enumerate() {
        block.layout.for_receiving()?;
        let others = received[at + 1..].iter().chain(&sent);
        let shares = |other: &Block| other.memory.is(&block.memory) && other.layout.overlaps(&block.layout);
        if let Some((side, other, _)) = others.into_iter().find(|(_, _, other)| shares(other)) {
            return Err(PrdmaError::Overlap { slot: *slot, side: *side, other: *other });
        }
    }
    Ok(())
}

/// Returns the blocks of slots that have a neighbour.
fn used<'a>(side: Side, blocks: &'a [Block], slots: &[Option<Edge>]) -> Vec<(Side, usize, &'a Block)> {
    let blocks = blocks.iter().zip(slots).enumerate().filter(|(_, (_, edge))| edge.is_some());
    blocks.map(|(slot, (block, _))| (side, slot, block)).collect()
}
