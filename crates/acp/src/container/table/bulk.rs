//! Calls on a whole table, or on the calling rank's part of it.
//!
//! They lock one slot after the other, so calls of other ranks may run in between.

use super::{
    Element, Part, Place, SLOT_BYTES, Table,
    elements::Elements,
    slot::{Joining, List, Slot, Unwritten},
};
use crate::{Acp, GlobalAddress, Result};
use std::collections::BTreeMap;

/// The maximum number of slots read at a time.
const SLOTS_AT_ONCE: u64 = 128;

/// An element that has left its table to be moved to another one.
struct Moving {
    old: GlobalAddress,
    /// Its new address: that of a copy, if it moves to another rank.
    new: GlobalAddress,
    element: Element,
}

impl Table {
    /// Returns the number of elements.
    pub(crate) async fn len(&self, asked: Part) -> Result<usize> {
        let mut sum = 0u64;
        for part in self.parts(asked) {
            let mut slot = 0;
            while slot < self.at.slots {
                let slots = (self.at.slots - slot).min(SLOTS_AT_ONCE);
                let mut words = vec![[0u64; SLOT_BYTES as usize / 8]; slots as usize];
                self.acp.read(self.slot_at(Place { part, slot })?, &mut words).await?;
                sum += words.iter().map(|[.., count]| count).sum::<u64>();
                slot += slots;
            }
        }
        Ok(sum as usize)
    }

    /// Reads a slot's elements.
    pub(super) async fn snapshot(&self, place: Place) -> Result<Vec<Element>> {
        if let Some(elements) = self.at_once(place, None, async |slot| slot.all().await) {
            return elements;
        }
        let locked = self.lock(place).await?;
        let elements = locked.slot.all().await;
        locked.unlock(elements).await
    }

    async fn collect(&self, asked: Part) -> Result<Vec<Element>> {
        let mut all = vec![];
        for place in self.places(asked) {
            all.append(&mut self.snapshot(place).await?);
        }
        Ok(all)
    }

    /// Removes all selected elements.
    pub(crate) async fn clear(&self, asked: Part) -> Result<()> {
        for place in self.places(asked) {
            let emptied = self.at_once(place, None, async |slot| {
                let list = core::mem::take(&mut slot.list);
                if list.count > 0 { slot.write_back().await.map(|()| list) } else { Ok(list) }
            });
            let list = match emptied {
                Some(list) => list?,
                None => {
                    let locked = self.lock(place).await?;
                    match locked.slot.list.count {
                        0 => locked.unlock(Ok(List::default())).await?,
                        _ => locked.changed(take_list).await?,
                    }
                }
            };
            self.free_list(list).await?;
        }
        Ok(())
    }

    /// Frees the elements of a list to which no slot refers any longer.
    async fn free_list(&self, list: List) -> Result<()> {
        let (mut walk, elements) = (list.walk(), Elements { memory: self.acp.clone(), kind: self.kind });
        while let Some(probe) = walk.next(&elements).await? {
            self.acp.free(probe.address).await?;
        }
        Ok(())
    }

    /// Inserts the selected elements of another table.
    pub(crate) async fn merge(&self, from: &Table, asked: Part) -> Result<()> {
        let elements = from.collect(asked).await?;
        self.insert_all(elements, None).await
    }

    /// Replaces the selected elements with those of another table.
    pub(crate) async fn assign(&self, from: &Table, asked: Part) -> Result<()> {
        if self.is(from) {
            return Ok(());
        }
        let elements = from.collect(asked).await?;
        self.insert_all(elements, Some(asked)).await
    }

    /// Inserts elements; empties the slots of `emptied` first. Memory for all elements is allocated
    /// before anything is changed.
    async fn insert_all(&self, elements: Vec<Element>, emptied: Option<Part>) -> Result<()> {
        let mut copies = BTreeMap::<Place, Vec<(Unwritten, Element)>>::new();
        for place in emptied.into_iter().flat_map(|part| self.places(part)) {
            copies.insert(place, vec![]);
        }
        for element in elements {
            let place = self.place(element.key());
            match self.allocate(place.part, element.count, element.key(), element.value()).await {
                Ok(copy) => copies.entry(place).or_default().push((copy, element)),
                Err(error) => {
                    for (copy, _) in copies.into_values().flatten() {
                        self.acp.free(copy.address).await?;
                    }
                    return Err(error);
                }
            }
        }
        for (place, copies) in copies {
            let is_emptied = emptied.is_some_and(|part| self.is_in(place.part, part));
            let slot = self.lock(place).await?;
            let (list, unneeded) = slot
                .changed(move |mut slot| async move {
                    let list = if is_emptied { core::mem::take(&mut slot.list) } else { List::default() };
                    let done = slot.admit_new(copies).await;
                    (slot, done.map(|unneeded| (list, unneeded)))
                })
                .await?;
            self.free_list(list).await?;
            for address in unneeded {
                self.acp.free(address).await?;
            }
        }
        Ok(())
    }

    /// Moves the selected elements of another table into this one.
    pub(crate) async fn append(&self, from: &Table, asked: Part) -> Result<()> {
        if self.is(from) {
            return Ok(());
        }
        for place in from.places(asked) {
            let moving = from.detach(place, self).await?;
            self.admit_all(moving).await?;
        }
        Ok(())
    }

    /// Exchanges the elements of two tables.
    pub(crate) async fn swap(&self, other: &Table) -> Result<()> {
        let ranks = |table: &Table| table.directory.iter().map(|part| part.rank()).collect::<Vec<_>>();
        if self.is(other) {
            Ok(())
        } else if self.at.slots == other.at.slots && ranks(self) == ranks(other) {
            self.swap_slots(other).await
        } else {
            let mine = self.detach_all(other).await?;
            match other.detach_all(self).await {
                Ok(theirs) => {
                    other.admit_all(mine).await?;
                    self.admit_all(theirs).await
                }
                Err(error) => {
                    self.take_back(mine).await?;
                    Err(error)
                }
            }
        }
    }

    /// Exchanges the lists of all pairs of slots.
    async fn swap_slots(&self, other: &Table) -> Result<()> {
        // All ranks lock the table with the lower address first.
        let (first, second) = if self.at.address < other.at.address { (self, other) } else { (other, self) };
        for place in self.places(Part::Whole) {
            let first = first.lock(place).await?;
            let mut second = match second.lock(place).await {
                Ok(second) => second,
                Err(error) => return first.unlock(Err(error)).await,
            };
            first
                .changed(|mut first| async move {
                    core::mem::swap(&mut first.list, &mut second.slot.list);
                    let written = second.slot.write_back().await;
                    let done = second.unlock(written).await;
                    (first, done)
                })
                .await?;
        }
        Ok(())
    }

    /// Removes all elements from a slot, and allocates memory for them where `to` places them.
    async fn detach(&self, place: Place, to: &Table) -> Result<Vec<Moving>> {
        let slot = self.lock(place).await?;
        let mut moving = vec![];
        let copied = async {
            for element in slot.slot.all().await? {
                let (part, old) = (to.place(element.key()).part, element.address);
                let new = match to.rank_of(part) {
                    rank if rank == old.rank() => old,
                    _ => to.copy(part, &element).await?,
                };
                moving.push(Moving { old, new, element });
            }
            Ok(())
        };
        if let Err(error) = copied.await {
            let unlocked = slot.unlock(Err(error)).await;
            for Moving { old, new, .. } in moving {
                self.free_unless(new, old).await?;
            }
            return unlocked;
        }
        slot.changed(take_list).await?;
        Ok(moving)
    }

    /// Allocates and writes a copy of an element, which is in no list.
    async fn copy(&self, part: usize, element: &Element) -> Result<GlobalAddress> {
        let mut copy = self.allocate(part, element.count, element.key(), element.value()).await?;
        let address = copy.address;
        match self.acp.write(address, copy.bytes(None)).await {
            Ok(()) => Ok(address),
            Err(error) => {
                self.acp.free(address).await?;
                Err(error)
            }
        }
    }

    async fn detach_all(&self, to: &Table) -> Result<Vec<Moving>> {
        let mut all = vec![];
        for place in self.places(Part::Whole) {
            match self.detach(place, to).await {
                Ok(mut moving) => all.append(&mut moving),
                Err(error) => {
                    self.take_back(all).await?;
                    return Err(error);
                }
            }
        }
        Ok(all)
    }

    /// Returns elements to this table, from which they were moved.
    async fn take_back(&self, moving: Vec<Moving>) -> Result<()> {
        let back = |Moving { old, new, element }| Moving { old: new, new: old, element };
        self.admit_all(moving.into_iter().map(back).collect()).await
    }

    /// Admits elements, and frees those that are not needed.
    async fn admit_all(&self, moving: Vec<Moving>) -> Result<()> {
        for Moving { old, new, element } in moving {
            let slot = self.lock(self.place(element.key())).await?;
            let admitted = slot
                .changed(|mut slot| async move {
                    let done = slot.admit(Joining::Written(new), element.key(), element.count).await;
                    (slot, done)
                })
                .await?;
            self.free_unless(old, new).await?;
            if !admitted {
                self.acp.free(new).await?;
            }
        }
        Ok(())
    }

    /// Frees an element, unless it is `kept`.
    async fn free_unless(&self, address: GlobalAddress, kept: GlobalAddress) -> Result<()> {
        if address == kept { Ok(()) } else { self.acp.free(address).await }
    }
}

/// Removes the whole list from a slot.
async fn take_list(mut slot: Slot<Acp>) -> (Slot<Acp>, Result<List>) {
    let list = core::mem::take(&mut slot.list);
    (slot, Ok(list))
}

impl Slot<Acp> {
    /// Writes and admits elements; returns those that are not needed.
    async fn admit_new(&mut self, copies: Vec<(Unwritten, Element)>) -> Result<Vec<GlobalAddress>> {
        let mut unneeded = vec![];
        for (copy, element) in copies {
            let address = copy.address;
            if !self.admit(Joining::Unwritten(copy), element.key(), element.count).await? {
                unneeded.push(address);
            }
        }
        Ok(unneeded)
    }
}
