//! The region table of a segment: the regions that peers may access, and their keys.
//!
//! An entry is (generation, offset, length, kind). The generation is odd while a region is
//! registered and is incremented whenever that changes. The owner writes entries. Peers copy one,
//! check that the generation did not change in the meantime and that the range lies in the heap,
//! and only then use it, so garbage in a table results in errors, never in a wild access. The top
//! bit of all generations is set once the segment's rank is lost ([`condemn`]), so that an access
//! checks both with one comparison. Symmetric regions have the first entries and local ones the
//! rest, so that the keys of symmetric regions agree.

use super::{
    heap::GRAIN,
    layout,
    mapping::{Mapping, Piece},
};
use core::sync::atomic::{
    AtomicU64,
    Ordering::{Acquire, Relaxed, Release, SeqCst},
    fence,
};
use rdma_fabric::{FabricError, Rank, RegionKey, RemoteAddr};
use std::{ops::Range, sync::Arc};

/// Entries of symmetric regions.
pub(crate) const SYMMETRIC: Range<usize> = 0..layout::SYMMETRIC_SLOTS;
/// Entries of local regions.
pub(crate) const LOCAL: Range<usize> = layout::SYMMETRIC_SLOTS..layout::SLOTS;

/// Set in every generation of a lost rank's table.
pub(crate) const CONDEMNED: u64 = 1 << 63;

/// Refuses every access to the regions of a lost rank. [`layout::LOST`] must already be set.
///
/// The rank may still be running and registering. It checks that word after it has written a
/// generation, and this function writes generations after the word; so with full barriers on both
/// sides, one of them sets the bit.
pub(crate) fn condemn(target: &Mapping) {
    if target.is_absent() {
        return;
    }
    (0..layout::SLOTS).for_each(|index| _ = field(target, index, 0).fetch_or(CONDEMNED, SeqCst));
}

/// Keeps a lost rank's entry condemned; to be called after writing a generation.
fn stay_condemned(own: &Mapping, index: usize) {
    fence(SeqCst);
    if own.word(layout::LOST).load(SeqCst) != 0 {
        field(own, index, 0).fetch_or(CONDEMNED, SeqCst);
    }
}

/// Returns the offset of the generation of entry `index`.
#[inline(always)]
pub(crate) fn generation_at(index: usize) -> usize {
    layout::TABLE + index * layout::ENTRY
}

#[inline(always)]
fn field(mapping: &Mapping, index: usize, field: usize) -> &AtomicU64 {
    mapping.word(generation_at(index) + 8 * field)
}

/// The kind of a registered region.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u64)]
pub(crate) enum RegionKind {
    /// Bytes of the heap.
    Heap = 0,
    /// Bytes of the heap that stand in for existing memory.
    Staged = 1,
    /// Existing memory outside the heap; the entry contains only its length.
    Adopted = 2,
    /// The words of a control queue in the heap. Peers' keys cannot address such a region.
    Queue = 3,
    /// Protected bytes of the heap: only handles that allocated them resolve them.
    Locked = 4,
    /// Protected bytes of the heap, behind the terms of their access policy: handles of the same
    /// access policy resolve them.
    Policy = 5,
    /// Bytes of the heap whose pages also stand in the program's address space: see
    /// [`super::program`]. The region may start at any byte.
    Program = 6,
}

/// Writes the terms of an access policy to the grain in front of a region, which starts at
/// `offset`.
pub(crate) fn write_terms(own: &Mapping, offset: usize, terms: [u64; 3]) {
    let mut bytes = [0; 24];
    bytes.chunks_exact_mut(8).zip(terms).for_each(|(bytes, word)| bytes.copy_from_slice(&word.to_ne_bytes()));
    own.fill(offset, &bytes);
}

/// Returns the terms of a region of kind [`RegionKind::Policy`] whose bytes start at `offset`;
/// impossible terms if there can't be any.
pub(crate) fn terms(target: &Mapping, offset: usize) -> [u64; 3] {
    let mut bytes = [0; 24];
    if let Some(front) = offset.checked_sub(GRAIN) {
        target.empty(front, &mut bytes);
    }
    [0, 8, 16].map(|at| u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes")))
}

/// Returns whether a region is of an access policy with these terms.
///
/// # Errors
/// As [`resolve`].
pub(crate) fn is_of_policy(
    target: &Mapping,
    rank: Rank,
    region: RegionKey,
    wanted: [u64; 3],
) -> Result<bool, FabricError> {
    let (offset, _, kind) = entry(target, rank, region)?;
    Ok(kind == RegionKind::Policy && terms(target, offset) == wanted)
}

/// Returns the offset of the generation of a key's entry; `None` if there is no such entry.
pub(crate) fn entry_at(key: RegionKey) -> Option<usize> {
    let index = key.index as usize;
    (index < layout::SLOTS).then(|| generation_at(index))
}

/// Returns the key that the next registration in the free entry `index` will have.
pub(crate) fn next_key(own: &Mapping, index: usize) -> RegionKey {
    let generation = field(own, index, 0).load(Relaxed) | 1;
    RegionKey { index: index as u32, generation: generation as u32 }
}

/// Returns whether a key is the one under which its entry is registered.
#[inline(always)]
pub(crate) fn is_current(target: &Mapping, key: RegionKey) -> bool {
    let index = key.index as usize;
    // Acquire: pairs with the release in `register` and `deregister`.
    index < layout::SLOTS && field(target, index, 0).load(Acquire) & !CONDEMNED == u64::from(key.generation)
}

/// Registers heap bytes `offset..offset + len` of the rank's own segment in the free entry `index`.
pub(crate) fn register(own: &Mapping, index: usize, offset: usize, len: usize, kind: RegionKind) -> RegionKey {
    let key = next_key(own, index);
    // Release: pairs with the fence in `entry`. A rank that reads a field below also sees that the
    // last registration ended.
    fence(Release);
    field(own, index, 1).store(offset as u64, Relaxed);
    field(own, index, 2).store(len as u64, Relaxed);
    field(own, index, 3).store(kind as u64, Relaxed);
    // Release: pairs with the acquire in `resolve` and in `Piece::moved`.
    field(own, index, 0).store(key.generation.into(), Release);
    stay_condemned(own, index);
    key
}

/// Ends the registration in `index`. Returns whether the entry may be reused, which is possible up
/// to 2³¹ times.
pub(crate) fn deregister(own: &Mapping, index: usize) -> bool {
    let generation = field(own, index, 0).load(Relaxed) & !CONDEMNED | 1;
    // Release: a rank that sees the new generation also sees earlier changes of the region.
    field(own, index, 0).store(generation.wrapping_add(1), Release);
    stay_condemned(own, index);
    // A damaged entry may hold any generation; such an entry is never used again either.
    generation < u64::from(u32::MAX)
}

/// The bytes of a region.
#[derive(Clone, Debug)]
pub(crate) enum Resolved<'a> {
    Heap(Piece<&'a Mapping>),
    Staged(Piece),
    /// Outside the heap. The range is inside the region's length, given here.
    Adopted {
        region_len: usize,
    },
}

/// Returns the bytes `addr.offset..addr.offset + len` of a region of segment `target`, aligned to
/// `align`. `opens` returns whether a locked region may be resolved; it receives the terms of the
/// region's access policy, if it has one.
///
/// # Errors
/// [`FabricError::NoSuchRegion`], [`FabricError::StaleRegion`], [`FabricError::Locked`],
/// [`FabricError::Corrupt`], [`FabricError::OutOfBounds`], [`FabricError::Misaligned`].
pub(crate) fn resolve(
    target: &Arc<Mapping>,
    addr: RemoteAddr,
    len: usize,
    align: usize,
    opens: impl FnOnce(RegionKey, Option<[u64; 3]>) -> bool,
) -> Result<Resolved<'_>, FabricError> {
    let RemoteAddr { rank, region, .. } = addr;
    let (region_offset, region_len, kind) = entry(target, rank, region)?;
    if kind == RegionKind::Queue {
        return Err(FabricError::NoSuchRegion { rank, region });
    }
    let is_locked = match kind {
        RegionKind::Locked => !opens(region, None),
        RegionKind::Policy => !opens(region, Some(terms(target, region_offset))),
        _ => false,
    };
    if is_locked {
        return Err(FabricError::Locked { rank, region });
    }
    let out_of_bounds = || FabricError::out_of_bounds(addr, len as u64, region_len as u64);
    let offset = usize::try_from(addr.offset).map_err(|_| out_of_bounds())?;
    offset.checked_add(len).filter(|&end| end <= region_len).ok_or_else(out_of_bounds)?;
    if kind == RegionKind::Adopted {
        return Ok(Resolved::Adopted { region_len });
    }
    let corrupt = FabricError::Corrupt { rank, what: &"an entry of the region table" };
    let at = region_offset.checked_add(offset).ok_or_else(|| corrupt.clone())?;
    let generation_at = generation_at(region.index as usize);
    let piece =
        target.borrowed_piece(at, len, generation_at, region.generation.into()).ok_or_else(|| corrupt.clone())?;
    if !piece.is_aligned(align) {
        return Err(FabricError::misaligned(addr, align));
    }
    match kind {
        RegionKind::Staged => {
            target.piece(at, len, generation_at, region.generation).map(Resolved::Staged).ok_or(corrupt)
        }
        _ => Ok(Resolved::Heap(piece)),
    }
}

/// Returns the heap offset, length and kind of a registered region, copied once. The range is in
/// the heap unless the kind is [`RegionKind::Adopted`].
#[inline]
pub(crate) fn entry(
    target: &Mapping,
    rank: Rank,
    region: RegionKey,
) -> Result<(usize, usize, RegionKind), FabricError> {
    match copy(target, region) {
        Ok(entry) => Ok(entry),
        Err(wrong) => Err(wrong.error(rank, region)),
    }
}

/// The fault of a key or its entry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum EntryError {
    /// Never registered.
    Unknown,
    /// No longer registered.
    Stale,
    /// Damaged.
    Corrupt,
}

impl EntryError {
    #[cold]
    fn error(self, rank: Rank, region: RegionKey) -> FabricError {
        match self {
            EntryError::Unknown => FabricError::NoSuchRegion { rank, region },
            EntryError::Stale => FabricError::StaleRegion { rank, region },
            EntryError::Corrupt => FabricError::Corrupt { rank, what: &"an entry of the region table" },
        }
    }
}

/// Reads an entry like [`entry`], for callers that report a different error.
#[inline]
pub(crate) fn copy(target: &Mapping, region: RegionKey) -> Result<(usize, usize, RegionKind), EntryError> {
    let index = region.index as usize;
    if index >= layout::SLOTS || region.generation.is_multiple_of(2) {
        return Err(EntryError::Unknown);
    }
    // Acquire: pairs with the release in `register`.
    let now = field(target, index, 0).load(Acquire) & !CONDEMNED;
    let (offset, len) = (field(target, index, 1).load(Relaxed), field(target, index, 2).load(Relaxed));
    let kind = match field(target, index, 3).load(Relaxed) {
        0 => Some(RegionKind::Heap),
        1 => Some(RegionKind::Staged),
        2 => Some(RegionKind::Adopted),
        3 => Some(RegionKind::Queue),
        4 => Some(RegionKind::Locked),
        5 => Some(RegionKind::Policy),
        6 => Some(RegionKind::Program),
        _ => None,
    };
    // Acquire: pairs with the fence in `register`.
    fence(Acquire);
    let after = field(target, index, 0).load(Relaxed) & !CONDEMNED;
    let wanted = u64::from(region.generation);
    if now < wanted {
        return Err(EntryError::Unknown);
    }
    if now > wanted || after != now {
        return Err(EntryError::Stale);
    }
    let inside = |&(offset, len, kind): &(usize, usize, RegionKind)| {
        let end = offset.checked_add(len);
        let aligned = kind == RegionKind::Program || offset % GRAIN == 0;
        kind == RegionKind::Adopted || (aligned && end.is_some_and(|end| end <= target.heap_len()))
    };
    let number = |field: u64| usize::try_from(field).ok();
    (|| Some((number(offset)?, number(len)?, kind?)))().filter(inside).ok_or(EntryError::Corrupt)
}

/// Returns the region that contains byte `at` of the heap, and the byte's offset in it. Searches
/// the whole table.
pub(crate) fn around(target: &Mapping, at: usize) -> Option<(RegionKey, u64)> {
    (0..layout::SLOTS).find_map(|index| {
        let generation = field(target, index, 0).load(Acquire) & !CONDEMNED;
        let key = RegionKey { index: index as u32, generation: generation as u32 };
        let (offset, len, kind) = copy(target, key).ok()?;
        let inside = kind != RegionKind::Adopted && (offset..offset.saturating_add(len)).contains(&at);
        inside.then(|| (key, (at - offset) as u64))
    })
}

#[cfg(test)]
mod tests;
