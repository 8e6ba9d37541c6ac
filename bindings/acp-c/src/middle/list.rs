//! Lists.

#![allow(unsafe_code, reason = "exported names; nothing is dereferenced")]

use super::{
    call::{Result, call, run},
    types::{Element, ListIt, Object, address, bytes, rank},
};
use acp::{Acp, AcpError, List, ListPosition};
use core::ffi::c_int;

pub(super) type Bytes = List<[u8]>;

pub(super) fn open(acp: &Acp, list: Object) -> Result<Bytes> {
    Ok(List::from_address(acp, address(list.ga)?))
}

// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_create_list(on: c_int) -> Object {
    call("acp_create_list", Object::NONE, async |acp| Ok(Object::at(Bytes::create(acp, rank(on)?).await?.address())))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_destroy_list(list: Object) {
    run("acp_destroy_list", async |acp| Ok(open(acp, list)?.destroy().await?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_clear_list(list: Object) {
    run("acp_clear_list", async |acp| Ok(open(acp, list)?.clear().await?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_empty_list(list: Object) -> c_int {
    call("acp_empty_list", 1, async |acp| Ok(c_int::from(open(acp, list)?.is_empty().await?)))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_size_list(list: Object) -> usize {
    call("acp_size_list", 0, async |acp| Ok(open(acp, list)?.len().await?))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_swap_list(one: Object, other: Object) {
    run("acp_swap_list", async |acp| Ok(open(acp, one)?.swap(&open(acp, other)?).await?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_list(to: Object, from: Object) {
    run("acp_assign_list", async |acp| Ok(open(acp, to)?.assign(&open(acp, from)?).await?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_assign_range_list(list: Object, start: ListIt, end: ListIt) {
    run("acp_assign_range_list", async |acp| {
        let from = open(acp, start.list)?;
        Ok(open(acp, list)?.assign_range(&from, start.position()?, end.position()?).await?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_begin_list(list: Object) -> ListIt {
    call("acp_begin_list", ListIt::failed(list), async |acp| Ok(open(acp, list)?.begin().await?.into()))
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_end_list(list: Object) -> ListIt {
    ListIt { list, elem: list.ga }
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_list(it: ListIt, elem: Element, on: c_int) -> ListIt {
    call("acp_insert_list", ListIt::failed(it.list), async |acp| {
        insert(acp, &open(acp, it.list)?, it.position()?, elem, on).await
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_insert_range_list(it: ListIt, start: ListIt, end: ListIt) -> ListIt {
    call("acp_insert_range_list", ListIt::failed(it.list), async |acp| {
        let (to, from) = (open(acp, it.list)?, open(acp, start.list)?);
        Ok(to.insert_range(it.position()?, &from, start.position()?, end.position()?).await?.into())
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_push_back_list(list: Object, elem: Element, on: c_int) {
    run("acp_push_back_list", async |acp| {
        let to = open(acp, list)?;
        insert(acp, &to, to.end(), elem, on).await.map(drop)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_push_front_list(list: Object, elem: Element, on: c_int) {
    run("acp_push_front_list", async |acp| {
        let to = open(acp, list)?;
        insert(acp, &to, to.begin().await?, elem, on).await.map(drop)
    });
}

async fn insert(acp: &Acp, to: &Bytes, before: ListPosition, elem: Element, on: c_int) -> Result<ListIt> {
    let value = bytes(acp, elem).await?;
    Ok(to.insert(before, &value, rank(on)?).await?.into())
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_list(it: ListIt) -> ListIt {
    call("acp_erase_list", ListIt::failed(it.list), async |acp| {
        Ok(open(acp, it.list)?.erase(it.position()?).await?.into())
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_erase_range_list(start: ListIt, end: ListIt) -> ListIt {
    call("acp_erase_range_list", ListIt::failed(start.list), async |acp| {
        Ok(open(acp, start.list)?.erase_range(start.position()?, end.position()?).await?.into())
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_pop_back_list(list: Object) {
    run("acp_pop_back_list", async |acp| Ok(open(acp, list)?.pop_back().await.map(drop)?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_pop_front_list(list: Object) {
    run("acp_pop_front_list", async |acp| Ok(open(acp, list)?.pop_front().await.map(drop)?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_reverse_list(list: Object) {
    run("acp_reverse_list", async |acp| Ok(open(acp, list)?.reverse().await?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_unique_list(list: Object) {
    run("acp_unique_list", async |acp| Ok(open(acp, list)?.dedup().await.map(drop)?));
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_remove_list(list: Object, elem: Element) {
    run("acp_remove_list", async |acp| {
        let value = bytes(acp, elem).await?;
        Ok(open(acp, list)?.remove(&value).await.map(drop)?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_splice_list(to: ListIt, from: ListIt) {
    run("acp_splice_list", async |acp| {
        Ok(open(acp, to.list)?.splice(to.position()?, &open(acp, from.list)?, from.position()?).await?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_splice_range_list(to: ListIt, start: ListIt, end: ListIt) {
    run("acp_splice_range_list", async |acp| {
        let from = open(acp, start.list)?;
        Ok(open(acp, to.list)?.splice_range(to.position()?, &from, start.position()?, end.position()?).await?)
    });
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_increment_list_it(it: ListIt) -> ListIt {
    moved("acp_increment_list_it", it, 1)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_decrement_list_it(it: ListIt) -> ListIt {
    moved("acp_decrement_list_it", it, -1)
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_advance_list_it(it: ListIt, n: c_int) -> ListIt {
    moved("acp_advance_list_it", it, n)
}

/// Moves a position, at most to the end, or back to the first element.
fn moved(name: &'static str, it: ListIt, by: c_int) -> ListIt {
    call(name, ListIt::failed(it.list), async |acp| {
        let (list, mut at) = (open(acp, it.list)?, it.position()?);
        for _ in 0..by.unsigned_abs() {
            let step = if by > 0 { list.next(at).await } else { list.previous(at).await };
            at = match step {
                Ok(next) => next,
                Err(AcpError::NoSuchElement { .. }) if at.list == list.address() => break,
                Err(error) => return Err(error.into()),
            };
        }
        Ok(at.into())
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_dereference_list_it(it: ListIt) -> Element {
    call("acp_dereference_list_it", Element::default(), async |acp| {
        let (value, size) = open(acp, it.list)?.element(it.position()?).await?;
        Ok(Element { ga: value.to_bits(), size: size as usize })
    })
}

// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_distance_list_it(first: ListIt, last: ListIt) -> c_int {
    call("acp_distance_list_it", 0, async |acp| {
        let steps = open(acp, first.list)?.distance(first.position()?, last.position()?).await?;
        Ok(c_int::try_from(steps).unwrap_or(c_int::MAX))
    })
}
