//! Words of this rank that are waited for, where an atomic of a peer changes memory and tells nobody.
//!
//! Who waits looks, and is seen to look; whoever makes progress compares, and rings if there is
//! something that no look has seen. So a parked wait ends soon after the thread that serves was
//! woken, or within its longest sleep where nothing wakes it, as behind a NIC that needs no CPU.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use rdma_fabric::{Fabric, RegionKey, provider::Place};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tofu2_sim::shm::part::Part;

/// A word's region, offset in it and width.
type At = (RegionKey, u64, usize);

/// One word that is waited for.
#[derive(Debug)]
struct Word {
    place: Place,
    waits: usize,
    /// What the last look has seen; nothing if there was none since a wait began.
    seen: Option<u64>,
}

/// All words that are waited for.
#[derive(Debug, Default)]
pub(super) struct Watched {
    words: Mutex<HashMap<At, Word>>,
    /// How many there are. It is advice: who has begun a wait looks again after that.
    count: AtomicUsize,
}

fn at(place: &Place) -> At {
    let addr = place.addr();
    (addr.region, addr.offset, place.len())
}

fn bits(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    let len = bytes.len().min(8);
    word[..len].copy_from_slice(&bytes[..len]);
    u64::from_le_bytes(word)
}

impl Watched {
    fn lock(&self) -> MutexGuard<'_, HashMap<At, Word>> {
        // Nothing panics between statements that belong together.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a wait begins, whose looks from now on are [seen](Watched::saw).
    pub(super) fn begin(&self, place: &Place) {
        let mut words = self.lock();
        let word = words.entry(at(place)).or_insert_with(|| Word { place: place.clone(), waits: 0, seen: None });
        (word.waits, word.seen) = (word.waits + 1, None);
        self.count.store(words.len(), Relaxed);
    }

    /// Notes that a wait is over.
    pub(super) fn end(&self, place: &Place) {
        let mut words = self.lock();
        if let Some(word) = words.get_mut(&at(place)) {
            word.waits -= 1;
            if word.waits == 0 {
                words.remove(&at(place));
            }
        }
        self.count.store(words.len(), Relaxed);
    }

    /// Notes what a look for a wait has seen. Others that wait for the word may not have seen it.
    pub(super) fn saw(&self, part: &Part, place: &Place, bytes: &[u8]) {
        if self.count.load(Relaxed) == 0 {
            return;
        }
        let mut words = self.lock();
        let Some(word) = words.get_mut(&at(place)) else { return };
        let is_new = word.seen.replace(bits(bytes)) != Some(bits(bytes));
        let others = word.waits > 1;
        drop(words);
        if is_new && others {
            part.wake();
        }
    }

    /// Returns whether a word that is waited for holds what the last look has not seen, or is gone.
    pub(super) fn has_news(&self, below: &Fabric) -> bool {
        if self.count.load(Relaxed) == 0 {
            return false;
        }
        self.lock().values().any(|word| {
            let (mut bytes, len) = ([0; 8], word.place.len().min(8));
            let read = below.provider().read(&word.place, &mut bytes[..len], false);
            read.is_err() || word.seen != Some(bits(&bytes[..len]))
        })
    }
}
