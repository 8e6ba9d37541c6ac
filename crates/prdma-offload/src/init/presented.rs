//! Blocks as neighbours see them.

use super::{Block, Blocks, Channel, Connections, Staged, guard::is_direct};
use crate::{Options, Result};
use rdma_fabric::Fabric;

/// The blocks of a request, with other memory in place of memory that neighbours must not access:
/// memory that is lent in place, unless a guarded request may put there.
pub(crate) struct Presented {
    pub(crate) blocks: Blocks,
    /// By slot.
    packs: Vec<Option<Staged>>,
    unpacks: Vec<Option<Staged>>,
}

impl Presented {
    /// Allocates memory where it is needed.
    ///
    /// # Errors
    /// As [`Fabric::alloc`]; [`rdma_fabric::FabricError::NotMapped`] for memory that is lent in another job.
    pub(crate) fn new(fabric: &Fabric, blocks: &Blocks, options: &Options) -> Result<Self> {
        let stage = |block: &Block| {
            let hidden = block.memory.is_in_place() && !is_direct(options);
            if !hidden {
                block.memory.is_lent_by(fabric)?;
            }
            hidden.then(|| Staged::new(fabric, block)).transpose()
        };
        let stage = |blocks: &[Block]| blocks.iter().map(stage).collect::<Result<Vec<_>>>();
        let (packs, unpacks) = (stage(&blocks.sends)?, stage(&blocks.receives)?);
        let shown = |(block, staged): (&Block, &Option<Staged>)| match staged {
            Some(staged) => staged.presented(),
            None => Block { memory: block.memory.clone(), layout: block.layout },
        };
        let sends = blocks.sends.iter().zip(&packs).map(shown).collect();
        let receives = blocks.receives.iter().zip(&unpacks).map(shown).collect();
        Ok(Presented { blocks: Blocks { sends, receives }, packs, unpacks })
    }

    /// Makes the request of `channels`, which owns `connections`, pack and unpack.
    pub(crate) fn attach(&mut self, channels: &[Channel], connections: &mut Connections) {
        let outs = channels.iter().filter_map(|channel| channel.out);
        connections.packs.splice(0..0, outs.filter_map(|end| self.packs[end.slot].take()));
        let ins = channels.iter().filter_map(|channel| channel.inn);
        connections.unpacks.extend(ins.filter_map(|end| self.unpacks[end.slot].take()));
    }
}
