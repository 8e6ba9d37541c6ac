//! Bookkeeping of the allocated bytes of a segment's heap: pure arithmetic, private to the owner,
//! never in shared memory.
//!
//! Two arenas share one range of bytes. Symmetric regions grow from its start, local ones from its
//! end, so neither has a fixed share. The symmetric arena's state depends only on the sequence of
//! symmetric calls, which is the same on all ranks, so equal calls yield equal offsets everywhere.
//!
//! Locked regions to which references may exist consist of bytes that belong to no other region,
//! before or after; local ones share bytes only with regions of the same access policy. Otherwise a
//! short operation on another region, whose thread is stopped before its access, could hit them, no
//! matter how late the access happens.
//!
//! The range has at most `isize::MAX` bytes, and every piece is inside it: the sum of an offset and
//! a length fits, and an end is not below its start.

#![deny(clippy::arithmetic_side_effects)]

use std::{collections::BTreeMap, ops::Range};

/// Regions start on, and their lengths are rounded up to, multiples of this, in bytes.
pub(crate) const GRAIN: usize = super::layout::CACHE_LINE;

/// Returns the bytes rounded up to whole grains, at least one; `None` if that overflows.
pub(crate) fn grains(bytes: usize) -> Option<usize> {
    bytes.max(1).checked_next_multiple_of(GRAIN)
}

/// A first-fit allocator that grows upwards from 0 and uses the lowest hole first.
#[derive(Debug, Default)]
struct Arena {
    /// Holes below `top`, by offset. No two touch, none touches `top`.
    holes: BTreeMap<usize, usize>,
    /// All bytes at or above this offset are free.
    top: usize,
    /// The highest `top` ever: bytes at or above it have never been allocated.
    touched: usize,
}

impl Arena {
    /// Takes a hole of `len` bytes, or fresh bytes if they end at or below `limit`.
    fn take(&mut self, len: usize, limit: usize) -> Option<usize> {
        if let Some(offset) = first_fit(&mut self.holes, len) {
            return Some(offset);
        }
        let end = self.top.checked_add(len).filter(|&end| end <= limit)?;
        let offset = std::mem::replace(&mut self.top, end);
        self.touched = self.touched.max(end);
        Some(offset)
    }

    /// Takes `len` bytes that have never been allocated, ending at or below `limit`. Free bytes
    /// below them become a hole.
    #[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
    fn take_fresh(&mut self, len: usize, limit: usize) -> Option<usize> {
        let end = self.touched.checked_add(len).filter(|&end| end <= limit)?;
        if self.top < self.touched {
            self.holes.insert(self.top, self.touched - self.top);
        }
        self.top = end;
        Some(std::mem::replace(&mut self.touched, end))
    }

    #[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
    fn give_back(&mut self, offset: usize, len: usize) {
        let (offset, len) = joined(&mut self.holes, offset, len);
        if offset + len == self.top {
            self.top = offset;
        } else {
            self.holes.insert(offset, len);
        }
    }

    /// Returns the longest piece that [`Arena::take`] could return.
    fn largest(&self, limit: usize) -> usize {
        self.holes.values().copied().max().unwrap_or(0).max(limit.saturating_sub(self.top))
    }
}

/// Joins a free piece with the `holes` that touch it, which are removed, and returns the result.
#[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
fn joined(holes: &mut BTreeMap<usize, usize>, mut offset: usize, mut len: usize) -> (usize, usize) {
    if let Some((&before, &hole)) = holes.range(..offset).next_back()
        && before + hole == offset
    {
        holes.remove(&before);
        (offset, len) = (before, hole + len);
    }
    if let Some(hole) = holes.remove(&(offset + len)) {
        len += hole;
    }
    (offset, len)
}

/// Takes `len` bytes from the start of the first hole that is long enough, and returns their
/// offset.
#[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
fn first_fit(holes: &mut BTreeMap<usize, usize>, len: usize) -> Option<usize> {
    let (&offset, &hole) = holes.iter().find(|&(_, &hole)| hole >= len)?;
    holes.remove(&offset);
    if hole > len {
        holes.insert(offset + len, hole - len);
    }
    Some(offset)
}

/// Allocated bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Extent {
    /// First byte, counted from the start of the heap.
    pub(crate) offset: usize,
    /// Length in bytes, whole grains.
    pub(crate) len: usize,
    /// Bytes from here to `fresh_end` were never in use, so they are still zero.
    pub(crate) fresh_start: usize,
    /// End of the bytes never in use; both offsets lie in the extent, in this order.
    pub(crate) fresh_end: usize,
}

impl Extent {
    /// Returns the bytes that may have been in use before: (offset, length) of two pieces.
    #[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
    pub(crate) fn used_before(&self) -> [(usize, usize); 2] {
        let end = self.offset + self.len;
        [(self.offset, self.fresh_start - self.offset), (self.fresh_end, end - self.fresh_end)]
    }
}

/// The two arenas of one rank.
#[derive(Debug)]
pub(crate) struct Heap {
    /// Length of the range in bytes, whole grains.
    len: usize,
    symmetric: Arena,
    /// Uses mirrored offsets: its 0 is the end of the range.
    local: Arena,
    /// While ranks agree on a symmetric allocation, local extents stay at or above this offset.
    promised: usize,
    /// Free pieces that belonged to locked regions, by offset. `symmetric` regards them as in use
    /// forever.
    locked: BTreeMap<usize, usize>,
    /// Free pieces that belonged to local regions of an access policy, by its terms and by offset.
    /// `local` regards them as in use forever.
    policies: Vec<([u64; 3], BTreeMap<usize, usize>)>,
}

impl Heap {
    pub(crate) fn new(len: usize) -> Self {
        Heap {
            len: len.saturating_sub(len % GRAIN),
            symmetric: Arena::default(),
            local: Arena::default(),
            promised: 0,
            locked: BTreeMap::new(),
            policies: Vec::new(),
        }
    }

    /// Returns the bytes that were never in use. (Either arena may have grown into bytes that now
    /// belong to the other one.)
    #[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
    fn fresh(&self) -> Range<usize> {
        self.symmetric.touched..self.len - self.local.touched
    }

    /// Returns how far from the range's end local extents may reach, in bytes.
    fn local_limit(&self) -> usize {
        self.len.saturating_sub(self.symmetric.top.max(self.promised))
    }

    /// Returns the offset of a piece of `len` bytes from the end of the range, given that from its
    /// start, or the other way round.
    #[expect(clippy::arithmetic_side_effects, reason = "of pieces inside the range")]
    fn unmirrored(&self, offset: usize, len: usize) -> usize {
        self.len - offset - len
    }

    /// Takes a local extent for `bytes` bytes; on failure returns the longest length available.
    pub(crate) fn take_local(&mut self, bytes: usize) -> Result<Extent, usize> {
        let (limit, fresh) = (self.local_limit(), self.fresh());
        let taken = grains(bytes).and_then(|len| Some((self.local.take(len, limit)?, len)));
        let (mirrored, len) = taken.ok_or_else(|| self.local.largest(limit))?;
        Ok(extent(self.unmirrored(mirrored, len), len, fresh))
    }

    pub(crate) fn give_back_local(&mut self, extent: Extent) {
        self.local.give_back(self.unmirrored(extent.offset, extent.len), extent.len);
    }

    /// Takes a local extent for a region of an access policy with these terms: a piece that only
    /// such regions had, or that no region ever had. On failure returns the longest length
    /// available.
    pub(crate) fn take_for_policy(&mut self, bytes: usize, terms: [u64; 3]) -> Result<Extent, usize> {
        let fresh = self.fresh();
        let limit = self.len.saturating_sub(self.symmetric.touched.max(self.promised));
        let pieces = self.policy(terms);
        let taken = grains(bytes).map(|len| (first_fit(&mut self.policies[pieces].1, len), len));
        let taken = taken.and_then(|(reused, len)| match reused {
            Some(offset) => Some((offset, len)),
            None => {
                let mirrored = self.local.take_fresh(len, limit)?;
                Some((self.unmirrored(mirrored, len), len))
            }
        });
        let free = self.policies[pieces].1.values().copied().max().unwrap_or(0);
        let (offset, len) = taken.ok_or_else(|| free.max(limit.saturating_sub(self.local.touched)))?;
        Ok(extent(offset, len, fresh))
    }

    pub(crate) fn give_back_policy(&mut self, extent: Extent, terms: [u64; 3]) {
        let pieces = self.policy(terms);
        let pieces = &mut self.policies[pieces].1;
        let (offset, len) = joined(pieces, extent.offset, extent.len);
        pieces.insert(offset, len);
    }

    /// Returns the index of an access policy's free pieces.
    fn policy(&mut self, terms: [u64; 3]) -> usize {
        self.policies.iter().position(|(known, _)| *known == terms).unwrap_or_else(|| {
            self.policies.push((terms, BTreeMap::new()));
            self.policies.len().saturating_sub(1)
        })
    }

    /// Reserves room for a symmetric extent of `bytes` bytes until it is taken or given up,
    /// regardless of the holes on which the ranks agree. Returns the offset up to which room is
    /// reserved. If there is less room than needed, it reserves less, because the ranks may agree
    /// on freeing other regions first.
    pub(crate) fn promise_symmetric(&mut self, bytes: usize) -> usize {
        let len = grains(bytes).filter(|&len| len <= self.len);
        let end = len.map_or(0, |len| self.symmetric.top.saturating_add(len));
        self.promised = end.min(self.len.saturating_sub(self.local.top));
        self.promised
    }

    /// Reserves room like [`Heap::promise_symmetric`], but for a locked region: room that no region
    /// ever had.
    pub(crate) fn promise_locked(&mut self, bytes: usize) -> usize {
        let len = grains(bytes).filter(|&len| len <= self.len);
        let end = len.map_or(0, |len| self.symmetric.touched.saturating_add(len));
        self.promised = end.min(self.fresh().end);
        self.promised
    }

    /// Takes an extent like [`Heap::take_symmetric`], but for a locked region: a piece that only
    /// locked regions had, or that no region ever had.
    pub(crate) fn take_locked(&mut self, bytes: usize, limit: usize) -> Result<Extent, usize> {
        let limit = limit.min(self.promised);
        self.break_promise();
        let fresh = self.fresh();
        let (symmetric, locked) = (&mut self.symmetric, &mut self.locked);
        let taken = grains(bytes)
            .and_then(|len| Some((first_fit(locked, len).or_else(|| symmetric.take_fresh(len, limit))?, len)));
        let none = || locked.values().copied().max().unwrap_or(0).max(limit.saturating_sub(fresh.start));
        let (offset, len) = taken.ok_or_else(none)?;
        Ok(extent(offset, len, fresh))
    }

    pub(crate) fn give_back_locked(&mut self, extent: Extent) {
        let (offset, len) = joined(&mut self.locked, extent.offset, extent.len);
        self.locked.insert(offset, len);
    }

    /// Gives up the room that [`Heap::promise_symmetric`] reserved.
    pub(crate) fn break_promise(&mut self) {
        self.promised = 0;
    }

    /// Takes a symmetric extent in a hole or ending at or below `limit`, the minimum that any rank
    /// has promised. The same calls return the same results on all ranks. On failure returns the
    /// longest length available.
    pub(crate) fn take_symmetric(&mut self, bytes: usize, limit: usize) -> Result<Extent, usize> {
        // This rank's promise is already part of `limit`, unless a control record was damaged.
        let limit = limit.min(self.promised);
        self.break_promise();
        let fresh = self.fresh();
        let taken = grains(bytes).and_then(|len| Some((self.symmetric.take(len, limit)?, len)));
        let (offset, len) = taken.ok_or_else(|| self.symmetric.largest(limit))?;
        Ok(extent(offset, len, fresh))
    }

    pub(crate) fn give_back_symmetric(&mut self, extent: Extent) {
        self.symmetric.give_back(extent.offset, extent.len);
    }
}

fn extent(offset: usize, len: usize, fresh: Range<usize>) -> Extent {
    let end = offset.saturating_add(len);
    let fresh_start = fresh.start.clamp(offset, end);
    let fresh_end = fresh.end.clamp(fresh_start, end);
    Extent { offset, len, fresh_start, fresh_end }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests;
