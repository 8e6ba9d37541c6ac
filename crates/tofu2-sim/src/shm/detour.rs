//! Operations off the short path: long copies, memory that existed before it was registered, and refusals.
//!
//! The short path knows nothing of them: a place outside its segment holds a piece that refuses every access, and what is
//! refused there comes here.

use super::{
    endpoint::{Endpoint, bits},
    existing::Reached,
    inside::Id,
    mapping::Piece,
    place::Place,
};
use rdma_fabric::{
    Amo, AtomicWord, FabricError, Location, RemoteAddr, Result,
    bytemuck::{bytes_of, bytes_of_mut},
    op::{SinkView, SourceView},
};

/// What is copied at once where neither side is private memory, in bytes.
const CHUNK: usize = 64 << 10;

/// Call `f` with what is at `place`, so that deregistration waits for it.
fn reach<R>(
    endpoint: &Endpoint,
    place: &Place,
    (len, align): (usize, usize),
    f: impl FnOnce(Reached<'_>) -> Result<R>,
) -> Result<R> {
    let RemoteAddr { rank, region, .. } = place.addr();
    let id = Id::new(rank, region);
    if place.len() != len {
        return Err(place.refusal(len, align));
    }
    match place.outside() {
        None => {
            let _inside = endpoint.announce([id]);
            f(Reached::Piece(&place.piece))
        }
        Some(outside) => outside
            .within(endpoint, id, f)
            .unwrap_or_else(|| Err(place.refusal(len, align)))
            .inspect_err(|error| endpoint.job().notice_loss(error)),
    }
}

/// Copy an operation's source to its target, without ringing.
#[cold]
#[inline(never)]
pub(super) fn put(endpoint: &Endpoint, to: &Place, from: SourceView<'_, Place>, align: usize) -> Result<()> {
    match from {
        SourceView::Bytes(bytes) => reach(endpoint, to, (bytes.len(), align), |reached| match reached {
            Reached::Piece(piece) => piece.copy_in(bytes).ok_or_else(|| to.refusal(bytes.len(), align)),
            Reached::Cross(cross) => cross_in(cross, bytes, to),
        }),
        SourceView::Registered(own) => between(endpoint, to, own, align),
    }
}

/// Copy from an operation's target to its sink, without ringing.
#[cold]
#[inline(never)]
pub(super) fn get(endpoint: &Endpoint, from: &Place, to: SinkView<'_, Place>, align: usize) -> Result<()> {
    match to {
        SinkView::Bytes(bytes) => {
            let len = bytes.len();
            reach(endpoint, from, (len, align), |reached| match reached {
                Reached::Piece(piece) => piece.copy_out(bytes).ok_or_else(|| from.refusal(len, align)),
                Reached::Cross(cross) => cross_out(cross, bytes, from),
            })
        }
        SinkView::Registered(own) => between(endpoint, own, from, align),
    }
}

/// Copy from registered memory to registered memory.
fn between(endpoint: &Endpoint, to: &Place, from: &Place, align: usize) -> Result<()> {
    let len = from.len();
    let refusal = || if from.is_fit() { to.refusal(len, align) } else { from.refusal(len, align) };
    if to.outside().is_none() && from.outside().is_none() {
        let _inside = endpoint.announce([to, from].map(|place| Id::new(place.addr().rank, place.addr().region)));
        return to.piece.copy_from(&from.piece).ok_or_else(refusal);
    }
    reach(endpoint, to, (len, align), |target| {
        reach(endpoint, from, (len, align), |source| match (&target, &source) {
            (Reached::Piece(target), Reached::Piece(source)) => target.copy_from(source).ok_or_else(refusal),
            _ => {
                let mut chunk = vec![0u8; len.min(CHUNK)];
                for done in (0..len).step_by(CHUNK) {
                    let chunk = &mut chunk[..CHUNK.min(len - done)];
                    match &source {
                        Reached::Piece(piece) => part(piece, done, chunk.len())
                            .and_then(|piece| piece.copy_out(chunk))
                            .ok_or_else(|| from.refusal(len, align))?,
                        Reached::Cross(cross) => cross_part(cross, done, chunk.len(), from)
                            .and_then(|cross| cross_out(&cross, chunk, from))?,
                    }
                    match &target {
                        Reached::Piece(piece) => part(piece, done, chunk.len())
                            .and_then(|piece| piece.copy_in(chunk))
                            .ok_or_else(|| to.refusal(len, align))?,
                        Reached::Cross(cross) => {
                            cross_part(cross, done, chunk.len(), to).and_then(|cross| cross_in(&cross, chunk, to))?
                        }
                    }
                }
                Ok(())
            }
        })
    })
}

fn part(piece: &Piece, offset: usize, len: usize) -> Option<Piece> {
    piece.part(offset, len)
}

#[cfg(target_os = "linux")]
mod cross {
    use super::super::processes::peer_memory::CrossPlace;
    use super::*;

    pub(super) fn cross_in(cross: &CrossPlace, bytes: &[u8], to: &Place) -> Result<()> {
        cross.write(bytes, to.addr())
    }

    pub(super) fn cross_out(cross: &CrossPlace, bytes: &mut [u8], from: &Place) -> Result<()> {
        cross.read(bytes, from.addr())
    }

    pub(super) fn cross_part(cross: &CrossPlace, offset: usize, len: usize, place: &Place) -> Result<CrossPlace> {
        cross.part(offset, len).ok_or_else(|| place.refusal(len, 1))
    }
}

/// Where there are no processes.
#[cfg(not(target_os = "linux"))]
mod cross {
    use super::*;
    use core::convert::Infallible;

    pub(super) fn cross_in(cross: &Infallible, _: &[u8], _: &Place) -> Result<()> {
        match *cross {}
    }

    pub(super) fn cross_out(cross: &Infallible, _: &mut [u8], _: &Place) -> Result<()> {
        match *cross {}
    }

    pub(super) fn cross_part(cross: &Infallible, _: usize, _: usize, _: &Place) -> Result<Infallible> {
        match *cross {}
    }
}

use cross::{cross_in, cross_out, cross_part};

/// An [`Amo`] in registers: its kind and its words. One that is handed to a function out of line as it is has to stand in memory,
/// and then the compiler does not know its kind any more on the short path either.
#[derive(Clone, Copy)]
struct Spread<W>(u8, W, W);

impl<W: AtomicWord> Spread<W> {
    #[inline(always)]
    fn of(amo: Amo<W>) -> Self {
        match amo {
            Amo::Add(v) => Spread(0, v, v),
            Amo::Swap(v) => Spread(1, v, v),
            Amo::CompareSwap { expected, new } => Spread(2, expected, new),
            Amo::Or(v) => Spread(3, v, v),
            Amo::And(v) => Spread(4, v, v),
            Amo::Xor(v) => Spread(5, v, v),
        }
    }

    fn amo(self) -> Amo<W> {
        let Spread(kind, v, new) = self;
        match kind {
            0 => Amo::Add(v),
            1 => Amo::Swap(v),
            2 => Amo::CompareSwap { expected: v, new },
            3 => Amo::Or(v),
            4 => Amo::And(v),
            _ => Amo::Xor(v),
        }
    }
}

/// Read-modify-write, and ring.
#[inline(always)]
pub(super) fn modify<W: AtomicWord>(endpoint: &Endpoint, place: &Place, amo: Amo<W>) -> Result<W> {
    let Spread(kind, first, second) = Spread::of(amo);
    modify_spread(endpoint, place, kind, first, second)
}

#[cold]
#[inline(never)]
fn modify_spread<W: AtomicWord>(endpoint: &Endpoint, place: &Place, kind: u8, first: W, second: W) -> Result<W> {
    let amo = Spread(kind, first, second).amo();
    let (bits4, bits8) = (bits(amo, |value| value.to_bits() as u32), bits(amo, W::to_bits));
    let refusal = || place.refusal(W::BYTES, W::BYTES);
    let outside = place.outside().filter(|_| place.is_fit()).ok_or_else(refusal)?;
    if !outside.has_atomics() {
        let RemoteAddr { rank, region, offset } = place.addr();
        return Err(FabricError::NoAtomics { rank, region, offset });
    }
    let old = reach(endpoint, place, (W::BYTES, W::BYTES), |reached| match reached {
        Reached::Piece(piece) if W::BYTES == 4 => piece.rmw4(bits4).map(u64::from).ok_or_else(refusal),
        Reached::Piece(piece) => piece.rmw8(bits8).ok_or_else(refusal),
        Reached::Cross(_) => Err(refusal()),
    })?;
    place.piece.ring();
    Ok(W::from_bits(old))
}

/// A word (acquire).
#[cold]
#[inline(never)]
pub(super) fn load<W: AtomicWord>(endpoint: &Endpoint, place: &Place) -> Result<W> {
    if place.outside().is_none() {
        return Err(place.refusal(W::BYTES, W::BYTES));
    }
    let mut word = W::zeroed();
    get(endpoint, place, SinkView::Bytes(bytes_of_mut(&mut word)), W::BYTES)?;
    Ok(word)
}

/// Store a word (release), and ring.
#[cold]
#[inline(never)]
pub(super) fn store<W: AtomicWord>(endpoint: &Endpoint, place: &Place, value: W) -> Result<()> {
    if place.outside().is_none() {
        return Err(place.refusal(W::BYTES, W::BYTES));
    }
    put(endpoint, place, SourceView::Bytes(bytes_of(&value)), W::BYTES)?;
    place.piece.ring();
    Ok(())
}
