//! Regions of other nodes that this rank has looked up, and the ranks of other nodes that have
//! looked up regions of this rank.
//!
//! A region is looked up once and then cached; its owner records the ranks that cache it. Before
//! the owner reuses the memory, it revokes the region: each of these ranks stops using it, waits
//! for its own operations in flight in the region, and answers. No key is therefore used after its
//! region has been dropped.

use rdma_fabric::{RegionKey, provider::KeepAlive};
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
use tofu2_shm::part::Lock;

/// A region of a rank on another node.
#[derive(Debug)]
pub(super) struct RemoteRegion {
    /// The id of the `Net` that looked it up.
    pub(super) net: u64,
    pub(super) rank: u32,
    pub(super) key: RegionKey,
    /// Offset of its first byte in the heap of its rank.
    pub(super) at: u64,
    pub(super) len: u64,
    pub(super) lock: Lock,
    /// Set once its owner has revoked it.
    revoked: AtomicBool,
}

impl RemoteRegion {
    pub(super) fn new(net: u64, rank: u32, key: RegionKey, (at, len): (u64, u64), lock: Lock) -> Self {
        RemoteRegion { net, rank, key, at, len, lock, revoked: AtomicBool::new(false) }
    }

    pub(super) fn is_revoked(&self) -> bool {
        // Acquire: pairs with the release in `Directory::revoke`.
        self.revoked.load(Acquire)
    }
}

/// Lookups in both directions.
#[derive(Debug, Default)]
pub(super) struct Directory {
    /// Regions that were looked up, by owner and index in the owner's table.
    known: HashMap<(u32, u32), (Arc<RemoteRegion>, KeepAlive)>,
    /// The ranks that have looked up each region of this rank.
    holders: HashMap<RegionKey, BTreeSet<u32>>,
    /// Regions of this rank that are being dropped.
    closing: BTreeSet<u64>,
    /// Number of libfabric operations in flight in each region of another rank.
    inside: HashMap<(u32, RegionKey), usize>,
    /// Number of libfabric operations in flight from or into each region of this rank.
    own: HashMap<RegionKey, usize>,
}

impl Directory {
    /// Returns a region that was looked up and has not been revoked.
    pub(super) fn find(&self, rank: u32, key: RegionKey) -> Option<(Arc<RemoteRegion>, KeepAlive)> {
        self.known.get(&(rank, key.index)).filter(|(region, _)| region.key == key && !region.is_revoked()).cloned()
    }

    /// Stores a region that was looked up, unless it is stored already.
    pub(super) fn keep(&mut self, region: RemoteRegion) {
        if self.find(region.rank, region.key).is_none() {
            let at = (region.rank, region.key.index);
            let region = Arc::new(region);
            self.known.insert(at, (region.clone(), KeepAlive::new(region)));
        }
    }

    /// Stops this rank's use of a region of `rank`. Returns whether no operation is in flight in
    /// it.
    pub(super) fn revoke(&mut self, rank: u32, key: RegionKey) -> bool {
        if let Some((region, _)) = self.known.get(&(rank, key.index)).filter(|(region, _)| region.key == key) {
            // Release: pairs with the acquire in `is_revoked`.
            region.revoked.store(true, Release);
            self.known.remove(&(rank, key.index));
        }
        !self.inside.contains_key(&(rank, key))
    }

    /// Records the start of a libfabric operation.
    pub(super) fn enter(&mut self, remote: &RemoteRegion, own: Option<RegionKey>) {
        *self.inside.entry((remote.rank, remote.key)).or_default() += 1;
        own.into_iter().for_each(|own| self.enter_own(own));
    }

    /// Records the start of a libfabric access to a region of this rank, by this rank or from
    /// another node.
    pub(super) fn enter_own(&mut self, own: RegionKey) {
        *self.own.entry(own).or_default() += 1;
    }

    /// Records the end of such an access.
    pub(super) fn leave_own(&mut self, own: RegionKey) {
        count_down(&mut self.own, own);
    }

    /// Records the end of an operation. Returns whether it was the last one in the region of the
    /// other rank.
    pub(super) fn leave(&mut self, remote: &RemoteRegion, own: Option<RegionKey>) -> bool {
        own.into_iter().for_each(|own| self.leave_own(own));
        count_down(&mut self.inside, (remote.rank, remote.key))
    }

    /// Records that `rank` has looked up a region of this rank; returns `false` if it is being
    /// dropped.
    pub(super) fn hold(&mut self, rank: u32, key: RegionKey) -> bool {
        if self.is_closing(key) {
            return false;
        }
        self.holders.entry(key).or_default().insert(rank);
        true
    }

    /// Starts dropping a region of this rank. Returns the ranks that have looked it up.
    pub(super) fn close(&mut self, key: RegionKey) -> BTreeSet<u32> {
        self.closing.insert(key.to_bits());
        self.holders.remove(&key).unwrap_or_default()
    }

    /// Returns whether a region of this rank is being dropped.
    pub(super) fn is_closing(&self, key: RegionKey) -> bool {
        self.closing.contains(&key.to_bits())
    }

    /// Records that a region of this rank is no longer registered.
    pub(super) fn closed(&mut self, key: RegionKey) {
        self.closing.remove(&key.to_bits());
    }

    /// Returns whether a libfabric operation is in flight from or into a region of this rank.
    pub(super) fn is_used(&self, key: RegionKey) -> bool {
        self.own.contains_key(&key)
    }

    /// Removes lost ranks.
    pub(super) fn forget(&mut self, lost: &BTreeSet<u32>) {
        self.known.retain(|(rank, _), _| !lost.contains(rank));
        self.holders.values_mut().for_each(|holders| holders.retain(|rank| !lost.contains(rank)));
        self.holders.retain(|_, holders| !holders.is_empty());
    }
}

/// Decrements a count, which is removed at 0; returns whether none is left.
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
        directory.keep(RemoteRegion::new(1, 2, KEY, (64, 8), Lock::Open));
        let (region, _) = directory.find(2, KEY).unwrap();
        directory.keep(RemoteRegion::new(1, 2, KEY, (64, 8), Lock::Open));
        assert!(Arc::ptr_eq(&region, &directory.find(2, KEY).unwrap().0), "who looks up at the same time has the same");
        directory.enter(&region, None);
        assert!(!directory.revoke(2, KEY), "an operation is under way");
        assert!(region.is_revoked() && directory.find(2, KEY).is_none());
        assert!(directory.leave(&region, None) && directory.revoke(2, KEY));
    }

    #[test]
    fn another_generation_is_another_region() {
        let mut directory = Directory::default();
        directory.keep(RemoteRegion::new(1, 2, KEY, (64, 8), Lock::Open));
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
