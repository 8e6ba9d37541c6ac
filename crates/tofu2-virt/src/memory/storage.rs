//! Storage of regions: its accounting, and the table of one rank's own regions.

use super::{
    SYMMETRIC,
    loan::{Away, Words},
    pages::{Pages, Store},
    part::Part,
};
use crate::{JobError, program::ProgramMemory};
use rdma_fabric::RegionKey;
use std::panic::resume_unwind;
use tofu2_job::available::{self, Left, STEP};

/// The size of the storage in bytes, now and at its peak.
#[derive(Debug, Default)]
pub(super) struct Stored {
    pub(super) now: usize,
    pub(super) peak: usize,
    /// Bytes taken since the last comparison with the memory available on this machine.
    unchecked: usize,
}

impl Stored {
    pub(super) fn zeroed(&mut self, words: usize) -> Box<[u64]> {
        self.check(words);
        self.add(words);
        vec![0; words].into_boxed_slice()
    }

    /// Ends the run if `words` words more are too many.
    pub(super) fn check(&mut self, words: usize) {
        self.unchecked = self.unchecked.saturating_add(words.saturating_mul(8));
        if self.unchecked >= STEP {
            self.unchecked = 0;
            NoStorage::unless_there_is(words);
        }
    }

    pub(super) fn add(&mut self, words: usize) {
        self.now += words * 8;
        self.peak = self.peak.max(self.now);
    }

    pub(super) fn subtract(&mut self, words: usize) {
        self.now -= words * 8;
    }

    pub(super) fn drop(&mut self, words: &mut Box<[u64]>) {
        self.subtract(words.len());
        *words = Box::default();
    }
}

/// The panic payload that unwinds out of the simulator when this machine has no memory left for a
/// region that is written.
#[derive(Debug)]
pub(crate) struct NoStorage {
    bytes: u64,
    left: Left,
}

impl NoStorage {
    /// Ends the run unless there is memory for `words` words.
    #[cold]
    fn unless_there_is(words: usize) {
        let bytes = (words as u64).saturating_mul(8);
        // The allocator may refuse an amount that the system would provide. Neither check takes any
        // pages.
        let left = available::private_memory();
        if bytes <= left.amount && Vec::<u64>::new().try_reserve_exact(words).is_ok() {
            return;
        }
        // Without a message: the job's error contains it.
        resume_unwind(Box::new(NoStorage { bytes, left }));
    }

    pub(crate) fn into_error(self) -> JobError {
        let NoStorage { bytes: needed, left: Left { amount: available, limit } } = self;
        JobError::TooLittleMemory { what: "a simulated region that is written".to_owned(), needed, available, limit }
    }
}

/// The reason why a region can't be used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Gone {
    /// Deregistered.
    Stale,
    /// Never registered.
    Never,
}

/// One rank's own regions.
#[derive(Debug, Default)]
pub(super) struct LocalTable {
    regions: Vec<LocalRegion>,
    /// Indices of free entries.
    free: Vec<u32>,
}

#[derive(Debug, Default)]
struct LocalRegion {
    /// Incremented when the region is deregistered.
    generation: u32,
    live: bool,
    bytes: usize,
    words: Part,
    /// The memory that the region is instead of `words`: that of another process, or a loan.
    program: Option<Box<dyn ProgramMemory>>,
    /// The number of words that are lent to be written.
    away: usize,
}

impl LocalTable {
    pub(super) fn register(&mut self, bytes: usize) -> Option<RegionKey> {
        let index = match self.free.pop() {
            Some(index) => index,
            None => {
                let index = u32::try_from(self.regions.len()).ok().filter(|&i| i < SYMMETRIC)?;
                self.regions.push(LocalRegion::default());
                index
            }
        };
        let region = &mut self.regions[index as usize];
        (region.live, region.bytes) = (true, bytes);
        Some(RegionKey { index, generation: region.generation })
    }

    /// Deregisters the region at `index`. Returns the number of bytes freed.
    pub(super) fn deregister(&mut self, index: u32, store: &mut Store, stored: &mut Stored) -> usize {
        let Some(region) = self.regions.get_mut(index as usize).filter(|region| region.live) else { return 0 };
        region.live = false;
        region.program = None;
        stored.subtract(core::mem::take(&mut region.away));
        region.words.clear(region.sizes(), store, stored);
        // An entry whose generations are exhausted is never reused.
        if let Some(next) = region.generation.checked_add(1) {
            region.generation = next;
            self.free.push(index);
        }
        region.bytes
    }

    #[inline]
    pub(super) fn len_of(&self, key: RegionKey) -> Result<usize, Gone> {
        match self.regions.get(key.index as usize) {
            Some(region) if region.generation == key.generation && region.live => Ok(region.bytes),
            Some(region) if key.generation < region.generation || !region.live && key.generation == u32::MAX => {
                Err(Gone::Stale)
            }
            _ => Err(Gone::Never),
        }
    }

    /// Lets a live region be memory of another process.
    pub(super) fn set_program(&mut self, key: RegionKey, memory: Box<dyn ProgramMemory>) {
        self.regions[key.index as usize].program = Some(memory);
    }

    #[inline]
    pub(super) fn program(&self, index: u32) -> Option<&dyn ProgramMemory> {
        self.regions[index as usize].program.as_deref()
    }

    /// As [`Memory::lend`](super::Memory::lend), for a place of `len` bytes.
    pub(super) fn lend(
        &mut self,
        store: &mut Store,
        index: u32,
        len: usize,
        writes: bool,
        stored: &mut Stored,
    ) -> Option<Words> {
        let region = self.regions.get_mut(index as usize).filter(|region| region.program.is_none())?;
        let sizes = region.sizes();
        if !writes {
            return region.words.share(sizes, store, len, stored);
        }
        let words = region.words.take(sizes, store, stored);
        region.away = words.len();
        region.program = Some(Box::new(Away));
        Some(words)
    }

    /// As [`Memory::give_back`](super::Memory::give_back).
    pub(super) fn give_back(&mut self, index: u32, words: Words) {
        let region = &mut self.regions[index as usize];
        if region.away == words.len() && region.away > 0 {
            (region.program, region.away) = (None, 0);
            region.words.put_back(words);
        }
    }

    /// Returns whether nothing of a region is stored.
    pub(super) fn is_blank(&self, index: u32) -> bool {
        self.regions[index as usize].words.is_blank()
    }

    /// Returns a word of a region, if it is stored.
    #[inline]
    pub(super) fn word<'a>(&'a self, store: &'a Store, index: u32, at: usize) -> Option<&'a u64> {
        let region = &self.regions[index as usize];
        region.words.word(region.sizes(), store, at)
    }

    /// As [`Symmetric::run`](super::symmetric::Symmetric::run).
    #[inline]
    pub(super) fn run<'a>(
        &'a self,
        store: &'a Store,
        index: u32,
        offset: usize,
        len: usize,
    ) -> (Option<&'a [u8]>, usize) {
        let region = &self.regions[index as usize];
        region.words.run(region.sizes(), store, offset, len)
    }

    /// As [`Symmetric::run_mut`](super::symmetric::Symmetric::run_mut).
    #[inline]
    pub(super) fn run_mut<'a>(
        &'a mut self,
        store: &'a mut Store,
        index: u32,
        offset: usize,
        len: usize,
        stored: &mut Stored,
    ) -> &'a mut [u8] {
        let region = &mut self.regions[index as usize];
        let sizes = region.sizes();
        region.words.run_mut(sizes, store, offset, len, stored)
    }
}

impl LocalRegion {
    #[inline]
    fn sizes(&self) -> Pages {
        Pages::smallest(self.bytes.div_ceil(8))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_of_a_long_region_takes_a_page() {
        let (mut table, mut store, mut stored) = (LocalTable::default(), Store::default(), Stored::default());
        for at in [100, 101] {
            let index = table.register(1600).unwrap().index;
            assert_eq!((stored.now, table.word(&store, index, at)), (0, None));
            table.run_mut(&mut store, index, 8 * at, 8, &mut stored).fill(1);
            assert_eq!(stored.now, 64);
            // Nothing of the region before it is left in the page.
            let words = (96..104).map(|word| table.word(&store, index, word).copied());
            let written = |word: usize| if word == at { 0x0101_0101_0101_0101 } else { 0 };
            assert!(words.eq((96..104).map(|word| Some(written(word)))));
            table.deregister(index, &mut store, &mut stored);
            assert_eq!(stored.now, 0);
        }
    }

    #[test]
    fn words_that_are_lent_count_as_stored() {
        let (mut table, mut store, mut stored) = (LocalTable::default(), Store::default(), Stored::default());
        let index = table.register(1600).unwrap().index;
        let words = table.lend(&mut store, index, 1600, true, &mut stored).unwrap();
        assert_eq!((stored.now, words.len()), (1600, 200));
        // There is one copy, and only that is taken back.
        assert_eq!(table.lend(&mut store, index, 1600, true, &mut stored), None);
        table.give_back(index, Words::default());
        assert!(table.program(index).is_some());
        table.give_back(index, words);
        assert!(table.program(index).is_none());
        table.give_back(index, std::sync::Arc::new(vec![1; 200].into_boxed_slice()));
        assert_eq!((stored.now, table.word(&store, index, 0)), (1600, Some(&0)));
        let _forgotten = table.lend(&mut store, index, 1600, true, &mut stored);
        table.deregister(index, &mut store, &mut stored);
        assert_eq!(stored.now, 0);
    }
}
