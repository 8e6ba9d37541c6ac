//! Storage of regions: its accounting, and the table of one rank's own regions.

use super::SYMMETRIC;
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
        self.unchecked = self.unchecked.saturating_add(words.saturating_mul(8));
        if self.unchecked >= STEP {
            self.unchecked = 0;
            NoStorage::unless_there_is(words);
        }
        self.now += words * 8;
        self.peak = self.peak.max(self.now);
        vec![0; words].into_boxed_slice()
    }

    pub(super) fn drop(&mut self, words: &mut Box<[u64]>) {
        self.now -= words.len() * 8;
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
    /// Empty until first written.
    words: Box<[u64]>,
    /// The memory of another process that the region is, instead of `words`.
    program: Option<Box<dyn ProgramMemory>>,
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
    pub(super) fn deregister(&mut self, index: u32, stored: &mut Stored) -> usize {
        let Some(region) = self.regions.get_mut(index as usize).filter(|region| region.live) else { return 0 };
        region.live = false;
        region.program = None;
        stored.drop(&mut region.words);
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

    #[inline]
    pub(super) fn words(&self, index: u32) -> &[u64] {
        &self.regions[index as usize].words
    }

    #[inline]
    pub(super) fn words_mut(&mut self, index: u32, stored: &mut Stored) -> &mut [u64] {
        let region = &mut self.regions[index as usize];
        if region.words.is_empty() {
            region.words = stored.zeroed(region.bytes.div_ceil(8));
        }
        &mut region.words
    }
}
