//! What a rank publishes about itself, in a word of its own segment.
//!
//! `count` at the home is anonymous: it can't tell whose readers it counts. So each rank says in a word that
//! others can read, but only it writes, how many acquisitions it has on the way in, inside and on the way out, and
//! how far its writer is. Recovery after a rank's death rebuilds the lock from these words.
//!
//! The word is written *before* the step it announces and again after the step's result is known.

use super::layout;
use core::{
    fmt,
    sync::atomic::{AtomicU64, Ordering},
};
use rdma_fabric::{Fabric, LocalWord, Region, Result};

/// How far this rank's writer is; the low 4 bits of the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    None = 0,
    Arriving = 1,
    Inside = 2,
    Leaving = 3,
}

/// Places of the reader counters: 8 bits each. The writer's node slot is in bits 4 to 7, the epoch in 48 to 63.
#[derive(Clone, Copy)]
pub(super) enum Readers {
    Arriving = 8,
    Inside = 16,
    Leaving = 24,
}

pub(super) struct Published<F: Fabric> {
    word: LocalWord<F, u64>,
    /// The word's value: only this rank writes it, so it need not be read back.
    value: AtomicU64,
}

impl<F: Fabric> fmt::Debug for Published<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let v = self.value.load(Ordering::Relaxed);
        let readers = |place: Readers| v >> place as u64 & 0xff;
        write!(
            f,
            "readers {} arriving, {} inside, {} leaving; writer state {}",
            readers(Readers::Arriving),
            readers(Readers::Inside),
            readers(Readers::Leaving),
            v & 0xf
        )
    }
}

impl<F: Fabric> Published<F> {
    pub(super) fn new(fabric: &F, region: &F::Region) -> Result<Self> {
        let word = fabric.local_word(layout::published(fabric.rank(), region.key()))?;
        let value = 1 << 48;
        fabric.store(&word, value)?;
        Ok(Published { word, value: AtomicU64::new(value) })
    }

    /// One reader moves from one counter to another; `None` is outside.
    pub(super) fn reader(&self, fabric: &F, from: Option<Readers>, to: Option<Readers>) -> Result<()> {
        let unit = |place: Option<Readers>| place.map_or(0, |place| 1u64 << place as u64);
        let add = unit(to).wrapping_sub(unit(from));
        let value = self.value.fetch_add(add, Ordering::Relaxed).wrapping_add(add);
        fabric.store(&self.word, value)
    }

    /// The writer goes on to `state` with the node in `slot`.
    pub(super) fn writer(&self, fabric: &F, state: Writer, slot: usize) -> Result<()> {
        let with = |v: u64| (v & !0xff) | state as u64 | (slot as u64) << 4;
        let old = self.value.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |v| Some(with(v)));
        fabric.store(&self.word, with(old.unwrap_or_else(|same| same)))
    }
}
