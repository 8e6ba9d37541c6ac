//! Memory that every rank has from the start, at addresses that follow from the rank alone.
//!
//! It is one symmetric allocation: the starter memory, the memory of channels, the heap, the slots
//! for requests of other ranks, and the directory, which has an entry for each region that the rank
//! may register.
//!
//! An entry is two words: the length in bytes plus one, or 0 if there is no region, and the
//! fabric's key. On registration its owner writes the key before the length; on removal it clears
//! the length first. A peer that reads the length, the key and the length again, and finds the same
//! length twice, therefore has a key that belonged to a region in this entry.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Options, address::Tag, delegation::Slots};
use rdma_fabric::{Fabric, RegionKey};

/// Areas start at multiples of this number of bytes, so that no two share a cache line.
const ALIGN: u64 = 64;
const ENTRY_BYTES: u64 = 16;

/// The offsets of the areas in a rank's part of the symmetric allocation; the same at all ranks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Layout {
    /// Start and length of the areas with reserved tags, in bytes.
    areas: [(u64, u64); Tag::FIRST_FREE as usize],
    /// The area for requests of other ranks.
    delegation: u64,
    slots: Slots,
    /// Two cache lines through which a program and its helper wait for each other.
    queue: u64,
    directory: u64,
    entries: u64,
}

impl Layout {
    pub(crate) fn new(fabric: &Fabric, options: &Options) -> Self {
        let slots = Slots::of(fabric, options);
        let mut end = 0u64;
        let mut area = |bytes: usize| {
            let start = end;
            // Far from overflow: the options have limits, and so has a job's number of ranks.
            end = end.saturating_add(bytes as u64).next_multiple_of(ALIGN);
            (start, bytes as u64)
        };
        // In the order of the reserved tags.
        let areas = [options.starter_bytes, options.channel_bytes, options.heap_bytes].map(&mut area);
        let (delegation, _) = area(slots.bytes(options.mode));
        let (queue, _) = area(128);
        let (directory, _) = area(0);
        Layout { areas, delegation, slots, queue, directory, entries: options.regions as u64 }
    }

    /// Returns the size of the allocation.
    pub(crate) fn bytes(&self) -> usize {
        self.entry_at(self.entries) as usize
    }

    /// Returns start and length of a reserved region; `None` for a region that is registered.
    pub(crate) fn area(&self, tag: Tag) -> Option<(u64, u64)> {
        self.areas.get(usize::from(tag.0)).copied()
    }

    /// Returns the offset of a region's entry in the directory; `None` if it has none.
    pub(crate) fn entry(&self, tag: Tag) -> Option<u64> {
        let number = u64::from(tag.0.checked_sub(Tag::FIRST_FREE)?);
        (number < self.entries).then(|| self.entry_at(number))
    }

    fn entry_at(&self, number: u64) -> u64 {
        self.directory.saturating_add(number.saturating_mul(ENTRY_BYTES))
    }

    /// Returns the offset of the area for delegation.
    pub(crate) fn delegation(&self) -> u64 {
        self.delegation
    }

    /// Returns the use of the slots for requests.
    pub(crate) fn slots(&self) -> Slots {
        self.slots
    }

    /// Returns the offset of the words of the command queue.
    pub(crate) fn queue(&self) -> u64 {
        self.queue
    }

    /// Returns the number of entries.
    pub(crate) fn entries(&self) -> usize {
        self.entries as usize
    }
}

/// The offsets of an entry's words.
pub(crate) const LENGTH: u64 = 0;
pub(crate) const KEY: u64 = 8;

/// The directory's entry of a region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Entry {
    pub(crate) key: RegionKey,
    pub(crate) bytes: u64,
}
