//! Sorting and merging lists by a function of the program.

#![allow(unsafe_code, reason = "exported names")]

use super::{
    call::{Result, call, run},
    list::{Bytes, open},
    types::{Element, Object},
};
use acp::{Acp, ListElement, ListPosition};
use core::ffi::c_int;

/// Compares two values in global memory: less than, equal to or more than 0.
type Compare = extern "C" fn(Element, Element) -> c_int;

/// Sorts the elements. No call is in progress while `compare` runs, so it may call this library.
// SAFETY: the name is ACP's; a program has one ACP.
#[unsafe(no_mangle)]
extern "C" fn acp_sort_list(list: Object, compare: Option<Compare>) {
    let Some(compare) = compare else { return };
    let Some(elements) = elements("acp_sort_list", list) else { return };
    let mut sorted: Vec<ListElement> = Vec::with_capacity(elements.len());
    for element in elements {
        // Not `sort_by`, which panics for orders that are not total.
        let at = sorted.partition_point(|before| compare(value(before), value(&element)) <= 0);
        sorted.insert(at, element);
    }
    let order: Vec<_> = sorted.iter().map(|element| element.position).collect();
    run("acp_sort_list", async |acp| Ok(open(acp, list)?.arrange(&order).await?));
}

/// Moves the elements of `from` into `to`; of equal ones, those of `to` come first.
// SAFETY: as above.
#[unsafe(no_mangle)]
extern "C" fn acp_merge_list(to: Object, from: Object, compare: Option<Compare>) {
    let Some(compare) = compare.filter(|_| to != from) else { return };
    let (Some(mine), Some(theirs)) = (elements("acp_merge_list", to), elements("acp_merge_list", from)) else { return };
    let mut order = Vec::with_capacity(mine.len().saturating_add(theirs.len()));
    let (mut mine, mut theirs) = (mine.iter().peekable(), theirs.iter().peekable());
    while let (Some(left), Some(right)) = (mine.peek(), theirs.peek()) {
        let next = if compare(value(left), value(right)) <= 0 { mine.next() } else { theirs.next() };
        order.extend(next);
    }
    order.extend(mine.chain(theirs));
    run("acp_merge_list", async |acp| {
        let (to, from) = (open(acp, to)?, open(acp, from)?);
        to.splice_range(to.end(), &from, from.begin().await?, from.end()).await?;
        let moved = |element: &&ListElement| ListPosition { list: to.address(), ..element.position };
        Ok(to.arrange(&order.iter().map(moved).collect::<Vec<_>>()).await?)
    });
}

fn elements(name: &'static str, list: Object) -> Option<Vec<ListElement>> {
    async fn read(acp: &Acp, list: Object) -> Result<Option<Vec<ListElement>>> {
        let list: Bytes = open(acp, list)?;
        Ok(Some(list.elements().await?))
    }
    call(name, None, async |acp| read(acp, list).await)
}

fn value(element: &ListElement) -> Element {
    Element { ga: element.value.to_bits(), size: element.bytes as usize }
}
