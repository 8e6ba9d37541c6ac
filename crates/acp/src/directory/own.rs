//! The regions that this rank has registered.

#![deny(clippy::arithmetic_side_effects)]

use crate::{
    AcpError, Result,
    address::Tag,
    starter::{Entry, KEY, LENGTH, Layout},
};
use core::any::TypeId;
use rdma_fabric::{Fabric, FabricError, LocalWord, Rank, Region};
use std::collections::VecDeque;

/// This rank's registered regions, and the tags that are free.
#[derive(Debug)]
pub(crate) struct OwnRegions {
    /// By tag.
    regions: Vec<Option<OwnRegion>>,
    /// Tags that were in use, oldest first. A tag is reused only after all others, so that a stale
    /// address does not refer to another region for as long as possible.
    returned: VecDeque<Tag>,
    /// Tags from this one on have never been in use.
    fresh: u16,
}

#[derive(Debug)]
pub(crate) struct OwnRegion {
    pub(crate) region: Region,
    pub(crate) colour: u8,
    /// The element type of a vector that was moved in.
    pub(crate) element: Option<TypeId>,
}

impl OwnRegions {
    pub(crate) fn new() -> Self {
        OwnRegions { regions: Vec::new(), returned: VecDeque::new(), fresh: Tag::FIRST_FREE.into() }
    }

    /// Returns the tag of the next region, which is reserved until it is [given
    /// back](OwnRegions::give_back) or [filled](OwnRegions::insert).
    pub(crate) fn take_tag(&mut self, layout: &Layout, me: Rank) -> Result<Tag> {
        let fresh = u8::try_from(self.fresh).ok().map(Tag);
        if let Some(fresh) = fresh.filter(|tag| layout.entry(*tag).is_some()) {
            self.fresh = self.fresh.saturating_add(1);
            return Ok(fresh);
        }
        self.returned.pop_front().ok_or(AcpError::DirectoryFull { rank: me, limit: layout.entries() })
    }

    pub(crate) fn give_back(&mut self, tag: Tag) {
        self.returned.push_back(tag);
    }

    pub(crate) fn insert(&mut self, tag: Tag, region: OwnRegion) {
        let at = usize::from(tag.0);
        if self.regions.len() <= at {
            self.regions.resize_with(at.saturating_add(1), || None);
        }
        self.regions[at] = Some(region);
    }

    pub(crate) fn get(&self, tag: Tag) -> Option<&OwnRegion> {
        self.regions.get(usize::from(tag.0))?.as_ref()
    }

    pub(crate) fn remove(&mut self, tag: Tag) -> Option<OwnRegion> {
        let region = self.regions.get_mut(usize::from(tag.0))?.take()?;
        self.returned.push_back(tag);
        Some(region)
    }
}

/// Publishes a region to peers.
pub(crate) fn publish(fabric: &Fabric, world: &Region, at: u64, entry: Entry) -> Result<()> {
    word(fabric, world, at.saturating_add(KEY)).and_then(|key| fabric.store(&key, entry.key.to_bits()))?;
    word(fabric, world, at.saturating_add(LENGTH))
        .and_then(|length| fabric.store(&length, entry.bytes.saturating_add(1)))?;
    Ok(())
}

/// Withdraws a region from peers.
pub(crate) fn withdraw(fabric: &Fabric, world: &Region, at: u64) -> Result<()> {
    Ok(word(fabric, world, at.saturating_add(LENGTH)).and_then(|length| fabric.store(&length, 0))?)
}

fn word(fabric: &Fabric, world: &Region, offset: u64) -> Result<LocalWord<u64>, FabricError> {
    world.word(fabric, offset as usize)
}
