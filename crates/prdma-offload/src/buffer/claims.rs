//! The bytes of a buffer that belong to active requests.

use super::Memory;
use crate::{
    PrdmaError, Result,
    init::{Block, Blocks, Channel},
    layout::Layout,
};
use core::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

/// What a request does with bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Use {
    Send,
    Receive,
}

/// Bytes, and what is done with them.
pub(crate) type Uses = Vec<(Use, Layout)>;

/// The bytes of a buffer that one request uses while it is active.
///
/// Only the rank that has the buffer looks at it, but perhaps several of its threads: a thread that
/// finds it inactive sees what was received.
#[derive(Debug)]
pub(crate) struct Claim {
    active: AtomicBool,
    blocks: Uses,
}

impl Claim {
    pub(crate) fn new(blocks: Uses) -> Arc<Self> {
        Arc::new(Claim { active: AtomicBool::new(false), blocks })
    }

    pub(crate) fn set(&self, active: bool) {
        self.active.store(active, Ordering::Release);
    }

    /// Returns the use that forbids the access `wanted` to bytes of `layout`, if one does.
    fn forbids(&self, wanted: Use, layout: &Layout) -> Option<Use> {
        if !self.active.load(Ordering::Acquire) {
            return None;
        }
        // What is sent may be read, and may be sent by several requests.
        let hurt = self
            .blocks
            .iter()
            .find(|(used, block)| (wanted == Use::Send || *used == Use::Receive) && block.overlaps(layout));
        hurt.map(|(used, _)| *used)
    }
}

/// All claims on a buffer. Claims of freed requests are swept out when a new one is entered.
#[derive(Debug, Default)]
pub(crate) struct ClaimTable(Mutex<Vec<Weak<Claim>>>);

impl ClaimTable {
    fn all(&self) -> MutexGuard<'_, Vec<Weak<Claim>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn enter(&self, claim: Arc<Claim>) {
        let mut all = self.all();
        all.retain(|claim| claim.strong_count() > 0);
        all.push(Arc::downgrade(&claim));
    }

    /// Checks that the program may access bytes now: [`Use::Receive`] stands for reading,
    /// [`Use::Send`] for writing.
    ///
    /// # Errors
    /// [`PrdmaError::InUse`].
    pub(crate) fn may(&self, wanted: Use, start: usize, len: usize) -> Result<()> {
        let all = self.all();
        if all.is_empty() || len == 0 {
            return Ok(());
        }
        let layout = Layout::range(start as u64, len as u64);
        match all.iter().filter_map(Weak::upgrade).find_map(|claim| claim.forbids(wanted, &layout)) {
            None => Ok(()),
            Some(used) => Err(PrdmaError::InUse {
                start: start as u64,
                end: (start + len) as u64,
                use_of: if used == Use::Send { "sends" } else { "receives" },
            }),
        }
    }
}

/// A request's claims on its buffers; active while the request is.
pub(crate) struct ClaimSet(Vec<Arc<Claim>>);

impl ClaimSet {
    /// Makes claims on no buffer.
    pub(crate) fn none() -> Self {
        ClaimSet(Vec::new())
    }

    /// Enters one claim in each of the blocks' buffers.
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
        ClaimSet(buffers.into_iter().map(enter).collect())
    }

    /// Enters claims for the blocks of slots that have a neighbour.
    pub(crate) fn of_channels(channels: &[Channel], blocks: &Blocks) -> Self {
        let outs = channels.iter().filter_map(|channel| channel.out).map(|end| (Use::Send, &blocks.sends[end.slot]));
        let ins =
            channels.iter().filter_map(|channel| channel.inn).map(|end| (Use::Receive, &blocks.receives[end.slot]));
        ClaimSet::of(outs.chain(ins))
    }

    pub(crate) fn set(&self, active: bool) {
        self.0.iter().for_each(|claim| claim.set(active));
    }
}
