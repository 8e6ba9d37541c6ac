//! What one rank knows: who it is, what it has registered and resolved, what it has under way.

use crate::{
    AcpError, GlobalAddress, Result,
    address::Tag,
    directory::{Cache, OwnRegions, RegionId},
    engine::Engine,
    starter::{Entry, Layout},
};
use rdma_fabric::{AtomicWord, Fabric, FabricError, Part, Rank, Region, RemoteAddr, RemoteSpan, RemoteWord};

pub(crate) struct State {
    pub(crate) layout: Layout,
    /// The symmetric allocation behind the reserved regions and the directory.
    pub(crate) world: Region,
    /// This rank's number.
    pub(crate) me: Rank,
    /// The fabric's rank of each rank; `None` as long as they are the same.
    pub(crate) places: Option<Box<[Rank]>>,
    pub(crate) own: OwnRegions,
    pub(crate) cache: Cache,
    pub(crate) engine: Engine,
}

impl State {
    pub(crate) fn new(layout: Layout, world: Region, me: Rank, places: Option<Box<[Rank]>>) -> Self {
        let (own, cache, engine) = (OwnRegions::new(), Cache::default(), Engine::default());
        State { layout, world, me, places, own, cache, engine }
    }

    /// Returns the fabric's rank of a rank.
    pub(crate) fn place_of(&self, fabric: &Fabric, rank: Rank) -> Result<Rank> {
        let ranks = fabric.ranks();
        match &self.places {
            _ if rank.index() >= ranks => Err(AcpError::NoSuchRank { rank, ranks }),
            Some(places) => Ok(places[rank.index()]),
            None => Ok(rank),
        }
    }

    /// Resolves the region of an address, as far as this rank knows it; returns whether it does. If
    /// not, its owner's directory must be read.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`]; [`AcpError::NoSuchRegion`]; what resolving meets.
    pub(crate) fn resolve(&mut self, fabric: &Fabric, address: GlobalAddress) -> Result<bool> {
        let id = address.id();
        if self.cache.span(id).is_some() {
            return Ok(true);
        }
        let rank = self.place_of(fabric, address.rank())?;
        let (at, bytes) = if let Some((start, bytes)) = self.layout.area(address.tag()) {
            (self.world.at(rank, start), bytes)
        } else if address.rank() == self.me {
            let own = self.own.get(address.tag()).ok_or(AcpError::NoSuchRegion { address })?;
            (own.region.at(rank, 0), own.region.len() as u64)
        } else if let Some(Entry { key, bytes }) = self.cache.entry(id) {
            (RemoteAddr { rank, region: key, offset: 0 }, bytes)
        } else if self.layout.entry(address.tag()).is_some() {
            return Ok(false);
        } else {
            return Err(AcpError::NoSuchRegion { address });
        };
        match fabric.remote_span(at, bytes as usize) {
            Ok(span) => self.cache.keep_span(id, span),
            // What the directory said is out of date.
            Err(FabricError::StaleRegion { .. } | FabricError::NoSuchRegion { .. })
                if self.cache.entry(id).is_some() =>
            {
                self.cache.forget(id);
                return Ok(false);
            }
            Err(FabricError::StaleRegion { .. }) => return Err(AcpError::NoSuchRegion { address }),
            Err(error) => return Err(error.into()),
        }
        Ok(true)
    }

    /// Returns the `bytes` bytes at an address whose region is resolved.
    #[inline(always)]
    pub(crate) fn bytes_at(&self, address: GlobalAddress, bytes: usize) -> Result<Part<'_, RemoteSpan<u8>>> {
        let whole = self.cache.span(address.id()).ok_or(AcpError::NoSuchRegion { address })?;
        let offset = address.offset() as usize;
        whole.part_as(offset, bytes).map_err(|_| outside(address, bytes as u64, whole))
    }

    /// Returns the word at an address whose region is resolved.
    #[inline(always)]
    pub(crate) fn word_at<W: AtomicWord>(&self, address: GlobalAddress) -> Result<Part<'_, RemoteWord<W>>> {
        let whole = self.cache.span(address.id()).ok_or(AcpError::NoSuchRegion { address })?;
        whole.word_at(address.offset() as usize).map_err(|error| match error {
            FabricError::Misaligned(_) => AcpError::Misaligned { address, align: W::BYTES as u8 },
            _ => outside(address, W::BYTES as u64, whole),
        })
    }

    /// Forgets a region that an operation found to be gone.
    pub(crate) fn forget(&mut self, id: RegionId) {
        self.cache.forget(id);
    }

    /// Returns where the directory entry of a region is, in its owner's part of the allocation.
    pub(crate) fn entry_of(&self, tag: Tag) -> Option<u64> {
        self.layout.entry(tag)
    }
}

#[cold]
fn outside(address: GlobalAddress, bytes: u64, whole: &RemoteSpan<u8>) -> AcpError {
    AcpError::out_of_bounds(address, bytes, whole.len() as u64)
}
