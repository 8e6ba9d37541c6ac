//! All ranks' registered memory.
//!
//! Storage is created when it is first written; unwritten bytes read as zero. A symmetric region
//! stores the parts of consecutive ranks together in pieces of at most 64 KiB, so that a small
//! region on each of many ranks costs only its size, not an allocation per rank. A larger part is
//! stored by pages ([`pages`]). A region can also be memory of another process ([`program`]), which stores it,
//! or be lent to the program of its rank ([`loan`]).

mod access;
mod loan;
mod loc;
mod pages;
mod part;
mod program;
mod storage;
mod symmetric;

pub(super) use access::{SPARSE, is_zero};
pub(super) use loc::Loc;
pub(super) use storage::NoStorage;

use crate::program::ProgramMemory;
use pages::Store;
use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr, Result, error::Mismatch};
use std::collections::HashMap;
use storage::{Gone, LocalTable, Stored};
use symmetric::Symmetric;

/// Set in the index of a symmetric region's key.
const SYMMETRIC: u32 = 1 << 31;

#[derive(Debug)]
pub(super) struct Memory {
    ranks: u32,
    /// Indexed by the sequence number of the collective allocation; numbers are not reused.
    symmetric: Vec<Symmetric>,
    /// The terms of symmetric protected regions ([`rdma_fabric::AccessPolicy::terms`]), in the order
    /// of their numbers.
    locked: Vec<(u32, [u64; 3])>,
    /// Indexed by rank; grown when a rank first registers.
    local: Vec<Option<Box<LocalTable>>>,
    /// The pages of these regions.
    store: Store,
    /// The parts of symmetric regions that are memory of another process, by index and rank.
    programs: HashMap<(u32, u32), Box<dyn ProgramMemory>>,
    stored: Stored,
    /// The index and offset in a symmetric region at which a rank last wrote its own part.
    own: (u32, u64),
}

impl Memory {
    pub(super) fn new(ranks: u32) -> Self {
        Memory {
            ranks,
            symmetric: Vec::new(),
            locked: Vec::new(),
            local: Vec::new(),
            store: Store::default(),
            programs: HashMap::new(),
            stored: Stored::default(),
            own: (SYMMETRIC, 0),
        }
    }

    /// Joins `rank` to the `number`-th symmetric region, which has no key if `terms` are given.
    pub(super) fn join_symmetric(
        &mut self,
        rank: u32,
        number: u32,
        bytes: usize,
        terms: Option<[u64; 3]>,
    ) -> Result<RegionKey> {
        if number >= SYMMETRIC {
            return Err(FabricError::TooManyRegions { rank: Rank::new(rank), limit: SYMMETRIC as usize });
        }
        let mismatch = |collective, first, argument, other_argument| {
            Mismatch { collective, rank: Rank::new(rank), argument, other: Rank::new(first), other_argument }.into()
        };
        match self.symmetric.get(number as usize) {
            None => {
                self.symmetric.push(Symmetric::new(rank, bytes, self.ranks));
                self.locked.extend(terms.map(|terms| (number, terms)));
            }
            Some(there) if there.bytes() != bytes => {
                return Err(mismatch("alloc_symmetric", there.first(), bytes as u64, there.bytes() as u64));
            }
            Some(there) => {
                let (mine, ours) = (terms.unwrap_or_default(), self.terms_of(number).unwrap_or_default());
                if let Some((mine, ours)) = mine.into_iter().zip(ours).find(|(mine, ours)| mine != ours) {
                    return Err(mismatch("alloc_symmetric, locked,", there.first(), mine, ours));
                }
            }
        }
        Ok(RegionKey { index: SYMMETRIC | number, generation: 0 })
    }

    pub(super) fn register(&mut self, rank: u32, bytes: usize) -> Result<RegionKey> {
        let at = rank as usize;
        if self.local.len() <= at {
            self.local.resize_with(at + 1, || None);
        }
        self.local[at]
            .get_or_insert_default()
            .register(bytes)
            .ok_or(FabricError::TooManyRegions { rank: Rank::new(rank), limit: SYMMETRIC as usize })
    }

    /// Frees the rank's part of the region that is registered under a key of this index. Returns
    /// the number of bytes freed. The key is stale from now on.
    pub(super) fn deregister(&mut self, rank: u32, index: u32) -> usize {
        if index & SYMMETRIC != 0 {
            self.programs.remove(&(index, rank));
            let region = self.symmetric.get_mut((index & !SYMMETRIC) as usize);
            region.filter(|region| !region.has_left(rank)).map_or(0, |region| {
                region.leave(rank, &mut self.stored);
                region.bytes()
            })
        } else {
            let table = self.local.get_mut(rank as usize).and_then(Option::as_deref_mut);
            table.map_or(0, |table| table.deregister(index, &mut self.store, &mut self.stored))
        }
    }

    /// Returns the length of a live region in bytes.
    #[inline]
    fn len_of(&self, rank: u32, key: RegionKey) -> Result<usize, Gone> {
        if key.index & SYMMETRIC != 0 {
            let region = self.symmetric.get((key.index & !SYMMETRIC) as usize).ok_or(Gone::Never)?;
            if key.generation != 0 {
                return Err(Gone::Never);
            }
            if region.has_left(rank) { Err(Gone::Stale) } else { Ok(region.bytes()) }
        } else {
            self.local.get(rank as usize).and_then(|t| t.as_deref()).ok_or(Gone::Never)?.len_of(key)
        }
    }

    /// Returns whether the region of a resolved place is still registered.
    #[inline]
    pub(super) fn is_live(&self, loc: &Loc) -> bool {
        self.len_of(loc.rank, loc.key()).is_ok()
    }

    /// Returns whether the region has no key.
    #[inline]
    pub(super) fn is_locked(&self, key: RegionKey) -> bool {
        !self.locked.is_empty()
            && key.generation == 0
            && key.index & SYMMETRIC != 0
            && self.terms_of(key.index & !SYMMETRIC).is_some()
    }

    /// Returns the terms of the `number`-th symmetric region, if it is protected.
    fn terms_of(&self, number: u32) -> Option<[u64; 3]> {
        self.locked.binary_search_by_key(&number, |(number, _)| *number).ok().map(|at| self.locked[at].1)
    }

    /// Returns the length of a region in bytes.
    pub(super) fn region_len(&self, rank: Rank, region: RegionKey) -> Result<usize> {
        self.len_of(rank.number(), region).map_err(|gone| match gone {
            Gone::Stale => FabricError::StaleRegion { rank, region },
            Gone::Never => FabricError::NoSuchRegion { rank, region },
        })
    }

    /// Resolves an address: checks key, bounds and alignment.
    pub(super) fn locate(&self, addr: RemoteAddr, len: usize, align: usize) -> Result<Loc> {
        let RemoteAddr { rank, region, offset } = addr;
        let region_len = self.region_len(rank, region)? as u64;
        if offset.checked_add(len as u64).is_none_or(|end| end > region_len) {
            return Err(FabricError::out_of_bounds(addr, len as u64, region_len));
        }
        if align > 1 && offset % align as u64 != 0 {
            return Err(FabricError::misaligned(addr, align));
        }
        Ok(Loc::new(rank.number(), region, offset, len as u64))
    }

    /// Returns the peak size of the storage in bytes.
    pub(super) fn peak_bytes(&self) -> usize {
        self.stored.peak
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(rank: u32, region: RegionKey, offset: u64) -> RemoteAddr {
        RemoteAddr { rank: Rank::new(rank), region, offset }
    }

    #[test]
    fn symmetric_regions_cost_about_their_size() {
        let mut memory = Memory::new(10_000);
        let mut key = None;
        for rank in 0..10_000 {
            key = Some(memory.join_symmetric(rank, 0, 72, None).unwrap());
        }
        let key = key.unwrap();
        assert_eq!(memory.stored.now, 0);
        for rank in 0..10_000 {
            let loc = memory.locate(at(rank, key, 64), 8, 8).unwrap();
            assert_eq!(memory.load(&loc), 0);
            memory.store(&loc, u64::from(rank));
        }
        assert!(memory.stored.now <= 10_000 * 72 + 65_536, "{}", memory.stored.now);
        for rank in 0..10_000 {
            let loc = memory.locate(at(rank, key, 64), 8, 8).unwrap();
            assert_eq!(memory.load(&loc), u64::from(rank));
            assert_eq!(memory.deregister(rank, key.index), 72);
            assert!(!memory.is_live(&loc));
        }
        assert_eq!(memory.stored.now, 0);
    }

    #[test]
    fn regions_of_as_many_ranks_as_there_are_numbers() {
        let ranks = u32::MAX - 1;
        let mut memory = Memory::new(ranks);
        let key = memory.join_symmetric(0, 0, 8, None).unwrap();
        let loc = memory.locate(at(ranks - 1, key, 0), 8, 8).unwrap();
        memory.store(&loc, 7);
        // The ranks of the last piece.
        assert_eq!((memory.load(&loc), memory.stored.now), (7, 8 * 8190));
    }

    #[test]
    fn mismatch_names_both() {
        let mut memory = Memory::new(4);
        memory.join_symmetric(3, 0, 64, None).unwrap();
        let error = memory.join_symmetric(1, 0, 65, None).unwrap_err();
        assert_eq!(error.to_string(), "rank 1 called alloc_symmetric with 65, rank 3 with 64");
    }

    #[test]
    fn terms_must_agree() {
        let mut memory = Memory::new(4);
        let key = memory.join_symmetric(0, 0, 64, Some([1, 2, 3])).unwrap();
        assert_eq!(memory.join_symmetric(1, 0, 64, Some([1, 2, 3])), Ok(key));
        for terms in [None, Some([1, 2, 4])] {
            assert!(matches!(memory.join_symmetric(2, 0, 64, terms), Err(FabricError::Mismatch(_))), "{terms:?}");
        }
        let open = memory.join_symmetric(0, 1, 64, None).unwrap();
        assert!(matches!(memory.join_symmetric(2, 1, 64, Some([1, 2, 3])), Err(FabricError::Mismatch(_))));
        assert!(memory.is_locked(key) && !memory.is_locked(open));
    }

    #[test]
    fn local_regions_are_reused_under_a_new_generation() {
        let mut memory = Memory::new(2);
        let first = memory.register(1, 100).unwrap();
        let loc = memory.locate(at(1, first, 96), 4, 4).unwrap();
        memory.store(&loc, 7);
        assert_eq!(memory.load(&loc), 7);
        assert_eq!(memory.deregister(1, first.index), 100);
        let second = memory.register(1, 100).unwrap();
        assert_eq!((second.index, second.generation), (first.index, first.generation + 1));
        assert!(!memory.is_live(&loc));
        assert!(matches!(memory.locate(at(1, first, 0), 1, 1), Err(FabricError::StaleRegion { .. })));
        let loc = memory.locate(at(1, second, 96), 4, 4).unwrap();
        assert_eq!(memory.load(&loc), 0);
        assert!(matches!(memory.locate(at(0, second, 0), 1, 1), Err(FabricError::NoSuchRegion { .. })));
        assert!(matches!(memory.locate(at(1, second, 97), 4, 1), Err(FabricError::OutOfBounds(_))));
        assert!(matches!(memory.locate(at(1, second, u64::MAX), 4, 1), Err(FabricError::OutOfBounds(_))));
        assert!(matches!(memory.locate(at(1, second, 2), 4, 4), Err(FabricError::Misaligned(_))));
    }

    #[test]
    fn bytes_and_words_are_the_same_memory() {
        let mut memory = Memory::new(3);
        let key = memory.join_symmetric(0, 0, 40, None).unwrap();
        let span = memory.locate(at(2, key, 3), 18, 1).unwrap();
        memory.copy_in(&span, &[0xff; 18]);
        let word = memory.locate(at(2, key, 16), 8, 8).unwrap();
        assert_eq!(memory.load(&word).to_ne_bytes(), [255, 255, 255, 255, 255, 0, 0, 0]);
        let mut out = [1; 40];
        memory.copy_out(&memory.locate(at(2, key, 0), 40, 1).unwrap(), &mut out);
        assert_eq!((out[2], out[3], out[20], out[21]), (0, 255, 255, 0));
    }
}
