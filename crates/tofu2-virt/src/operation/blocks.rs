//! Puts of several blocks: one command of the CPU, and one command of the network interface per
//! block, as for a command of a control queue.

use super::{
    super::{memory::Loc, provider::Me},
    Attachment, Op, Opcode,
    posting::{posted, same_length},
    token,
};
use rdma_fabric::{Blocks, Result, provider::Posted};

impl Me {
    /// Posts a put of blocks of `len` bytes each, copying them now. It needs room for one command.
    pub(crate) fn put_blocks(&self, to: Loc, from: Loc, len: u64, blocks: Blocks) -> Posted {
        posted(self.try_put_blocks(to, from, len, blocks))
    }

    fn try_put_blocks(&self, to: Loc, from: Loc, len: u64, blocks: Blocks) -> Result<Posted> {
        let extent = blocks.extent(len as usize).unwrap_or(usize::MAX) as u64;
        same_length(extent, from.len)?;
        same_length(extent, to.len)?;
        let lane = self.lane();
        let mut core = self.world.core();
        core.check(&from)?;
        core.check(&to)?;
        if core.ranks.is_full(lane, core.machine.timing.transmit_queue) {
            return Ok(Posted::Full);
        }
        let (now, posting) = (core.clock.now(), core.machine.timing.posting(false));
        let written = core.ranks.occupy_cpu(lane, now, posting);
        let mut reusable_at = written;
        for block in 0..u64::from(blocks.count) {
            let ahead = block * blocks.stride;
            let (mut source, mut target) = (from, to);
            (source.offset, source.len) = (from.offset + ahead, len);
            (target.offset, target.len) = (to.offset + ahead, len);
            let mut put = Op::new(Opcode::Put, lane, target);
            if len <= 8 {
                put.a = core.memory.short(&source);
            } else {
                let bytes = core.memory.copied(&source);
                put.attachment = Some(Box::new(Attachment { bytes, ..Attachment::default() }));
            }
            core.ranks.put_posted(lane, to.rank, now);
            reusable_at = core.hand_over(put, written, block == 0).1;
        }
        Ok(Posted::Pending(token::at(&mut core, lane, reusable_at)))
    }
}
