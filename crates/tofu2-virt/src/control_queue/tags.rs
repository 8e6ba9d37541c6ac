//! Steering tags, which determine the memory that an address denotes on a queue.

use rdma_fabric::{RegionKey, control_queue::Stadd};
use std::collections::{HashMap, VecDeque};

/// A tag that was released is not reused until this many others have been released, so that
/// accesses to outdated addresses fail.
const QUARANTINE: usize = 64;

/// An address space of one queue, or of all queues of a rank if they share it on this machine.
#[derive(Debug, Default)]
pub(super) struct Space {
    /// The number of queues that use it.
    pub(super) users: u32,
    /// Registrations under fixed tags, sorted by tag.
    fixed: Vec<(u8, Registration)>,
    /// Registrations under automatic tags, from [`Stadd::FIRST_AUTOMATIC`] on.
    automatic: Vec<Option<Registration>>,
    /// Free automatic tags, the one that was released first at the front.
    free: VecDeque<u32>,
    /// The automatic tag of each region, by index and generation of its key.
    known: HashMap<(u32, u32), u32>,
}

/// The memory behind a tag.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Registration {
    pub(super) key: RegionKey,
    /// Length in bytes.
    pub(super) len: u64,
    /// Whether peers' writes fail.
    pub(super) read_only: bool,
}

impl Space {
    /// Registers a region under one of at most `limit` automatic tags. A region that already has
    /// one keeps it. `None` if all tags are in use.
    pub(super) fn register(&mut self, key: RegionKey, len: u64, limit: u32) -> Option<Stadd> {
        if let Some(&tag) = self.known.get(&(key.index, key.generation)) {
            return Some(Stadd::new(tag, 0));
        }
        let fresh = self.automatic.len();
        let at = match self.free.front() {
            Some(_) if self.free.len() > QUARANTINE || fresh >= limit as usize => self.free.pop_front()? as usize,
            _ if fresh < limit as usize => {
                self.automatic.push(None);
                fresh
            }
            _ => return None,
        };
        self.automatic[at] = Some(Registration { key, len, read_only: false });
        let tag = Stadd::FIRST_AUTOMATIC + at as u32;
        self.known.insert((key.index, key.generation), tag);
        Some(Stadd::new(tag, 0))
    }

    /// Registers a region under a fixed tag. `None` if the tag is in use.
    pub(super) fn register_fixed(&mut self, key: RegionKey, len: u64, tag: u8) -> Option<Stadd> {
        match self.fixed.binary_search_by_key(&tag, |(tag, _)| *tag) {
            Ok(_) => None,
            Err(at) => {
                self.fixed.insert(at, (tag, Registration { key, len, read_only: false }));
                Some(Stadd::fixed(tag))
            }
        }
    }

    #[inline]
    fn automatic(tag: u32) -> Option<usize> {
        tag.checked_sub(Stadd::FIRST_AUTOMATIC).map(|at| at as usize)
    }

    /// Returns the registration behind an address's tag.
    #[inline]
    pub(super) fn find(&self, at: Stadd) -> Option<Registration> {
        match Self::automatic(at.tag()) {
            Some(at) => self.automatic.get(at).copied().flatten(),
            None => {
                let tag = u8::try_from(at.tag()).ok()?;
                let at = self.fixed.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
                Some(self.fixed[at].1)
            }
        }
    }

    fn find_mut(&mut self, at: Stadd) -> Option<&mut Registration> {
        match Self::automatic(at.tag()) {
            Some(at) => self.automatic.get_mut(at)?.as_mut(),
            None => {
                let tag = u8::try_from(at.tag()).ok()?;
                let at = self.fixed.binary_search_by_key(&tag, |(tag, _)| *tag).ok()?;
                Some(&mut self.fixed[at].1)
            }
        }
    }

    /// Sets whether writes by peers fail from now on. Returns false if there is no such tag.
    pub(super) fn set_read_only(&mut self, at: Stadd, read_only: bool) -> bool {
        self.find_mut(at).map(|there| there.read_only = read_only).is_some()
    }

    /// Ends a registration. Returns false if there is none.
    pub(super) fn deregister(&mut self, at: Stadd) -> bool {
        let Some(at) = Self::automatic(at.tag()) else {
            let there = u8::try_from(at.tag()).ok().and_then(|tag| self.fixed.binary_search_by_key(&tag, |f| f.0).ok());
            return there.map(|place| self.fixed.remove(place)).is_some();
        };
        let Some(there) = self.automatic.get_mut(at).and_then(Option::take) else { return false };
        self.known.remove(&(there.key.index, there.key.generation));
        self.free.push_back(at as u32);
        true
    }

    /// Returns the size of the storage in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.fixed.capacity() * size_of::<(u8, Registration)>()
            + self.automatic.capacity() * size_of::<Option<Registration>>()
            + self.free.capacity() * size_of::<u32>()
            + self.known.len() * size_of::<((u32, u32), u32)>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(index: u32) -> RegionKey {
        RegionKey { index, generation: 0 }
    }

    #[test]
    fn the_same_region_has_the_same_address_until_it_is_deregistered() {
        let mut space = Space::default();
        let first = space.register(key(1), 64, 4).unwrap();
        assert_eq!(space.register(key(1), 64, 4), Some(first));
        let other = space.register(key(2), 64, 4).unwrap();
        assert_ne!(first, other);
        assert!(space.deregister(first + 5) && !space.deregister(first));
        assert_eq!(space.find(first), None);
        assert_ne!(space.register(key(1), 64, 4), Some(first), "not while late addresses may be about");
    }

    #[test]
    fn tags_run_out_and_come_back() {
        let mut space = Space::default();
        let all: Vec<_> = (0..3).map(|index| space.register(key(index), 8, 3).unwrap()).collect();
        assert_eq!(space.register(key(9), 8, 3), None);
        assert!(space.deregister(all[1]));
        assert_eq!(space.register(key(9), 8, 3), Some(all[1]));
    }

    #[test]
    fn fixed_tags_are_what_they_are_called() {
        let mut space = Space::default();
        assert_eq!(space.register_fixed(key(1), 8, 200), Some(Stadd::fixed(200)));
        assert_eq!(space.register_fixed(key(2), 8, 200), None);
        assert_eq!(space.register_fixed(key(2), 8, 3), Some(Stadd::fixed(3)));
        assert_eq!(space.find(Stadd::fixed(200) + 4).map(|r| r.key), Some(key(1)));
        assert!(space.set_read_only(Stadd::fixed(3), true) && space.find(Stadd::fixed(3)).unwrap().read_only);
        assert!(!space.set_read_only(Stadd::new(300, 0), true) && space.find(Stadd::new(0xfff, 0)).is_none());
        assert!(space.deregister(Stadd::fixed(3)) && !space.deregister(Stadd::fixed(3)));
    }
}
