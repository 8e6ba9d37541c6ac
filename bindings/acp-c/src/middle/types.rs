//! The types of the containers in `acp_middle.h`.

use super::call::{CallError, Result};
use acp::{Acp, Entry, GlobalAddress, ListPosition, Position, TableRef};
use core::ffi::c_int;
use rdma_fabric::Rank;

/// Bytes in global memory.
#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Element {
    pub(super) ga: u64,
    pub(super) size: usize,
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Pair {
    pub(super) first: Element,
    pub(super) second: Element,
}

/// A vector, deque or list.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Object {
    pub(super) ga: u64,
}

/// A position in a vector or deque.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct Index {
    pub(super) object: Object,
    pub(super) index: c_int,
}

/// A position in a list.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct ListIt {
    pub(super) list: Object,
    pub(super) elem: u64,
}

/// A set, multiset or map.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Table {
    pub(super) ga: u64,
    pub(super) num_ranks: u64,
    pub(super) num_slots: u64,
}

/// A position in a table.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub(super) struct TableIt {
    pub(super) table: Table,
    pub(super) rank: c_int,
    pub(super) slot: c_int,
    pub(super) elem: u64,
}

pub(super) fn address(ga: u64) -> Result<GlobalAddress> {
    GlobalAddress::from_bits(ga).ok_or(CallError::Argument("ACP_GA_NULL"))
}

pub(super) fn rank(number: c_int) -> Result<Rank> {
    u32::try_from(number).map(Rank::new).map_err(|_| CallError::Argument("a negative rank"))
}

/// Reads the bytes of an element.
pub(super) async fn bytes(acp: &Acp, element: Element) -> Result<Vec<u8>> {
    match element.size {
        0 => Ok(Vec::new()),
        size => Ok(acp.read_vec(address(element.ga)?, size).await?),
    }
}

/// Reads the bytes of a key, which must not be empty.
pub(super) async fn key(acp: &Acp, element: Element) -> Result<Vec<u8>> {
    match element.size {
        0 => Err(CallError::Argument("an empty key")),
        _ => bytes(acp, element).await,
    }
}

impl Object {
    pub(super) const NONE: Self = Object { ga: 0 };

    pub(super) fn at(address: GlobalAddress) -> Self {
        Object { ga: address.to_bits() }
    }
}

impl Index {
    /// Returns the position as an index that is not negative.
    pub(super) fn place(self) -> Result<usize> {
        usize::try_from(self.index).map_err(|_| CallError::Argument("a negative index"))
    }

    /// Returns the position at an index; the last one that the type can express for larger ones.
    pub(super) fn at(object: Object, index: usize) -> Self {
        Index { object, index: c_int::try_from(index).unwrap_or(c_int::MAX) }
    }
}

impl ListIt {
    pub(super) fn failed(list: Object) -> Self {
        ListIt { list, elem: 0 }
    }

    pub(super) fn position(self) -> Result<ListPosition> {
        Ok(ListPosition { list: address(self.list.ga)?, element: address(self.elem)? })
    }
}

impl From<ListPosition> for ListIt {
    fn from(position: ListPosition) -> Self {
        ListIt { list: Object::at(position.list), elem: position.element.to_bits() }
    }
}

impl Table {
    pub(super) const NONE: Self = Table { ga: 0, num_ranks: 0, num_slots: 0 };

    pub(super) fn place(self) -> Result<TableRef> {
        let place = TableRef::from_words([self.ga, self.num_ranks, self.num_slots]);
        place.ok_or(CallError::Argument("a table without address, ranks or slots"))
    }
}

impl From<TableRef> for Table {
    fn from(at: TableRef) -> Self {
        let [ga, num_ranks, num_slots] = at.to_words();
        Table { ga, num_ranks, num_slots }
    }
}

impl TableIt {
    /// Returns the position after all elements.
    pub(super) fn end(table: Table) -> Self {
        TableIt { table, rank: c_int::try_from(table.num_ranks).unwrap_or(c_int::MAX), slot: 0, elem: 0 }
    }

    /// Returns the position of an entry; the end without one.
    pub(super) fn of(table: Table, entry: Option<Entry>) -> Self {
        let Some(Position { rank, slot, element }) = entry.map(|entry| entry.position) else {
            return Self::end(table);
        };
        match (c_int::try_from(rank), c_int::try_from(slot)) {
            (Ok(rank), Ok(slot)) => TableIt { table, rank, slot, elem: element.to_bits() },
            _ => Self::end(table),
        }
    }

    /// Returns the position of an element.
    pub(super) fn position(self) -> Result<Position> {
        match (usize::try_from(self.rank), u64::try_from(self.slot)) {
            (Ok(rank), Ok(slot)) => Ok(Position { rank, slot, element: address(self.elem)? }),
            _ => Err(CallError::Argument("a negative rank or slot")),
        }
    }
}

/// Returns the key and the value of an entry.
pub(super) fn pair(entry: &Entry) -> Pair {
    let element = |at: GlobalAddress, size| Element { ga: at.to_bits(), size };
    Pair { first: element(entry.key, entry.key_bytes), second: element(entry.value, entry.value_bytes) }
}
