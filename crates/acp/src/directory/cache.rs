//! The regions that this rank has resolved.
//!
//! Two levels: the keys of all foreign regions used so far, at about 40 bytes each, and the
//! resolved spans of a few recently used regions, in a hash table in which a hit or a miss takes a
//! few instructions.

use super::RegionId;
use crate::starter::Entry;
use rdma_fabric::{Rank, RegionKey, RemoteSpan};
use std::collections::HashMap;

/// The number of slots at first.
const FEW: usize = 4;
/// The maximum number of spans.
const MOST_SLOTS: usize = 2 * u32::BITS as usize;

type Slot = Option<(RegionId, RemoteSpan<u8>)>;

#[derive(Clone, Debug, Default)]
pub(super) struct Cache {
    /// The slots until there are more. Each region can be in two slots, its own and the other one of a pair, so that
    /// two regions used in turn do not replace each other: a copy has two.
    few: [Slot; FEW],
    /// The slots instead of `few`: a power of two, or empty.
    many: Vec<Slot>,
    /// For each pair, the slot in which a region was replaced last.
    replaced: u32,
    entries: HashMap<RegionId, Entry>,
}

#[inline(always)]
fn slot_of(id: RegionId, slots: usize) -> usize {
    // The rank is in the bits above the region's number. Mixing both avoids collisions among the
    // regions of one rank, and among regions with the same number of different ranks.
    (id.0 ^ id.0 >> 10) as usize & slots.wrapping_sub(1)
}

impl Cache {
    fn slots(&self) -> &[Slot] {
        if self.many.is_empty() { &self.few } else { &self.many }
    }

    fn slots_mut(&mut self) -> &mut [Slot] {
        if self.many.is_empty() { &mut self.few } else { &mut self.many }
    }

    /// Returns the resolved region.
    #[inline(always)]
    pub(super) fn span(&self, id: RegionId) -> Option<&RemoteSpan<u8>> {
        let own = match &self.many[..] {
            [] => &self.few[slot_of(id, FEW)],
            many => many.get(slot_of(id, many.len()))?,
        };
        match own {
            Some((there, span)) if *there == id => Some(span),
            _ => self.beside(id),
        }
    }

    /// Returns the resolved region from the other slot of its pair.
    #[inline(never)]
    fn beside(&self, id: RegionId) -> Option<&RemoteSpan<u8>> {
        let slots = self.slots();
        slots[slot_of(id, slots.len()) ^ 1].as_ref().filter(|(there, _)| *there == id).map(|(_, span)| span)
    }

    /// Stores a resolved region, replacing another one if necessary: of its pair, the one stored earlier.
    pub(super) fn keep_span(&mut self, id: RegionId, span: RemoteSpan<u8>) {
        loop {
            let slots = if self.many.is_empty() { &mut self.few[..] } else { &mut self.many };
            let own = slot_of(id, slots.len());
            let pair = [own, own ^ 1];
            let holds = |slot: &usize| slots[*slot].as_ref().map(|(there, _)| *there);
            let known = pair.into_iter().find(|slot| holds(slot) == Some(id));
            let free = || pair.into_iter().find(|slot| holds(slot).is_none());
            if let Some(slot) = known.or_else(free) {
                slots[slot] = Some((id, span));
                return;
            }
            if slots.len() == MOST_SLOTS {
                let replaced = 1 << (own / 2);
                slots[own & !1 | usize::from(self.replaced & replaced == 0)] = Some((id, span));
                self.replaced ^= replaced;
                return;
            }
            self.grow();
        }
    }

    #[cold]
    fn grow(&mut self) {
        let old: Vec<Slot> = self.slots_mut().iter_mut().map(Option::take).collect();
        let slots = old.len() * 2;
        self.many = (0..slots).map(|_| None).collect();
        for (id, span) in old.into_iter().flatten() {
            let own = slot_of(id, slots);
            // Those of one pair come from one pair.
            let slot = if self.many[own].is_none() { own } else { own ^ 1 };
            self.many[slot] = Some((id, span));
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
        self.slots().iter().flatten().find_map(|(id, span)| is_it(span).then_some(*id))
    }

    /// Removes a region that no longer exists.
    pub(super) fn forget(&mut self, id: RegionId) {
        self.entries.remove(&id);
        let slots = self.slots_mut();
        let own = slot_of(id, slots.len());
        for slot in [own, own ^ 1] {
            slots[slot].take_if(|(there, _)| *there == id);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use checks::jobs::threads;
    use rdma_fabric::{Fabric, ProgramResult};

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
        for slots in [FEW, 2 * FEW, 64] {
            assert!((0..10_000).all(|n| slot_of(RegionId(n * 257), slots) < slots));
        }
        assert!(Cache::default().span(RegionId(3)).is_none());
    }

    /// Whatever the number of slots: the region kept last is found, and so is the one before it, which may have the
    /// same pair; a forgotten one is not.
    #[test]
    fn the_last_two_regions_are_found() {
        let program = async |fabric: Fabric| -> ProgramResult<()> {
            let region = fabric.alloc(8 * 1024)?;
            let span_of = |id: u32| fabric.remote_span(region.at(fabric.rank(), 8 * u64::from(id)), 8);
            let offset_in = |cache: &Cache, id: u32| cache.span(RegionId(id)).map(|span| span.addr().offset);
            let mut cache = Cache::default();
            for id in (0..1024).step_by(4) {
                for id in [id, id + 1] {
                    cache.keep_span(RegionId(id), span_of(id)?);
                }
                let found = [id, id + 1].map(|id| offset_in(&cache, id));
                assert_eq!(found, [id, id + 1].map(|id| Some(8 * u64::from(id))), "{} slots", cache.slots().len());
                assert!(cache.span(RegionId(id + 2)).is_none());
            }
            assert_eq!(cache.slots().len(), MOST_SLOTS);
            cache.forget(RegionId(1020));
            assert_eq!([1020, 1021].map(|id| offset_in(&cache, id)), [None, Some(8 * 1021)]);
            Ok(())
        };
        threads(1).run(&program).unwrap();
    }
}
