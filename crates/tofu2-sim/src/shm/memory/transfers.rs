//! Operations that are not made where their caller found the place: long copies, memory that existed before it was registered, what somebody in between
//! wants to see, and refusals.

use super::{
    existing::Reached,
    inside::RegionId,
    mapping::{Mapping, Piece},
    place::{Bytes, LocatedPlace},
};
use crate::shm::endpoint::Endpoint;
use cross::{cross_in, cross_out, cross_part};
use rdma_fabric::{
    Amo, FabricError, Result,
    provider::{SHORT, Sink, Source},
};

/// What is copied at once where neither side is private memory, in bytes.
const CHUNK: usize = 64 << 10;

impl LocatedPlace<'_> {
    fn id(&self) -> RegionId {
        RegionId::new(self.addr.rank, self.addr.region)
    }

    /// Why `len` bytes were not copied.
    fn refused(&self, len: usize) -> FabricError {
        self.refusal(len, 1)
    }
}

/// Call `f` with what is at `place`, so that deregistration waits for it. Short copies in segments are not announced.
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
            .inspect_err(|error| endpoint.job().notice_loss(error)),
    }
}

fn copy_in(reached: &Reached<'_>, bytes: &[u8], to: &LocatedPlace<'_>) -> Result<()> {
    match reached {
        Reached::Segment(piece) => piece.copy_in(bytes).ok_or_else(|| to.refused(bytes.len())),
        Reached::Piece(piece) => piece.copy_in(bytes).ok_or_else(|| to.refused(bytes.len())),
        Reached::Cross(cross) => cross_in(cross, bytes, to),
    }
}

fn copy_out(reached: &Reached<'_>, bytes: &mut [u8], from: &LocatedPlace<'_>) -> Result<()> {
    let len = bytes.len();
    match reached {
        Reached::Segment(piece) => piece.copy_out(bytes).ok_or_else(|| from.refused(len)),
        Reached::Piece(piece) => piece.copy_out(bytes).ok_or_else(|| from.refused(len)),
        Reached::Cross(cross) => cross_out(cross, bytes, from),
    }
}

/// Copy an operation's source to its target, without ringing.
pub(crate) fn put(endpoint: &Endpoint, to: &LocatedPlace<'_>, from: &Source<'_>) -> Result<()> {
    match from {
        Source::Bytes(bytes) => reach(endpoint, to, bytes.len(), |reached| copy_in(&reached, bytes, to)),
        Source::Place(own) => between(endpoint, to, &LocatedPlace::of(own)?),
    }
}

/// Copy from an operation's target to its sink, without ringing.
pub(crate) fn get(endpoint: &Endpoint, from: &LocatedPlace<'_>, to: Sink<'_>) -> Result<()> {
    match to {
        Sink::Bytes(bytes) => reach(endpoint, from, bytes.len(), |reached| copy_out(&reached, bytes, from)),
        Sink::Place(own) => between(endpoint, &LocatedPlace::of(own)?, from),
    }
}

/// Copy from registered memory to registered memory.
fn between(endpoint: &Endpoint, to: &LocatedPlace<'_>, from: &LocatedPlace<'_>) -> Result<()> {
    let len = from.len;
    let refusal = || if from.is_fit() { to.refused(len) } else { from.refused(len) };
    if let (Bytes::Segment(target), Bytes::Segment(source)) = (&to.bytes, &from.bytes) {
        let _inside = (len > SHORT).then(|| endpoint.announce([to, from].map(LocatedPlace::id)));
        return target.copy_from(source).ok_or_else(refusal);
    }
    reach(endpoint, to, len, |target| {
        reach(endpoint, from, len, |source| {
            let copied = match (&target, &source) {
                (Reached::Segment(target), Reached::Piece(source)) => Some(target.copy_from(source)),
                (Reached::Piece(target), Reached::Segment(source)) => Some(target.copy_from(source)),
                (Reached::Piece(target), Reached::Piece(source)) => Some(target.copy_from(source)),
                _ => None,
            };
            match copied {
                Some(copied) => copied.ok_or_else(refusal),
                None => by_chunks((&target, to), (&source, from)),
            }
        })
    })
}

/// By way of private memory.
fn by_chunks(
    (target, to): (&Reached<'_>, &LocatedPlace<'_>),
    (source, from): (&Reached<'_>, &LocatedPlace<'_>),
) -> Result<()> {
    let mut chunk = vec![0u8; from.len.min(CHUNK)];
    for done in (0..from.len).step_by(CHUNK) {
        let chunk = &mut chunk[..CHUNK.min(from.len - done)];
        copy_part_out(source, done, chunk, from)?;
        copy_part_in(target, done, chunk, to)?;
    }
    Ok(())
}

fn copy_part_out(source: &Reached<'_>, at: usize, chunk: &mut [u8], from: &LocatedPlace<'_>) -> Result<()> {
    let len = chunk.len();
    match source {
        Reached::Segment(piece) => {
            let part: Option<Piece<&Mapping>> = piece.part(at, len);
            part.and_then(|piece| piece.copy_out(chunk)).ok_or_else(|| from.refused(from.len))
        }
        Reached::Piece(piece) => {
            piece.part(at, len).and_then(|piece| piece.copy_out(chunk)).ok_or_else(|| from.refused(from.len))
        }
        Reached::Cross(cross) => cross_part(cross, at, len, from).and_then(|cross| cross_out(&cross, chunk, from)),
    }
}

fn copy_part_in(target: &Reached<'_>, at: usize, chunk: &[u8], to: &LocatedPlace<'_>) -> Result<()> {
    let len = chunk.len();
    match target {
        Reached::Segment(piece) => {
            let part: Option<Piece<&Mapping>> = piece.part(at, len);
            part.and_then(|piece| piece.copy_in(chunk)).ok_or_else(|| to.refused(to.len))
        }
        Reached::Piece(piece) => {
            piece.part(at, len).and_then(|piece| piece.copy_in(chunk)).ok_or_else(|| to.refused(to.len))
        }
        Reached::Cross(cross) => cross_part(cross, at, len, to).and_then(|cross| cross_in(&cross, chunk, to)),
    }
}

#[cfg(target_os = "linux")]
mod cross {
    use super::*;
    use crate::shm::processes::peer_memory::CrossPlace;

    pub(crate) fn cross_in(cross: &CrossPlace, bytes: &[u8], to: &LocatedPlace<'_>) -> Result<()> {
        cross.write(bytes, to.addr)
    }

    pub(crate) fn cross_out(cross: &CrossPlace, bytes: &mut [u8], from: &LocatedPlace<'_>) -> Result<()> {
        cross.read(bytes, from.addr)
    }

    pub(crate) fn cross_part(
        cross: &CrossPlace,
        offset: usize,
        len: usize,
        place: &LocatedPlace<'_>,
    ) -> Result<CrossPlace> {
        cross.part(offset, len).ok_or_else(|| place.refusal(len, 1))
    }
}

/// Where there are no processes.
#[cfg(not(target_os = "linux"))]
mod cross {
    use super::*;
    use core::convert::Infallible;

    pub(crate) fn cross_in(cross: &Infallible, _: &[u8], _: &LocatedPlace<'_>) -> Result<()> {
        match *cross {}
    }

    pub(crate) fn cross_out(cross: &Infallible, _: &mut [u8], _: &LocatedPlace<'_>) -> Result<()> {
        match *cross {}
    }

    pub(crate) fn cross_part(cross: &Infallible, _: usize, _: usize, _: &LocatedPlace<'_>) -> Result<Infallible> {
        match *cross {}
    }
}

/// Read-modify-write of a word as long as the place, and ring.
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
