//! Translating addresses to memory within one task.

use super::{Cache, RegionId};
use crate::{
    AcpError, GlobalAddress, Result,
    starter::{Entry, KEY, LENGTH, Layout},
};
use rdma_fabric::{AtomicWord, Fabric, FabricError, Part, Rank, RegionKey, RemoteAddr, RemoteSpan, RemoteWord};
use std::sync::Arc;

/// Resolves addresses, and caches the resolved regions. Each task that works for a rank has its own
/// resolver.
#[derive(Clone, Debug)]
pub(crate) struct Resolver {
    fabric: Fabric,
    layout: Layout,
    /// The symmetric allocation that contains the reserved regions and the directory.
    world: RegionKey,
    /// The fabric's rank of each rank; `None` as long as they are the same.
    places: Option<Arc<[Rank]>>,
    cache: Cache,
}

impl Resolver {
    pub(crate) fn new(fabric: &Fabric, layout: Layout, world: RegionKey, places: Option<Arc<[Rank]>>) -> Self {
        Resolver { fabric: fabric.clone(), layout, world, places, cache: Cache::default() }
    }

    /// Returns another resolver with an empty cache.
    pub(crate) fn fresh(&self, fabric: &Fabric) -> Self {
        Resolver::new(fabric, self.layout, self.world, self.places.clone())
    }

    pub(crate) fn layout(&self) -> &Layout {
        &self.layout
    }

    pub(crate) fn fabric(&self) -> &Fabric {
        &self.fabric
    }

    /// Returns the fabric's rank of a rank.
    pub(crate) fn place_of(&self, rank: Rank) -> Result<Rank> {
        let ranks = self.fabric.ranks();
        match &self.places {
            _ if rank.index() >= ranks => Err(AcpError::NoSuchRank { rank, ranks }),
            Some(places) => Ok(places[rank.index()]),
            None => Ok(rank),
        }
    }

    /// Returns the address of the byte at `offset` of a rank's part of the symmetric allocation.
    pub(crate) fn world_at(&self, rank: Rank, offset: u64) -> Result<RemoteAddr> {
        Ok(RemoteAddr { rank: self.place_of(rank)?, region: self.world, offset })
    }

    /// Resolves the region of an address from the cache; returns false if its owner's directory has
    /// to be read first.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`]; [`AcpError::NoSuchRegion`]; errors of resolving.
    pub(crate) fn resolve(&mut self, address: GlobalAddress) -> Result<bool> {
        let id = address.id();
        if self.cache.span(id).is_some() {
            return Ok(true);
        }
        let known = self.cache.entry(id);
        let (at, bytes) = if let Some((start, bytes)) = self.layout.area(address.tag()) {
            (self.world_at(address.rank(), start)?, bytes)
        } else if let Some(Entry { key, bytes }) = known {
            (RemoteAddr { rank: self.place_of(address.rank())?, region: key, offset: 0 }, bytes)
        } else if self.layout.entry(address.tag()).is_some() {
            return Ok(false);
        } else {
            return Err(AcpError::NoSuchRegion { address });
        };
        match self.fabric.remote_span(at, bytes as usize) {
            Ok(span) => {
                self.cache.keep_span(id, span);
                Ok(true)
            }
            // The entry read from the directory is out of date.
            Err(FabricError::StaleRegion { .. } | FabricError::NoSuchRegion { .. }) if known.is_some() => {
                self.cache.forget(id);
                Ok(false)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns the addresses of the length and the key in the directory entry of an address's
    /// region.
    pub(crate) fn entry_of(&self, address: GlobalAddress) -> Result<[RemoteAddr; 2]> {
        let at = self.layout.entry(address.tag()).ok_or(AcpError::NoSuchRegion { address })?;
        Ok([self.world_at(address.rank(), at + LENGTH)?, self.world_at(address.rank(), at + KEY)?])
    }

    pub(crate) fn keep_entry(&mut self, id: RegionId, entry: Entry) {
        self.cache.keep_entry(id, entry);
    }

    /// Removes a region after an operation has found that it no longer exists.
    pub(crate) fn forget(&mut self, id: RegionId) {
        self.cache.forget(id);
    }

    /// Renumbers a lost rank: errors of the fabric contain the fabric's numbers.
    #[cold]
    pub(crate) fn named(&self, error: AcpError) -> AcpError {
        let (Some(places), AcpError::Fabric(FabricError::PeerLost { rank })) = (&self.places, &error) else {
            return error;
        };
        let number = places.iter().position(|place| place == rank);
        number.map_or(error, |number| FabricError::PeerLost { rank: Rank::new(number as u32) }.into())
    }

    /// Explains the error of an operation: if a region did not exist, removes it from the cache,
    /// and returns an error with the region, or with the loss of its rank.
    #[cold]
    pub(crate) fn explained(&mut self, error: AcpError) -> AcpError {
        let AcpError::Fabric(FabricError::StaleRegion { rank, region }) = error else { return self.named(error) };
        let mut explained = error;
        while let Some(id) = self.cache.region_of(rank, region) {
            self.cache.forget(id);
            let address = id.start();
            explained = match self.resolve(address) {
                Err(error @ AcpError::Fabric(FabricError::PeerLost { .. })) => self.named(error),
                _ => AcpError::NoSuchRegion { address },
            };
        }
        explained
    }

    /// Returns the region of an address, if it is resolved, and the offset in it.
    #[inline(always)]
    pub(crate) fn mapped(&self, address: GlobalAddress) -> Option<(&RemoteSpan<u8>, usize)> {
        Some((self.cache.span(address.id())?, address.offset() as usize))
    }

    /// Returns the `bytes` bytes at an address whose region is resolved.
    pub(crate) fn bytes_at(&self, address: GlobalAddress, bytes: usize) -> Result<Part<'_, RemoteSpan<u8>>> {
        let whole = self.cache.span(address.id()).ok_or(AcpError::NoSuchRegion { address })?;
        whole.part_as(address.offset() as usize, bytes).map_err(|_| outside(address, bytes as u64, whole))
    }

    /// Returns the word at an address whose region is resolved.
    pub(crate) fn word_at<W: AtomicWord>(&self, address: GlobalAddress) -> Result<Part<'_, RemoteWord<W>>> {
        let whole = self.cache.span(address.id()).ok_or(AcpError::NoSuchRegion { address })?;
        whole.word_at(address.offset() as usize).map_err(|error| match error {
            FabricError::Misaligned(_) => AcpError::Misaligned { address, align: W::BYTES as u8 },
            _ => outside(address, W::BYTES as u64, whole),
        })
    }
}

#[cold]
fn outside(address: GlobalAddress, bytes: u64, whole: &RemoteSpan<u8>) -> AcpError {
    AcpError::out_of_bounds(address, bytes, whole.len() as u64)
}
