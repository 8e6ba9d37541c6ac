//! Iterating over a table, and positions in it.

use super::{Element, Part, Place, Table, element::Probe};
use crate::{AcpError, GlobalAddress, Result};
use std::collections::VecDeque;

/// A position in a table: an element, and the slot that it is in. Plain data, valid at all ranks
/// until the element is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Position {
    /// The number of the rank's part in the table's directory.
    pub rank: usize,
    /// The number of the slot at that rank.
    pub slot: u64,
    /// The address of the element.
    pub element: GlobalAddress,
}

impl Position {
    pub(super) fn new(place: Place, element: GlobalAddress) -> Self {
        Position { rank: place.part, slot: place.slot, element }
    }

    fn place(self) -> Place {
        Place { part: self.rank, slot: self.slot }
    }
}

/// An element of a table, with the locations of its key and its value.
///
/// Any rank may access the global memory at these addresses, for example to change a value by an
/// atomic. They are valid until the element is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The position of the element in the table.
    pub position: Position,
    /// The address of the key.
    pub key: GlobalAddress,
    /// Bytes of the key.
    pub key_bytes: usize,
    /// The address of the value; it has no bytes in sets and multisets.
    pub value: GlobalAddress,
    /// Bytes of the value.
    pub value_bytes: usize,
    /// The count of the key in a multiset; 1 otherwise.
    pub count: u64,
}

impl Entry {
    pub(super) fn of(position: Position, probe: &Probe) -> Result<Self> {
        let (key, value) = (probe.key_at()?, probe.value_at()?);
        let (key_bytes, value_bytes) = (probe.head.key, probe.head.value);
        Ok(Entry { position, key, key_bytes, value, value_bytes, count: probe.head.count })
    }
}

impl Table {
    /// Returns the first element.
    pub(crate) async fn first(&self, asked: Part) -> Result<Option<Entry>> {
        self.first_of(self.places(asked)).await
    }

    /// Returns the first element in the parts after the last part at this rank.
    pub(crate) async fn first_after_local(&self) -> Result<Option<Entry>> {
        let Some(last) = self.parts(Part::Local).last() else { return Ok(None) };
        self.first_of(self.places(Part::Whole).filter(|place| place.part > last)).await
    }

    /// Returns the element after a position.
    pub(crate) async fn after(&self, position: Position, asked: Part) -> Result<Option<Entry>> {
        let (_, next) = self.locate(position).await?;
        match next {
            Some(entry) => Ok(Some(entry)),
            None => self.first_of(self.places(asked).filter(|place| *place > position.place())).await,
        }
    }

    /// Returns the element at a position.
    pub(crate) async fn entry(&self, position: Position) -> Result<Entry> {
        Ok(self.locate(position).await?.0)
    }

    async fn first_of(&self, places: impl Iterator<Item = Place>) -> Result<Option<Entry>> {
        for place in places {
            let locked = self.lock(place).await?;
            let first = locked.slot.list.walk().next(&locked.slot.elements).await;
            if let Some(probe) = locked.unlock(first).await? {
                return Entry::of(Position::new(place, probe.address), &probe).map(Some);
            }
        }
        Ok(None)
    }

    /// Finds an element in its slot; returns it and the next one there.
    async fn locate(&self, position: Position) -> Result<(Entry, Option<Entry>)> {
        let (place, gone) = (position.place(), AcpError::NoSuchElement { address: position.element });
        if place.part >= self.directory.len() || place.slot >= self.at.slots {
            return Err(gone);
        }
        let locked = self.lock(place).await?;
        let found = async {
            let (mut walk, elements) = (locked.slot.list.walk(), &locked.slot.elements);
            while let Some(probe) = walk.next(elements).await? {
                if probe.address == position.element {
                    return Ok(Some((probe, walk.next(elements).await?)));
                }
            }
            Ok(None)
        };
        let found = found.await;
        let (probe, next) = locked.unlock(found).await?.ok_or(gone)?;
        let entry = |probe: &Probe| Entry::of(Position::new(place, probe.address), probe);
        Ok((entry(&probe)?, next.as_ref().map(entry).transpose()?))
    }
}

/// An iteration over a table, slot by slot: each slot's elements are copied atomically.
#[derive(Debug)]
pub(crate) struct Scan {
    table: Table,
    asked: Part,
    /// The next slot, if there is one.
    next: Option<Place>,
    /// The remaining elements of the last slot that was read.
    read: VecDeque<Element>,
}

impl Scan {
    pub(crate) fn new(table: &Table, asked: Part) -> Self {
        Scan { table: table.clone(), asked, next: table.places(asked).next(), read: VecDeque::new() }
    }

    /// Returns the next element that has been read; `None` if there is none.
    pub(crate) fn take(&mut self) -> Option<Element> {
        self.read.pop_front()
    }

    /// Reads slots until one has elements; returns whether there are any.
    pub(crate) async fn fill(&mut self) -> Result<bool> {
        while self.read.is_empty() {
            let Some(place) = self.next else { return Ok(false) };
            self.read = self.table.snapshot(place).await?.into();
            self.next = self.place_after(place);
        }
        Ok(true)
    }

    fn place_after(&self, place: Place) -> Option<Place> {
        let (table, slot) = (&self.table, place.slot + 1);
        if slot < table.at.slots {
            return Some(Place { part: place.part, slot });
        }
        let part = table.parts(self.asked).find(|part| *part > place.part)?;
        Some(Place { part, slot: 0 })
    }
}
