//! Regions of other nodes that this rank has looked up, and ranks of other nodes that have looked up
//! regions of this one.
//!
//! A region is looked up once and then kept, with the rank that owns it knowing so. Before the owner
//! gives the memory to anybody else, it revokes: whoever has looked it up uses it no more, waits for
//! what is under way in it, and answers. So no key is ever used after its region.

use rdma_fabric::{RegionKey, provider::Anchor};
use std::{
    collections::{BTreeSet, HashMap},
    sync::{
        Arc,
        atomic::{
            AtomicBool,
            Ordering::{Acquire, Release},
        },
    },
};
use tofu2_sim::shm::part::Lock;

/// A region of a rank of another node.
#[derive(Debug)]
pub(super) struct FarRegion {
    /// The share that has looked it up.
    pub(super) net: u64,
    pub(super) rank: u32,
    pub(super) key: RegionKey,
    /// Offset of its first byte in the rank's heap.
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) lock: Lock,
    /// Set when its owner has revoked it.
    revoked: AtomicBool,
}

impl FarRegion {
    pub(super) fn new(net: u64, rank: u32, key: RegionKey, (at, len): (u64, u64), lock: Lock) -> Self {
        FarRegion { net, rank, key, at, len, lock, revoked: AtomicBool::new(false) }
    }

    pub(super) fn is_revoked(&self) -> bool {
        // Acquire: pairs with the release in `Directory::revoke`.
        self.revoked.load(Acquire)
    }
}

/// Both directions.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// What was looked up, by owner and place in its table.
    known: HashMap<(u32, u32), (Arc<FarRegion>, Anchor)>,
    /// Who has looked up a region of this rank.
    holders: HashMap<RegionKey, BTreeSet<u32>>,
    /// Regions of this rank that are being dropped.
    closing: BTreeSet<u64>,
    /// Operations under way by libfabric in regions of others.
    inside: HashMap<(u32, RegionKey), usize>,
    /// Operations under way by libfabric from or into regions of this rank.
    own: HashMap<RegionKey, usize>,
}

impl Directory {
    /// Returns a region that was looked up and not revoked.
    pub(super) fn find(&self, rank: u32, key: RegionKey) -> Option<(Arc<FarRegion>, Anchor)> {
        self.known.get(&(rank, key.index)).filter(|(region, _)| region.key == key && !region.is_revoked()).cloned()
    }

    /// Keeps what was looked up, unless it is kept already.
    pub(super) fn keep(&mut self, region: FarRegion) {
        if self.find(region.rank, region.key).is_none() {
            let at = (region.rank, region.key.index);
            let region = Arc::new(region);
            self.known.insert(at, (region.clone(), Anchor::new(region)));
        }
    }

    /// Ends the use of a region of `rank`. Returns whether nothing is under way in it.
    pub(super) fn revoke(&mut self, rank: u32, key: RegionKey) -> bool {
        if let Some((region, _)) = self.known.get(&(rank, key.index)).filter(|(region, _)| region.key == key) {
            // Release: pairs with the acquire in `is_revoked`.
            region.revoked.store(true, Release);
            self.known.remove(&(rank, key.index));
        }
        !self.inside.contains_key(&(rank, key))
    }

    /// Notes that an operation by libfabric begins.
    pub(super) fn enter(&mut self, far: &FarRegion, own: Option<RegionKey>) {
        *self.inside.entry((far.rank, far.key)).or_default() += 1;
        own.into_iter().for_each(|own| self.enter_own(own));
    }

    /// Notes that a region of this rank is about to be used by libfabric, from here or from another
    /// node.
    pub(super) fn enter_own(&mut self, own: RegionKey) {
        *self.own.entry(own).or_default() += 1;
    }

    /// Notes that this is over.
    pub(super) fn leave_own(&mut self, own: RegionKey) {
        count_down(&mut self.own, own);
    }

    /// Notes that it is over. Returns whether it was the last in the region of the other rank.
    pub(super) fn leave(&mut self, far: &FarRegion, own: Option<RegionKey>) -> bool {
        own.into_iter().for_each(|own| self.leave_own(own));
        count_down(&mut self.inside, (far.rank, far.key))
    }

    /// Notes that `rank` has looked up a region of this rank; false if it is being dropped.
    pub(super) fn hold(&mut self, rank: u32, key: RegionKey) -> bool {
        if self.is_closing(key) {
            return false;
        }
        self.holders.entry(key).or_default().insert(rank);
        true
    }

    /// Begins to drop a region of this rank. Returns who has looked it up.
    pub(super) fn close(&mut self, key: RegionKey) -> BTreeSet<u32> {
        self.closing.insert(key.to_bits());
        self.holders.remove(&key).unwrap_or_default()
    }

    /// Returns whether a region of this rank is being dropped.
    pub(super) fn is_closing(&self, key: RegionKey) -> bool {
        self.closing.contains(&key.to_bits())
    }

    /// Notes that a region of this rank is no longer registered.
    pub(super) fn closed(&mut self, key: RegionKey) {
        self.closing.remove(&key.to_bits());
    }

    /// Returns whether an operation by libfabric is under way from or into a region of this rank.
    pub(super) fn is_used(&self, key: RegionKey) -> bool {
        self.own.contains_key(&key)
    }

    /// Forgets ranks that are lost.
    pub(super) fn forget(&mut self, lost: &BTreeSet<u32>) {
        self.known.retain(|(rank, _), _| !lost.contains(rank));
        self.holders.values_mut().for_each(|holders| holders.retain(|rank| !lost.contains(rank)));
        self.holders.retain(|_, holders| !holders.is_empty());
    }
}

/// Takes one off a count that is not kept at 0; returns whether it was the last.
fn count_down<K: std::hash::Hash + Eq>(counts: &mut HashMap<K, usize>, key: K) -> bool {
    let Some(count) = counts.get_mut(&key) else { return true };
    *count -= 1;
    let last = *count == 0;
    if last {
        counts.remove(&key);
    }
    last
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEY: RegionKey = RegionKey { index: 3, generation: 5 };

    #[test]
    fn a_revoked_region_is_not_found_again() {
        let mut directory = Directory::default();
        directory.keep(FarRegion::new(1, 2, KEY, (64, 8), Lock::Open));
        let (region, _) = directory.find(2, KEY).unwrap();
        directory.keep(FarRegion::new(1, 2, KEY, (64, 8), Lock::Open));
        assert!(Arc::ptr_eq(&region, &directory.find(2, KEY).unwrap().0), "who looks up at the same time has the same");
        directory.enter(&region, None);
        assert!(!directory.revoke(2, KEY), "an operation is under way");
        assert!(region.is_revoked() && directory.find(2, KEY).is_none());
        assert!(directory.leave(&region, None) && directory.revoke(2, KEY));
    }

    #[test]
    fn another_generation_is_another_region() {
        let mut directory = Directory::default();
        directory.keep(FarRegion::new(1, 2, KEY, (64, 8), Lock::Open));
        let later = RegionKey { generation: 7, ..KEY };
        assert!(directory.find(2, later).is_none() && directory.revoke(2, later));
        assert!(directory.find(2, KEY).is_some());
    }

    #[test]
    fn who_holds_is_told_once_and_nobody_after_that() {
        let mut directory = Directory::default();
        assert!(directory.hold(1, KEY) && directory.hold(4, KEY));
        assert_eq!(directory.close(KEY), BTreeSet::from([1, 4]));
        assert!(!directory.hold(5, KEY));
        directory.closed(KEY);
        assert!(directory.close(KEY).is_empty());
    }
}
