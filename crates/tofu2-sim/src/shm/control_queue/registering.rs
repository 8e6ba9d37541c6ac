//! Registering memory on an own queue: who has which tag, and the end of it.

use super::{
    own::Named,
    queue::Queue,
    tags::{self, Tagged},
};
use crate::control_queue::stadd;
use crate::shm::{
    inside::{self, Id},
    own::Registration,
    regions,
};
use rdma_fabric::{
    FabricError, Region, Result,
    control_queue::{QueueError, Stadd},
};

impl Queue {
    /// The key of a region that queues can reach.
    fn key_of(&self, region: &Region) -> Result<rdma_fabric::RegionKey> {
        let elsewhere = FabricError::Unsupported { feature: &"control queues on memory that was not allocated here" };
        let owner = region.kept::<Registration>().ok_or(elsewhere.clone())?.endpoint();
        if region.existing().is_some() || owner.me() != self.name().rank() {
            return Err(elsewhere);
        }
        let key = region.key();
        if owner.keyring().is_some() {
            return Err(FabricError::Locked { rank: owner.me(), region: key });
        }
        if !regions::is_current(self.endpoint().segment(), key) {
            return Err(FabricError::StaleRegion { rank: self.name().rank(), region: key });
        }
        Ok(key)
    }

    /// Register a region under an automatic tag.
    pub(super) fn name_somehow(&self, region: &Region) -> Result<Stadd> {
        let (key, queue) = (self.key_of(region)?, self.view()?);
        let mut known = self.table()?.known();
        if let Some(&at) = known.automatic.get(&key.to_bits()) {
            return Ok(at);
        }
        let places = stadd::FIXED as usize..stadd::PLACES;
        let free = places.into_iter().find(|place| !known.tags.contains_key(place));
        let place = free.ok_or(QueueError::TooManyTags { queue: self.name(), limit: stadd::AUTOMATIC })?;
        let tag = stadd::automatic(place, self.endpoint().own_queues().next_use());
        let at = Stadd::new(tag, 0);
        known.automatic.insert(key.to_bits(), at);
        known.tags.insert(place, Named { tag, key });
        tags::write(&queue, tag, Tagged { key, read_only: false });
        Ok(at)
    }

    /// Register a region under this tag.
    pub(super) fn name_as(&self, region: &Region, tag: u8) -> Result<Stadd> {
        let (key, queue) = (self.key_of(region)?, self.view()?);
        let mut known = self.table()?.known();
        let named = Named { tag: tag.into(), key };
        match known.tags.entry(tag.into()) {
            std::collections::btree_map::Entry::Occupied(_) => {
                return Err(QueueError::TagInUse { queue: self.name(), tag }.into());
            }
            std::collections::btree_map::Entry::Vacant(free) => free.insert(named),
        };
        tags::write(&queue, tag.into(), Tagged { key, read_only: false });
        Ok(Stadd::fixed(tag))
    }

    /// Let peers read only what has a tag, or write it too.
    pub(super) fn restrict(&self, at: Stadd, read_only: bool) -> Result<()> {
        let queue = self.view()?;
        let known = self.table()?.known();
        let place = stadd::place(at.tag());
        let named = place.and_then(|place| known.tags.get(&place)).filter(|named| named.tag == at.tag());
        let named = named.ok_or(QueueError::NoSuchTag { queue: self.name(), stadd: at })?;
        tags::write(&queue, named.tag, Tagged { key: named.key, read_only });
        Ok(())
    }

    /// End a registration, and wait for long copies.
    pub(super) fn forget(&self, at: Stadd) -> Result<()> {
        let queue = self.view()?;
        let mut known = self.table()?.known();
        let none = QueueError::NoSuchTag { queue: self.name(), stadd: at };
        let place = stadd::place(at.tag()).ok_or(none)?;
        let named = *known.tags.get(&place).filter(|named| named.tag == at.tag()).ok_or(none)?;
        known.tags.remove(&place);
        if known.automatic.get(&named.key.to_bits()).is_some_and(|at| at.tag() == named.tag) {
            known.automatic.remove(&named.key.to_bits());
        }
        tags::clear(&queue, named.tag);
        drop(known);
        // As when a region is deregistered: D2 and D3.
        inside::barrier();
        while self.endpoint().job().is_inside(Id::new(self.endpoint().me(), named.key)) {
            std::thread::yield_now();
        }
        Ok(())
    }
}
