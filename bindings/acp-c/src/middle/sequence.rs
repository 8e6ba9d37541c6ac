//! Vectors and deques as sequences of bytes.

use super::{
    call::{CallError, Result, call, run},
    types::{Element, Index, Object, Pair, address, rank},
};
use acp::{Acp, Arrangement, Sequence};
use core::{ffi::c_int, ops::Range};

type Bytes<A> = Sequence<u8, A>;

fn open<A: Arrangement>(acp: &Acp, object: Object) -> Result<Bytes<A>> {
    Ok(Sequence::from_address(acp, address(object.ga)?))
}

pub(super) fn create<A: Arrangement>(name: &'static str, size: usize, on: c_int) -> Object {
    call(name, Object::NONE, async |acp| {
        Ok(Object::at(Bytes::<A>::create_zeroed(acp, size, rank(on)?).await?.address()))
    })
}

pub(super) fn destroy<A: Arrangement>(name: &'static str, object: Object) {
    run(name, async |acp| Ok(open::<A>(acp, object)?.destroy().await?));
}

pub(super) fn clear<A: Arrangement>(name: &'static str, object: Object) {
    run(name, async |acp| Ok(open::<A>(acp, object)?.clear().await?));
}

pub(super) fn size<A: Arrangement>(name: &'static str, object: Object) -> usize {
    call(name, 0, async |acp| Ok(open::<A>(acp, object)?.len().await?))
}

pub(super) fn capacity<A: Arrangement>(name: &'static str, object: Object) -> usize {
    call(name, 0, async |acp| Ok(open::<A>(acp, object)?.capacity().await?))
}

pub(super) fn reserve<A: Arrangement>(name: &'static str, object: Object, size: usize) {
    run(name, async |acp| Ok(open::<A>(acp, object)?.reserve(size).await?));
}

pub(super) fn swap<A: Arrangement>(name: &'static str, [one, other]: [Object; 2]) {
    run(name, async |acp| Ok(open::<A>(acp, one)?.swap(&open(acp, other)?).await?));
}

pub(super) fn assign<A: Arrangement>(name: &'static str, to: Object, from: Object) {
    run(name, async |acp| Ok(open::<A>(acp, to)?.assign(&open::<A>(acp, from)?).await?));
}

pub(super) fn assign_range<A: Arrangement>(name: &'static str, to: Object, range: [Index; 2]) {
    run(name, async |acp| {
        let (from, range) = ordered(range)?;
        Ok(open::<A>(acp, to)?.assign_range(&open::<A>(acp, from)?, range).await?)
    });
}

pub(super) fn at<A: Arrangement>(name: &'static str, it: Index) -> u64 {
    call(name, 0, async |acp| Ok(open::<A>(acp, it.object)?.at(it.place()?).await?.to_bits()))
}

/// Returns the end; the beginning if the call fails.
pub(super) fn end<A: Arrangement>(name: &'static str, object: Object) -> Index {
    call(name, Index::at(object, 0), async |acp| Ok(Index::at(object, open::<A>(acp, object)?.len().await?)))
}

/// Inserts before a position, at the end for later positions; returns the position unchanged if that
/// fails.
pub(super) fn insert<A: Arrangement>(name: &'static str, it: Index, ga: u64, size: usize) -> Index {
    call(name, it, async |acp| {
        let to = open::<A>(acp, it.object)?;
        let place = it.place()?.min(to.len().await?);
        if size > 0 {
            to.insert_from(place, address(ga)?, size).await?;
        }
        Ok(Index::at(it.object, place))
    })
}

pub(super) fn insert_range<A: Arrangement>(name: &'static str, it: Index, range: [Index; 2]) -> Index {
    call(name, it, async |acp| {
        let (to, (from, range)) = (open::<A>(acp, it.object)?, ordered(range)?);
        let place = it.place()?.min(to.len().await?);
        to.insert_range(place, &open::<A>(acp, from)?, range).await?;
        Ok(Index::at(it.object, place))
    })
}

/// Removes bytes, at most to the end.
pub(super) fn erase<A: Arrangement>(name: &'static str, it: Index, size: usize) -> Index {
    call(name, it, async |acp| {
        let from = open::<A>(acp, it.object)?;
        let (place, len) = (it.place()?, from.len().await?);
        from.erase(place..place.saturating_add(size).min(len.max(place))).await?;
        Ok(it)
    })
}

/// Removes a range; returns its end if it is not one.
pub(super) fn erase_range<A: Arrangement>(name: &'static str, range: [Index; 2]) -> Index {
    let [start, end] = range;
    call(name, end, async |acp| {
        let (from, range) = ordered(range)?;
        open::<A>(acp, from)?.erase(range).await?;
        Ok(start)
    })
}

pub(super) fn push_back<A: Arrangement>(name: &'static str, object: Object, ga: u64, size: usize) {
    run(name, async |acp| match size {
        0 => Ok(()),
        _ => Ok(open::<A>(acp, object)?.extend_from(address(ga)?, size).await?),
    });
}

/// Removes bytes at an end, at most all.
pub(super) fn pop<A: Arrangement>(name: &'static str, object: Object, size: usize, front: bool) {
    run(name, async |acp| {
        let from = open::<A>(acp, object)?;
        let len = from.len().await?;
        let left = len.saturating_sub(size);
        Ok(from.erase(if front { 0..len - left } else { left..len }).await?)
    });
}

/// Returns the locations of at most `size` bytes from a position on.
pub(super) fn pieces<A: Arrangement>(name: &'static str, it: Index, size: usize) -> Pair {
    call(name, Pair::default(), async |acp| {
        let of = open::<A>(acp, it.object)?;
        let (place, len) = (it.place()?, of.len().await?);
        let pieces = of.pieces(place..place.saturating_add(size).min(len.max(place))).await?;
        let mut pieces = pieces.into_iter().map(|(at, size)| Element { ga: at.to_bits(), size });
        let mut next = || pieces.next().unwrap_or_default();
        Ok(Pair { first: next(), second: next() })
    })
}

pub(super) fn advance(it: Index, by: c_int) -> Index {
    Index { index: it.index.saturating_add(by), ..it }
}

pub(super) fn distance(first: Index, last: Index) -> c_int {
    last.index.saturating_sub(first.index)
}

/// Returns the object and the range between two positions in it.
fn ordered([start, end]: [Index; 2]) -> Result<(Object, Range<usize>)> {
    match start.object == end.object && start.index <= end.index {
        true => Ok((start.object, start.place()?..end.place()?)),
        false => Err(CallError::Argument("a range whose end does not follow its start")),
    }
}
