//! One rank's own regions.

use super::{Gone, SYMMETRIC, Stored};
use rdma_fabric::RegionKey;

#[derive(Debug, Default)]
pub(super) struct LocalTable {
    places: Vec<Place>,
    /// Indices of places that are free.
    free: Vec<u32>,
}

#[derive(Debug)]
struct Place {
    /// Moves when the region is deregistered.
    generation: u32,
    live: bool,
    bytes: usize,
    /// Empty until first written.
    words: Box<[u64]>,
}

impl LocalTable {
    pub(super) fn register(&mut self, bytes: usize) -> Option<RegionKey> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.places.len()).ok().filter(|&i| i < SYMMETRIC)?;
                self.places.push(Place { generation: 0, live: false, bytes: 0, words: Box::default() });
                index
            }
        };
        let place = &mut self.places[index as usize];
        (place.live, place.bytes) = (true, bytes);
        Some(RegionKey { index, generation: place.generation })
    }

    /// Deregisters what is at `index`, and says how many bytes that was.
    pub(super) fn deregister(&mut self, index: u32, stored: &mut Stored) -> usize {
        let Some(place) = self.places.get_mut(index as usize).filter(|place| place.live) else { return 0 };
        place.live = false;
        stored.drop(&mut place.words);
        // A place whose generations are used up is never used again.
        if let Some(next) = place.generation.checked_add(1) {
            place.generation = next;
            self.free.push(index);
        }
        place.bytes
    }

    #[inline]
    pub(super) fn len_of(&self, key: RegionKey) -> Result<usize, Gone> {
        match self.places.get(key.index as usize) {
            Some(place) if place.generation == key.generation && place.live => Ok(place.bytes),
            Some(place) if key.generation < place.generation || !place.live && key.generation == u32::MAX => {
                Err(Gone::Stale)
            }
            _ => Err(Gone::Never),
        }
    }

    #[inline]
    pub(super) fn words(&self, index: u32) -> &[u64] {
        &self.places[index as usize].words
    }

    #[inline]
    pub(super) fn words_mut(&mut self, index: u32, stored: &mut Stored) -> &mut [u64] {
        let place = &mut self.places[index as usize];
        if place.words.is_empty() {
            place.words = stored.zeroed(place.bytes.div_ceil(8));
        }
        &mut place.words
    }
}
