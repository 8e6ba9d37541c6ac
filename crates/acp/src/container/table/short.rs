//! Looking up a key whose element one short read of mapped memory yields completely.
//!
//! The general search, [`Elements::seek`](super::elements::Elements::seek), is written for any memory: its buffers move
//! from future to future, which takes several times as long as the search. This one has no futures, and leaves all that
//! is unusual to the general one.

use super::{
    Table,
    element::{Kind, from_word},
    slot::LIST,
};
use crate::{GlobalAddress, Result, container::mapped::MappedHeap};
use core::ops::Range;
use rdma_fabric::provider::SHORT;

/// The address of an element, and the place of its value in the bytes read.
type Short = (GlobalAddress, Range<usize>);

impl Table {
    /// Calls `used` with the address of the first element of a key, and the value. Returns `None`, with no effect, if
    /// that needs the general search: the memory is not mapped, the lock is held, the element is long, or something is
    /// damaged.
    #[inline]
    pub(crate) fn short_value<Out>(
        &self,
        key: &[u8],
        used: impl FnOnce(GlobalAddress, &[u8]) -> Out,
    ) -> Option<Result<Option<Out>>> {
        let mut bytes = [0; SHORT];
        let found = self.short(key, &mut bytes)?;
        Some(found.map(|found| found.map(|(address, value)| used(address, &bytes[value]))))
    }

    #[inline(never)]
    fn short(&self, key: &[u8], bytes: &mut [u8; SHORT]) -> Option<Result<Option<Short>>> {
        let place = self.place(key);
        let (at, heap) = (self.slot_at(place).ok()?, self.heaps.get(place.part)?);
        if let Some(heap) = heap.get() {
            // Its line comes from another rank's cache, while the state is entered.
            self.acp.fabric().direct().expect_put_at(heap, at.offset() as usize);
        }
        self.acp.mapped(at, |mapped| {
            heap.get_or_init(|| mapped.heap.clone());
            mapped.locked_now(at, || search(mapped, self.kind, at, key, bytes))
        })
    }
}

/// Reads the first element of a key in a slot whose lock is held; returns `None` if the general search must decide.
#[inline(always)]
fn search(
    mapped: MappedHeap<'_>,
    kind: Kind,
    slot: GlobalAddress,
    key: &[u8],
    bytes: &mut [u8; SHORT],
) -> Option<Option<Short>> {
    let [head, _, count] = mapped.get_words(slot, LIST)?;
    let (mut next, mut left, start) = (from_word(head)?, count, kind.head_bytes());
    while let Some(address) = next {
        // Along damaged links, a walk takes no longer than the count allows, which the general search checks.
        left = left.checked_sub(1).filter(|left| *left < MOST)?;
        mapped.get(address, 0, bytes)?;
        let head = kind.decode(bytes)?;
        if head.key == key.len() {
            let key_end = start.checked_add(head.key)?;
            let value = key_end..key_end.checked_add(head.value)?;
            if is_same(bytes.get(start..key_end)?, key) {
                return (value.end <= SHORT).then_some(Some((address, value)));
            }
        }
        next = head.next;
    }
    Some(None)
}

/// The number of elements above which a slot is left to the general search.
const MOST: u64 = 1 << 10;

/// Compares byte strings of the same length.
#[inline(always)]
fn is_same(a: &[u8], b: &[u8]) -> bool {
    match (<[u8; 8]>::try_from(a), <[u8; 8]>::try_from(b)) {
        // The usual length, without a call.
        (Ok(a), Ok(b)) => u64::from_ne_bytes(a) == u64::from_ne_bytes(b),
        _ => a == b,
    }
}
