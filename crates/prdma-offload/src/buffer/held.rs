//! Claims of one request or call on all its buffers.

use super::{Claim, Memory, Use, Uses};
use crate::init::{Block, Blocks, Channel};
use std::sync::Arc;

/// Claims on the buffers; active while the request is.
pub(crate) struct Held(Vec<Arc<Claim>>);

impl Held {
    /// On no buffer.
    pub(crate) fn none() -> Self {
        Held(Vec::new())
    }

    /// Enter one claim in each of the buffers.
    pub(crate) fn of<'a>(blocks: impl Iterator<Item = (Use, &'a Block)>) -> Self {
        let mut buffers: Vec<(&Memory, Uses)> = Vec::new();
        for (used, block) in blocks {
            match buffers.iter_mut().find(|(memory, _)| memory.is(&block.memory)) {
                Some((_, blocks)) => blocks.push((used, block.layout)),
                None => buffers.push((&block.memory, vec![(used, block.layout)])),
            }
        }
        let enter = |(memory, blocks): (&Memory, _)| {
            let claim = Claim::new(blocks);
            memory.claim(claim.clone());
            claim
        };
        Held(buffers.into_iter().map(enter).collect())
    }

    /// Those of the blocks of slots that have a neighbour.
    pub(crate) fn of_channels(channels: &[Channel], blocks: &Blocks) -> Self {
        let outs = channels.iter().filter_map(|channel| channel.out).map(|end| (Use::Send, &blocks.sends[end.slot]));
        let ins =
            channels.iter().filter_map(|channel| channel.inn).map(|end| (Use::Receive, &blocks.receives[end.slot]));
        Held::of(outs.chain(ins))
    }

    pub(crate) fn set(&self, active: bool) {
        self.0.iter().for_each(|claim| claim.set(active));
    }
}
