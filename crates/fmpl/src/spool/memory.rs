//! The memory of a spool.

#![deny(clippy::arithmetic_side_effects)]

use crate::{Result, point::Source};
use core::ops::Range;
use rdma_fabric::{Fabric, LocalSpan, Region};

/// Memory in which messages wait: one permanent piece, and more pieces if the spool may grow or a
/// message must be stored.
#[derive(Debug)]
pub(super) struct Memory {
    /// `None` for a piece that was given back to the fabric.
    pieces: Vec<Option<Piece>>,
    /// It grows by at least this many bytes.
    growth: usize,
}

/// The location of a waiting message.
#[derive(Debug)]
pub(crate) struct Room {
    piece: usize,
    range: Range<usize>,
}

#[derive(Debug)]
pub(super) struct Piece {
    _region: Region,
    span: LocalSpan<u8>,
    /// The free ranges, in order of addresses; no two ranges touch.
    free: Vec<Range<usize>>,
    kind: Kind,
}

impl Piece {
    fn is_empty(&self) -> bool {
        self.free.first() == Some(&(0..self.span.len()))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    /// Exists as long as the spool.
    First,
    /// Exists until the spool is trimmed.
    Grown,
    /// Holds a single message, whose receiver was already waiting when there was no room for it.
    Single,
    /// Was the first one before the spool was resized; exists until its messages are received.
    Retired,
}

/// The destination of a message for which there is no room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Otherwise {
    Nowhere,
    /// Into separate memory.
    Alone,
    /// Grow the spool by new memory.
    Grow,
}

/// Messages begin at multiples of this many bytes.
const ALIGN: usize = 64;

impl Memory {
    pub(super) fn new(fabric: &Fabric, bytes: usize, growth: usize) -> Result<Self> {
        let mut memory = Memory { pieces: Vec::new(), growth };
        if bytes > 0 {
            memory.add(fabric, bytes, Kind::First)?;
        }
        Ok(memory)
    }

    /// Replaces the first piece by one of `bytes` bytes, if that is not its length. Messages in the
    /// old piece stay there until they are received.
    pub(super) fn resize(&mut self, fabric: &Fabric, bytes: usize) -> Result<()> {
        let is_first = |place: &Option<Piece>| place.as_ref().is_some_and(|piece| piece.kind == Kind::First);
        let first = self.pieces.iter().position(is_first);
        let length = first.and_then(|at| self.pieces[at].as_ref()).map_or(0, |piece| piece.span.len());
        if bytes == length {
            return Ok(());
        }
        if bytes > 0 {
            self.add(fabric, bytes, Kind::First)?;
        }
        if let Some(place) = first.map(|at| &mut self.pieces[at]) {
            place.take_if(|piece| piece.is_empty());
            if let Some(piece) = place {
                piece.kind = Kind::Retired;
            }
        }
        Ok(())
    }

    fn add(&mut self, fabric: &Fabric, bytes: usize, kind: Kind) -> Result<usize> {
        let region = fabric.alloc(bytes)?;
        let span = region.span(fabric, 0, bytes)?;
        let all = 0..bytes;
        Ok(self.put(Piece { _region: region, span, free: Vec::from([all]), kind }))
    }

    /// Adds a piece; returns its index.
    fn put(&mut self, piece: Piece) -> usize {
        let gone = self.pieces.iter().position(Option::is_none);
        let at = gone.unwrap_or(self.pieces.len());
        match gone {
            Some(at) => self.pieces[at] = Some(piece),
            None => self.pieces.push(Some(piece)),
        }
        at
    }

    pub(super) fn may_hold(&self, bytes: usize) -> bool {
        let is_long_enough = |piece: &Piece| piece.kind == Kind::First && room_of(bytes) <= piece.span.len();
        self.pieces.iter().flatten().any(is_long_enough)
    }

    /// Copies a message here; `None` if there is no room.
    pub(super) fn keep(
        &mut self,
        fabric: &Fabric,
        source: &mut dyn Source,
        otherwise: Otherwise,
    ) -> Result<Option<(Room, LocalSpan<u8>)>> {
        let bytes = source.bytes();
        let Some(room) = self.room(fabric, room_of(bytes), otherwise)? else { return Ok(None) };
        let span = self.span(&room, bytes)?;
        match copy(fabric, source, &span) {
            Ok(()) => Ok(Some((room, span))),
            Err(error) => {
                self.give_back(room);
                Err(error)
            }
        }
    }

    /// Reserves `bytes` bytes, growing if necessary.
    pub(super) fn reserve(&mut self, fabric: &Fabric, bytes: usize) -> Result<(Room, LocalSpan<u8>)> {
        let Some(room) = self.room(fabric, room_of(bytes), Otherwise::Grow)? else {
            unreachable!("room in a piece that was made for it")
        };
        let span = self.span(&room, bytes)?;
        Ok((room, span))
    }

    /// Returns the first bytes of a room.
    #[expect(clippy::arithmetic_side_effects, reason = "the room of a message is at least as long")]
    fn span(&self, room: &Room, bytes: usize) -> Result<LocalSpan<u8>> {
        let Some(piece) = &self.pieces[room.piece] else { unreachable!("room in a piece that is there") };
        Ok(piece.span.slice(room.range.start..room.range.start + bytes)?)
    }

    fn room(&mut self, fabric: &Fabric, bytes: usize, otherwise: Otherwise) -> Result<Option<Room>> {
        for (at, piece) in self.pieces.iter_mut().enumerate() {
            if let Some(piece) = piece
                && piece.kind != Kind::Retired
                && let Some(range) = take(&mut piece.free, bytes)
            {
                return Ok(Some(Room { piece: at, range }));
            }
        }
        let added = match otherwise {
            Otherwise::Nowhere => return Ok(None),
            Otherwise::Alone => self.add(fabric, bytes, Kind::Single)?,
            Otherwise::Grow => {
                let all: usize = self.pieces.iter().flatten().map(|piece| piece.span.len()).sum();
                // If less memory is left, it may still be enough for `bytes` bytes.
                let more = self.add(fabric, bytes.max(self.growth).max(all / 2).next_multiple_of(ALIGN), Kind::Grown);
                more.or_else(|_| self.add(fabric, bytes, Kind::Grown))?
            }
        };
        let range = self.pieces[added].as_mut().and_then(|piece| take(&mut piece.free, bytes));
        Ok(range.map(|range| Room { piece: added, range }))
    }

    /// Returns whether a message waits in a separate piece of memory.
    pub(super) fn is_single(&self, room: &Room) -> bool {
        self.pieces[room.piece].as_ref().is_some_and(|piece| piece.kind == Kind::Single)
    }

    /// Frees the room of a message.
    pub(super) fn give_back(&mut self, room: Room) {
        let place = &mut self.pieces[room.piece];
        let Some(piece) = place else { return };
        give(&mut piece.free, room.range);
        if matches!(piece.kind, Kind::Single | Kind::Retired) && piece.is_empty() {
            *place = None;
        }
    }

    /// Takes out the added pieces that are empty.
    pub(super) fn take_idle(&mut self) -> Vec<Piece> {
        let all = |piece: &mut Piece| piece.kind == Kind::Grown && piece.is_empty();
        self.pieces.iter_mut().filter_map(|place| place.take_if(all)).collect()
    }

    /// Adds empty pieces.
    pub(super) fn give_pieces(&mut self, pieces: Vec<Piece>) {
        for piece in pieces {
            self.put(piece);
        }
    }

    /// Returns whether any pieces were added.
    pub(super) fn has_grown(&self) -> bool {
        self.pieces.iter().flatten().any(|piece| piece.kind != Kind::First)
    }
}

/// Returns the number of bytes that a message in memory occupies: at most `isize::MAX`, rounded up.
fn room_of(bytes: usize) -> usize {
    bytes.max(1).next_multiple_of(ALIGN)
}

/// Copies a message into local fabric memory.
#[expect(clippy::arithmetic_side_effects, reason = "offsets inside the message")]
fn copy(fabric: &Fabric, source: &mut dyn Source, to: &LocalSpan<u8>) -> Result<()> {
    let (mut at, all) = (0, to.len());
    if let Some(from) = source.span() {
        let mut some = [0; 4096];
        while at < all {
            let len = some.len().min(all - at);
            fabric.read(&*from.part(at..at + len)?, &mut some[..len])?;
            fabric.write(&*to.part(at..at + len)?, &some[..len])?;
            at += len;
        }
        return Ok(());
    }
    while at < all {
        let chunk = source.chunk(at, all - at);
        fabric.write(&*to.part(at..at + chunk.len())?, chunk)?;
        at += chunk.len();
    }
    Ok(())
}

/// Takes the first free range that is long enough.
#[expect(clippy::arithmetic_side_effects, reason = "inside a free range")]
fn take(free: &mut Vec<Range<usize>>, bytes: usize) -> Option<Range<usize>> {
    let at = free.iter().position(|range| range.len() >= bytes)?;
    let taken = free[at].start..free[at].start + bytes;
    free[at].start = taken.end;
    if free[at].is_empty() {
        free.remove(at);
    }
    Some(taken)
}

/// Gives a range back.
#[expect(clippy::arithmetic_side_effects, reason = "places of a list")]
fn give(free: &mut Vec<Range<usize>>, range: Range<usize>) {
    let at = free.partition_point(|before| before.start < range.start);
    free.insert(at, range);
    if at + 1 < free.len() && free[at].end == free[at + 1].start {
        free[at].end = free.remove(at + 1).end;
    }
    if at > 0 && free[at - 1].end == free[at].start {
        free[at - 1].end = free.remove(at).end;
    }
}

#[cfg(test)]
#[allow(clippy::arithmetic_side_effects)]
mod tests {
    use super::{give, take};
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn returned_memory_is_free_again(sizes in prop::collection::vec(1usize..300, 1..40), order in any::<u64>()) {
            let all = 0..2000;
            let mut free = Vec::from([all.clone()]);
            let mut taken: Vec<_> = sizes.iter().filter_map(|size| take(&mut free, *size)).collect();
            let mut sorted = taken.clone();
            sorted.sort_by_key(|range| range.start);
            prop_assert!(sorted.windows(2).all(|two| two[0].end <= two[1].start));
            prop_assert!(sorted.iter().all(|range| range.end <= all.end));
            let mut order = order;
            while !taken.is_empty() {
                let range = taken.swap_remove(order as usize % taken.len());
                order = order.rotate_right(7);
                give(&mut free, range);
                prop_assert!(free.windows(2).all(|two| two[0].end < two[1].start));
            }
            prop_assert_eq!(free, Vec::from([all]));
        }
    }
}
