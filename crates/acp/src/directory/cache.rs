//! The regions that this rank has resolved.
//!
//! Two levels: the keys of all foreign regions used so far, at about 40 bytes each, and the
//! resolved spans of a few recently used regions, in a hash table in which a hit or a miss takes a
//! few instructions.

use super::RegionId;
use crate::starter::Entry;
use rdma_fabric::{Rank, RegionKey, RemoteSpan};
use std::collections::BTreeMap;

/// The maximum number of spans.
const MOST_SLOTS: usize = 64;

#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// Empty, or with a power of two as its length. Each region can be in two slots, its own and the
    /// other one of a pair, so that two regions used in turn do not replace each other: a copy has two.
    slots: Vec<Option<(RegionId, RemoteSpan<u8>)>>,
    entries: BTreeMap<RegionId, Entry>,
}

#[inline(always)]
fn slot_of(id: RegionId, slots: usize) -> usize {
    // The rank is in the bits above the region's number. Mixing both avoids collisions among the
    // regions of one rank, and among regions with the same number of different ranks.
    (id.0 ^ id.0 >> 10) as usize & slots.wrapping_sub(1)
}

impl Cache {
    /// Returns the resolved region.
    #[inline(always)]
    pub(super) fn span(&self, id: RegionId) -> Option<&RemoteSpan<u8>> {
        let slot = slot_of(id, self.slots.len());
        match self.slots.get(slot) {
            Some(Some((there, span))) if *there == id => Some(span),
            _ => match self.slots.get(slot ^ 1) {
                Some(Some((there, span))) if *there == id => Some(span),
                _ => None,
            },
        }
    }

    /// Stores a resolved region, replacing another one if necessary: of its pair, the one stored earlier.
    pub(super) fn keep_span(&mut self, id: RegionId, span: RemoteSpan<u8>) {
        loop {
            let slots = self.slots.len();
            let own = slot_of(id, slots);
            let pair = [own, own ^ 1];
            let holds = |slot: &usize| self.slots.get(*slot).and_then(Option::as_ref).map(|(there, _)| *there);
            let known = pair.into_iter().find(|slot| holds(slot) == Some(id));
            let free = || pair.into_iter().find(|slot| *slot < slots && holds(slot).is_none());
            if let Some(slot) = known.or_else(free) {
                self.slots[slot] = Some((id, span));
                return;
            }
            if slots == MOST_SLOTS {
                self.slots[own ^ 1] = self.slots[own].replace((id, span));
                return;
            }
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let slots = (self.slots.len() * 2).max(2);
        let old = core::mem::replace(&mut self.slots, (0..slots).map(|_| None).collect());
        for (id, span) in old.into_iter().flatten() {
            let own = slot_of(id, slots);
            // Those of one pair come from one pair.
            let slot = if self.slots[own].is_none() { own } else { own ^ 1 };
            self.slots[slot] = Some((id, span));
        }
    }

    /// Returns the entry of a region, as read from its owner's directory.
    pub(super) fn entry(&self, id: RegionId) -> Option<Entry> {
        self.entries.get(&id).copied()
    }

    pub(super) fn keep_entry(&mut self, id: RegionId, entry: Entry) {
        self.entries.insert(id, entry);
    }

    /// Returns the resolved region with this key.
    pub(super) fn region_of(&self, rank: Rank, key: RegionKey) -> Option<RegionId> {
        let is_it = |span: &RemoteSpan<u8>| (span.rank(), span.addr().region) == (rank, key);
        self.slots.iter().flatten().find_map(|(id, span)| is_it(span).then_some(*id))
    }

    /// Removes a region that no longer exists.
    pub(super) fn forget(&mut self, id: RegionId) {
        self.entries.remove(&id);
        let own = slot_of(id, self.slots.len());
        for slot in [own, own ^ 1] {
            if let Some(slot) = self.slots.get_mut(slot) {
                slot.take_if(|(there, _)| *there == id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(n: u32) -> Entry {
        Entry { key: RegionKey { index: n, generation: 1 }, bytes: 8 }
    }

    #[test]
    fn entries_are_kept_until_they_are_forgotten() {
        let mut cache = Cache::default();
        for n in 0..1000 {
            cache.keep_entry(RegionId(n), entry(n));
        }
        cache.forget(RegionId(7));
        assert_eq!((cache.entry(RegionId(7)), cache.entry(RegionId(8))), (None, Some(entry(8))));
    }

    #[test]
    fn a_slot_is_always_inside() {
        for slots in [2, 4, 64] {
            assert!((0..10_000).all(|n| slot_of(RegionId(n * 257), slots) < slots));
        }
        assert!(Cache::default().span(RegionId(3)).is_none());
    }
}
