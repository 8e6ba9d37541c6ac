//! Operations that do not take the fabric's fast path: long copies, registered existing memory,
//! operations that are visible to an interposed provider, and refusals.

use super::{
    adopted::Reached,
    inside::RegionId,
    place::{Bytes, LocatedPlace},
};
use crate::endpoint::Endpoint;
use rdma_fabric::{
    Amo, Blocks, FabricError, Result,
    provider::{SHORT, Sink, Source},
};

/// The number of bytes copied at a time through private memory.
const CHUNK: usize = 64 << 10;

impl LocatedPlace<'_> {
    fn id(&self) -> RegionId {
        RegionId::new(self.addr.rank, self.addr.region)
    }

    /// Returns whether both places have bytes in common.
    fn overlaps(&self, other: &Self) -> bool {
        let apart = self.addr.offset.abs_diff(other.addr.offset);
        self.id() == other.id() && apart < self.len.max(other.len) as u64
    }

    /// Returns why `len` bytes were not copied.
    fn refused(&self, len: usize) -> FabricError {
        self.refusal(len, 1)
    }
}

impl Reached<'_> {
    /// Fills the bytes of `place`, or a part of them, from `bytes`, which has their length.
    fn copy_in(&self, bytes: &[u8], place: &LocatedPlace<'_>) -> Result<()> {
        let copied = match self {
            Reached::Segment(piece) => piece.copy_in(bytes),
            Reached::Piece(piece) => piece.copy_in(bytes),
            Reached::Cross(cross) => return cross.write(bytes, place.addr),
        };
        copied.ok_or_else(|| place.refused(place.len))
    }

    /// Fills `bytes` from the bytes of `place`, or a part of them, of the same length.
    fn copy_out(&self, bytes: &mut [u8], place: &LocatedPlace<'_>) -> Result<()> {
        let copied = match self {
            Reached::Segment(piece) => piece.copy_out(bytes),
            Reached::Piece(piece) => piece.copy_out(bytes),
            Reached::Cross(cross) => return cross.read(bytes, place.addr),
        };
        copied.ok_or_else(|| place.refused(place.len))
    }

    /// Calls `f` with the `len` bytes from `at` on.
    fn with_part(
        &self,
        at: usize,
        len: usize,
        place: &LocatedPlace<'_>,
        f: impl FnOnce(Reached<'_>) -> Result<()>,
    ) -> Result<()> {
        let refused = || place.refused(place.len);
        match self {
            Reached::Segment(piece) => f(Reached::Segment(&piece.part(at, len).ok_or_else(refused)?)),
            Reached::Piece(piece) => f(Reached::Piece(&piece.part(at, len).ok_or_else(refused)?)),
            Reached::Cross(cross) => f(Reached::Cross(&cross.part(at, len).ok_or_else(refused)?)),
        }
    }
}

/// Calls `f` with the bytes at `place`; deregistration waits until it returns. Short copies in
/// segments are not announced.
fn reach<R>(
    endpoint: &Endpoint,
    place: &LocatedPlace<'_>,
    len: usize,
    f: impl FnOnce(Reached<'_>) -> Result<R>,
) -> Result<R> {
    if place.len != len {
        return Err(place.refused(len));
    }
    match &place.bytes {
        Bytes::Segment(piece) => {
            let _inside = (len > SHORT).then(|| endpoint.announce([place.id()]));
            f(Reached::Segment(piece))
        }
        Bytes::Outside(outside) => outside
            .within(endpoint, place.id(), f)
            .unwrap_or_else(|| Err(place.refused(len)))
            .map_err(|error| endpoint.job().unreached(error, place.addr.region)),
    }
}

/// Copies an operation's source to its target, without ringing.
pub(crate) fn put(endpoint: &Endpoint, to: &LocatedPlace<'_>, from: &Source<'_>) -> Result<()> {
    match from {
        Source::Bytes(bytes) => reach(endpoint, to, bytes.len(), |reached| reached.copy_in(bytes, to)),
        Source::Place(own) => between(endpoint, to, &LocatedPlace::of(endpoint.job(), own)?),
    }
}

/// Copies from an operation's target to its sink, without ringing.
pub(crate) fn get(endpoint: &Endpoint, from: &LocatedPlace<'_>, to: Sink<'_>) -> Result<()> {
    match to {
        Sink::Bytes(bytes) => reach(endpoint, from, bytes.len(), |reached| reached.copy_out(bytes, from)),
        Sink::Place(own) => between(endpoint, &LocatedPlace::of(endpoint.job(), own)?, from),
    }
}

/// Copies between any two places in registered memory of any ranks, without ringing: through
/// private memory unless both sides are pieces and don't overlap. Where they overlap, the target
/// ends up with the source's previous contents.
pub(crate) fn between(endpoint: &Endpoint, to: &LocatedPlace<'_>, from: &LocatedPlace<'_>) -> Result<()> {
    let len = from.len;
    let refusal = || if from.is_fit() { to.refused(len) } else { from.refused(len) };
    let apart = len <= SHORT || !to.overlaps(from);
    if let (Bytes::Segment(target), Bytes::Segment(source), true) = (&to.bytes, &from.bytes, apart) {
        let _inside = (len > SHORT).then(|| endpoint.announce([to, from].map(LocatedPlace::id)));
        return target.copy_from(source).ok_or_else(refusal);
    }
    reach(endpoint, to, len, |target| {
        reach(endpoint, from, len, |source| {
            let copied = match (&target, &source) {
                (Reached::Segment(target), Reached::Piece(source)) if apart => target.copy_from(source),
                (Reached::Piece(target), Reached::Segment(source)) if apart => target.copy_from(source),
                (Reached::Piece(target), Reached::Piece(source)) if apart => target.copy_from(source),
                _ => return by_chunks((to, &target), (from, &source)),
            };
            copied.ok_or_else(refusal)
        })
    })
}

/// Copies blocks of `len` bytes each between two places over which they extend, without ringing. In
/// segments, the regions are announced and checked once for all blocks.
pub(crate) fn put_blocks(
    endpoint: &Endpoint,
    to: &LocatedPlace<'_>,
    from: &LocatedPlace<'_>,
    len: usize,
    blocks: Blocks,
) -> Result<()> {
    if let (Bytes::Segment(target), Bytes::Segment(source)) = (&to.bytes, &from.bytes) {
        let _inside = endpoint.announce([to, from].map(LocatedPlace::id));
        let refusal = || if from.is_fit() { to.refused(from.len) } else { from.refused(from.len) };
        return target.copy_blocks_from(source, len, blocks).ok_or_else(refusal);
    }
    for at in (0..blocks.count as usize).map(|block| block.saturating_mul(blocks.stride as usize)) {
        let outside = |place: &LocatedPlace<'_>| place.refused(at.saturating_add(len));
        let to = to.part(at, len).ok_or_else(|| outside(to))?;
        let from = from.part(at, len).ok_or_else(|| outside(from))?;
        between(endpoint, &to, &from)?;
    }
    Ok(())
}

/// Copies through private memory, starting at the end at which the copy overwrites no bytes that
/// are still to be read.
fn by_chunks(
    (to, target): (&LocatedPlace<'_>, &Reached<'_>),
    (from, source): (&LocatedPlace<'_>, &Reached<'_>),
) -> Result<()> {
    let len = from.len;
    let mut chunk = vec![0u8; len.min(CHUNK)];
    let chunks = len.div_ceil(CHUNK);
    let backwards = to.addr.offset > from.addr.offset;
    for number in 0..chunks {
        let at = CHUNK * if backwards { chunks - 1 - number } else { number };
        let chunk = &mut chunk[..CHUNK.min(len - at)];
        source.with_part(at, chunk.len(), from, |part| part.copy_out(chunk, from))?;
        target.with_part(at, chunk.len(), to, |part| part.copy_in(chunk, to))?;
    }
    Ok(())
}

/// Applies `amo` to the word at the place, rings, and returns the previous value.
pub(crate) fn modify(endpoint: &Endpoint, word: &LocatedPlace<'_>, amo: Amo<u64>) -> Result<u64> {
    let width = if word.len == 4 { 4 } else { 8 };
    let refusal = || word.refusal(width, width);
    if !word.is_fit() || word.len != width {
        return Err(refusal());
    }
    if word.outside().is_some_and(|outside| !outside.has_atomics()) {
        return Err(FabricError::no_atomics(word.addr));
    }
    let old = reach(endpoint, word, width, |reached| {
        match reached {
            Reached::Segment(piece) => piece.modify(width, amo),
            Reached::Piece(piece) => piece.modify(width, amo),
            Reached::Cross(_) => None,
        }
        .ok_or_else(refusal)
    })?;
    word.ring();
    Ok(old)
}
