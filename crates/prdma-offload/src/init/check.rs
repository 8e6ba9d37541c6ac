//! What can be told of blocks without the other members.

use super::Block;
use crate::{
    Edge, PrdmaError, Result,
    topology::{Side, Topology},
};

/// Whether there is a block for each slot, inside its buffer, and none that is received shares bytes with another or itself. Blocks of slots
/// without a neighbour count for nothing.
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

/// The blocks of slots that have a neighbour.
fn used<'a>(side: Side, blocks: &'a [Block], slots: &[Option<Edge>]) -> Vec<(Side, usize, &'a Block)> {
    let blocks = blocks.iter().zip(slots).enumerate().filter(|(_, (_, edge))| edge.is_some());
    blocks.map(|(slot, (block, _))| (side, slot, block)).collect()
}
