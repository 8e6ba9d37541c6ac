//! The ranks' registered memory.

use rdma_fabric::{FabricError, Location, Rank, RegionKey, RemoteAddr, Result};
use std::collections::BTreeMap;

/// Regions are aligned to this.
const ALIGN: usize = 64;
/// Bytes that a rank may register.
const SEGMENT: usize = 64 << 20;
/// Keys are never used again, so there is one generation.
const GENERATION: u32 = 1;

/// Some bytes of one region.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    pub(crate) addr: RemoteAddr,
    pub(crate) len: usize,
}

impl Location for Place {
    fn rank(&self) -> Rank {
        self.addr.rank
    }

    fn addr(&self) -> RemoteAddr {
        self.addr
    }

    fn len(&self) -> usize {
        self.len
    }

    fn part(&self, offset: usize, len: usize) -> Option<Self> {
        let inside = offset.checked_add(len).is_some_and(|end| end <= self.len);
        inside.then(|| Place { addr: RemoteAddr { offset: self.addr.offset + offset as u64, ..self.addr }, len })
    }
}

/// By rank and index: symmetric regions have even ones. `None` once a region is gone.
pub(crate) struct Memory {
    regions: Vec<BTreeMap<u32, Option<Vec<u8>>>>,
    local: Vec<u32>,
    symmetric: Vec<u32>,
    /// Who made a symmetric region, and its length.
    sizes: Vec<(Rank, usize)>,
}

impl Memory {
    pub(crate) fn new(ranks: usize) -> Self {
        let (regions, zero) = ((0..ranks).map(|_| BTreeMap::new()).collect(), vec![0; ranks]);
        Memory { regions, local: zero.clone(), symmetric: zero, sizes: Vec::new() }
    }

    fn enough(rank: Rank, bytes: usize) -> Result<()> {
        let full = FabricError::OutOfMemory { rank, requested: bytes, available: SEGMENT, segment: SEGMENT };
        if bytes <= SEGMENT { Ok(()) } else { Err(full) }
    }

    pub(crate) fn alloc(&mut self, rank: Rank, bytes: usize) -> Result<RegionKey> {
        Self::enough(rank, bytes)?;
        let number = &mut self.local[rank.index()];
        let index = 2 * *number + 1;
        *number += 1;
        self.regions[rank.index()].insert(index, Some(vec![0; bytes]));
        Ok(RegionKey { index, generation: GENERATION })
    }

    /// The rank's part of its next symmetric region; the first to come makes all parts.
    pub(crate) fn alloc_symmetric(&mut self, rank: Rank, bytes: usize) -> Result<RegionKey> {
        Self::enough(rank, bytes)?;
        let number = self.symmetric[rank.index()] as usize;
        self.symmetric[rank.index()] += 1;
        let index = 2 * number as u32;
        if number == self.sizes.len() {
            self.sizes.push((rank, bytes));
            self.regions.iter_mut().for_each(|regions| drop(regions.insert(index, Some(vec![0; bytes]))));
        }
        let (other, ours) = self.sizes[number];
        if ours != bytes {
            let collective = "alloc_symmetric";
            return Err(FabricError::Mismatch { collective, rank, theirs: bytes as u64, other, ours: ours as u64 });
        }
        Ok(RegionKey { index, generation: GENERATION })
    }

    pub(crate) fn free(&mut self, rank: Rank, key: RegionKey) {
        self.regions[rank.index()].insert(key.index, None);
    }

    fn region(&self, rank: Rank, region: RegionKey) -> Result<&Vec<u8>> {
        match self.regions[rank.index()].get(&region.index) {
            Some(Some(bytes)) if region.generation == GENERATION => Ok(bytes),
            Some(None) if region.generation == GENERATION => Err(FabricError::StaleRegion { rank, region }),
            _ => Err(FabricError::NoSuchRegion { rank, region }),
        }
    }

    pub(crate) fn live(&self, rank: Rank, region: RegionKey) -> Result<()> {
        self.region(rank, region).map(drop)
    }

    pub(crate) fn locate(&self, addr: RemoteAddr, len: usize, align: usize) -> Result<Place> {
        let RemoteAddr { rank, region, offset } = addr;
        let region_len = self.region(rank, region)?.len() as u64;
        if offset.checked_add(len as u64).is_none_or(|end| end > region_len) {
            return Err(FabricError::OutOfBounds { rank, region, offset, len: len as u64, region_len });
        }
        if align > ALIGN || !offset.is_multiple_of(align as u64) {
            return Err(FabricError::Misaligned { rank, region, offset, align });
        }
        Ok(Place { addr, len })
    }

    /// The bytes of a place that was checked.
    pub(crate) fn bytes(&self, place: &Place) -> &[u8] {
        let at = place.addr.offset as usize;
        self.region(place.addr.rank, place.addr.region).map_or(&[], |bytes| &bytes[at..at + place.len])
    }

    /// As [`Memory::bytes`].
    pub(crate) fn bytes_mut(&mut self, place: &Place) -> &mut [u8] {
        let at = place.addr.offset as usize;
        match self.regions[place.addr.rank.index()].get_mut(&place.addr.region.index) {
            Some(Some(bytes)) => &mut bytes[at..at + place.len],
            _ => &mut [],
        }
    }

    /// The bits of a word of 4 or 8 bytes that was checked, zero-extended.
    pub(crate) fn word(&self, place: &Place) -> u64 {
        match *self.bytes(place) {
            [a, b, c, d] => u32::from_ne_bytes([a, b, c, d]).into(),
            ref bytes => bytes.try_into().map_or(0, u64::from_ne_bytes),
        }
    }

    pub(crate) fn set_word(&mut self, place: &Place, bits: u64) {
        let (short, long) = ((bits as u32).to_ne_bytes(), bits.to_ne_bytes());
        let bytes: &[u8] = if place.len == 4 { &short } else { &long };
        self.bytes_mut(place).copy_from_slice(bytes);
    }
}
