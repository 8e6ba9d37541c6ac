//! Allocating and freeing blocks, by the rank that holds the heap's lock word.
//!
//! Each call reads first, then checks, and then writes words that do not overlap. So a call whose
//! checks fail has changed nothing, and no flush is needed before the end.

use super::boundary_tag::{Block, GRAIN};
use crate::{Acp, AcpError, GlobalAddress, Result, container::mapped::Memory};
use core::{future::Future, mem::size_of};

/// The block that the free list begins and ends with. It has links only.
const LIST: u64 = 0;
/// Where a block's links are, from its start: next, previous.
const NEXT: u64 = 8;
const PREVIOUS: u64 = 16;
/// The fence before the first block.
const FENCE: Block = Block { start: 24, size: GRAIN, used: true };
const FIRST: u64 = 32;
/// Two marks, two links.
const SMALLEST: u64 = 32;
/// The size of a cache line.
const LINE: u64 = 64;
/// The size from which a block starts at a cache line.
const LARGE: u64 = 16 * LINE;
const MARKS: u64 = 2 * size_of::<u64>() as u64;

/// The heap of one rank.
#[derive(Clone, Copy, Debug)]
pub(in crate::container) struct Heap {
    base: GlobalAddress,
    /// The fence after the last block.
    end: Block,
}

impl Heap {
    pub(super) fn new(base: GlobalAddress, bytes: usize) -> Self {
        // The last whole grain.
        let end = (bytes as u64).saturating_sub(bytes as u64 % GRAIN).saturating_sub(GRAIN);
        Heap { base, end: Block::used(end, GRAIN) }
    }

    /// The lock's word is the first one.
    pub(in crate::container) fn lock_word(&self) -> GlobalAddress {
        self.base
    }

    /// Returns the size of a block for this number of bytes; `None` if no block of this heap can
    /// have it.
    pub(super) fn block_for(&self, bytes: usize) -> Option<u64> {
        let room = (self.end.start).checked_sub(FIRST)?;
        let size = (bytes as u64).checked_next_multiple_of(GRAIN)?.checked_add(MARKS)?.max(SMALLEST);
        (size <= room).then_some(size)
    }

    /// Returns whether the bytes of a used block may start there.
    pub(super) fn may_start_at(&self, address: GlobalAddress) -> bool {
        let offset = address.offset();
        offset.is_multiple_of(GRAIN) && offset > FIRST && offset < self.end.start
    }

    /// Takes a block out of the free list; returns where its bytes start, or `None` if none is
    /// large enough.
    #[expect(clippy::arithmetic_side_effects, reason = "offsets inside the heap: of blocks whose marks were checked")]
    pub(super) async fn take<M: Memory>(&self, memory: &M, need: u64) -> Result<Option<GlobalAddress>, M::Error> {
        let [first, _, fence] = self.words(memory, LIST + NEXT).await?;
        let mut at = if fence == FENCE.mark() { first } else { self.first_use(memory, fence).await? };
        let mut left = self.end.start / SMALLEST;
        while at != LIST {
            let [mark, next, previous] = self.words(memory, at).await?;
            let found = Block::starting_at(at, mark).filter(|block| !block.used && left > 0);
            let Some(found) = found else { return Err(AcpError::Damaged { address: self.address(at)? }.into()) };
            if found.size < need {
                at = next;
                left -= 1;
                continue;
            }
            // The last `need` bytes, or all of it.
            let rest = Block::free(found.start, found.size - need);
            let rest = Block::free(rest.start, rest.size - surplus(rest, need));
            let taken = if rest.size < SMALLEST {
                self.link(memory, previous, next).await?;
                let taken = Block::used(found.start, found.size);
                self.put(memory, taken.start, [taken.mark()]).await?;
                taken
            } else {
                let taken = Block::used(rest.end(), found.end() - rest.end());
                self.put(memory, rest.start, [rest.mark()]).await?;
                self.put(memory, rest.foot(), [rest.mark(), taken.mark()]).await?;
                taken
            };
            self.put(memory, taken.foot(), [taken.mark()]).await?;
            return Ok(Some(self.address(taken.start + GRAIN)?));
        }
        Ok(None)
    }

    /// Frees blocks that this rank allocated here for futures that were dropped.
    pub(super) async fn give_unclaimed(&self, acp: &Acp) -> Result<()> {
        let rank = self.base.rank();
        loop {
            let dropped = acp.with(|state| {
                let blocks = &mut state.unclaimed;
                let at = blocks.iter().position(|(block, unawaited)| block.rank() == rank && unawaited.is_set())?;
                Some(blocks.swap_remove(at).0)
            })?;
            let Some(block) = dropped else { return Ok(()) };
            self.give(acp, block).await?;
            acp.flush_all().await?;
        }
    }

    /// Frees the block whose bytes start at `address`, and merges it with free neighbours.
    #[expect(clippy::arithmetic_side_effects, reason = "offsets inside the heap: of blocks whose marks were checked")]
    pub(super) async fn give<M: Memory>(&self, memory: &M, address: GlobalAddress) -> Result<(), M::Error> {
        let [first, _, fence] = self.words(memory, LIST + NEXT).await?;
        let first = if fence == FENCE.mark() { first } else { self.first_use(memory, fence).await? };
        let start = address.offset() - GRAIN;
        let [before, mark] = self.words(memory, start - GRAIN).await?;
        let block = Block::starting_at(start, mark)
            .filter(|block| block.used && block.size >= SMALLEST && block.end() <= self.end.start)
            .ok_or(AcpError::NotAllocated { address })?;
        let [foot, after] = self.words(memory, block.foot()).await?;
        let damaged = AcpError::Damaged { address };
        let neighbours = (Block::ending_at(start, before), Block::starting_at(block.end(), after));
        let (Some(before), Some(after), true) = (neighbours.0, neighbours.1, foot == mark) else {
            return Err(damaged.into());
        };
        let end = if after.used { block.end() } else { after.end() };
        // The links of the next block, if it is removed from the list.
        let after_links = match after.used {
            true => None,
            false => Some(self.words::<_, 2>(memory, after.start + NEXT).await?),
        };
        let start = if before.used { block.start } else { before.start };
        let whole = Block::free(start, end - start);
        match (before.used, after_links) {
            (true, None) => self.insert(memory, whole, first, LIST).await?,
            (true, Some([next, previous])) => self.insert(memory, whole, next, previous).await?,
            (false, links) => {
                if let Some([next, previous]) = links {
                    self.link(memory, previous, next).await?;
                }
                self.put(memory, whole.start, [whole.mark()]).await?;
                // The mark is now inside a free block, where it must not be mistaken for a valid
                // one.
                self.put(memory, block.start, [0]).await?;
            }
        }
        self.put(memory, whole.foot(), [whole.mark()]).await
    }

    /// Writes the first words of a free block, and links its neighbours in the list to it.
    async fn insert<M: Memory>(&self, memory: &M, block: Block, next: u64, previous: u64) -> Result<(), M::Error> {
        self.put(memory, block.start, [block.mark(), next, previous]).await?;
        self.put(memory, previous.saturating_add(NEXT), [block.start]).await?;
        self.put(memory, next.saturating_add(PREVIOUS), [block.start]).await
    }

    /// Links two blocks of the list to each other.
    async fn link<M: Memory>(&self, memory: &M, previous: u64, next: u64) -> Result<(), M::Error> {
        // Links may have been overwritten with any words: those that overflow are outside the heap.
        self.put(memory, previous.saturating_add(NEXT), [next]).await?;
        self.put(memory, next.saturating_add(PREVIOUS), [previous]).await
    }

    /// Turns the whole heap into one free block; returns its start.
    #[expect(clippy::arithmetic_side_effects, reason = "a heap in which something may be allocated is long enough")]
    async fn first_use<M: Memory>(&self, memory: &M, fence: u64) -> Result<u64, M::Error> {
        if fence != 0 {
            return Err(AcpError::Damaged { address: self.address(FENCE.start)? }.into());
        }
        let all = Block::free(FIRST, self.end.start - FIRST);
        self.put(memory, all.foot(), [all.mark(), self.end.mark()]).await?;
        let ring = [all.start, all.start, FENCE.mark(), all.mark(), LIST, LIST];
        self.put(memory, LIST + NEXT, ring).await?;
        memory.settle().await?;
        Ok(all.start)
    }

    fn address(&self, offset: u64) -> Result<GlobalAddress> {
        self.base.offset_by(offset)
    }

    #[inline(always)]
    fn words<M: Memory, const N: usize>(
        &self,
        memory: &M,
        offset: u64,
    ) -> impl Future<Output = Result<[u64; N], M::Error>> + Send {
        memory.words(self.base, offset)
    }

    #[inline(always)]
    fn put<M: Memory, const N: usize>(
        &self,
        memory: &M,
        offset: u64,
        words: [u64; N],
    ) -> impl Future<Output = Result<(), M::Error>> + Send {
        memory.put_words(self.base, offset, words)
    }
}

/// Returns the number of bytes added to a large block so that its bytes start at a cache line.
#[expect(clippy::arithmetic_side_effects, reason = "offsets inside the heap")]
fn surplus(rest: Block, need: u64) -> u64 {
    let surplus = (rest.end() + GRAIN) % LINE;
    if need >= LARGE && rest.size >= SMALLEST + surplus { surplus } else { 0 }
}
