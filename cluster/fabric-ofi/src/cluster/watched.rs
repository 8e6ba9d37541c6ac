//! The words of this rank for which waits are in progress, for networks on which a peer's atomic
//! changes memory without an event.
//!
//! Each check of a wait records the value that it saw. A thread that makes progress compares memory
//! with these values, and wakes the waits if there is a value that no check has seen. A parked wait
//! therefore ends soon after the progress thread was woken, or within the longest sleep of that
//! thread if nothing wakes it, as with a NIC that needs no CPU.

use core::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use rdma_fabric::{Fabric, RegionKey, provider::Place};
use std::{
    collections::HashMap,
    sync::{Mutex, MutexGuard, PoisonError},
};
use tofu2_shm::part::Part;

/// The region of a word, its offset in the region, and its width.
type At = (RegionKey, u64, usize);

/// A word for which waits are in progress.
#[derive(Debug)]
struct Word {
    place: Place,
    waits: usize,
    /// The value that the last check saw; `None` if there has been no check since a wait began.
    seen: Option<u64>,
}

/// All words for which waits are in progress.
#[derive(Debug, Default)]
pub(super) struct Watched {
    words: Mutex<HashMap<At, Word>>,
    /// Number of words. It is a hint: a thread that has begun a wait checks its word again
    /// afterwards.
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
        // Nothing panics between dependent updates, so a poisoned map is consistent.
        self.words.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a wait, whose checks are [recorded](Watched::saw) from now on.
    pub(super) fn begin(&self, place: &Place) {
        let mut words = self.lock();
        let word = words.entry(at(place)).or_insert_with(|| Word { place: place.clone(), waits: 0, seen: None });
        (word.waits, word.seen) = (word.waits + 1, None);
        self.count.store(words.len(), Relaxed);
    }

    /// Removes a wait.
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

    /// Records the value that a check of a wait saw. Other waits for the word may not have seen it.
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

    /// Returns whether a word for which a wait is in progress has a value that the last check did
    /// not see, or no longer exists.
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
