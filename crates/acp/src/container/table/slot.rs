//! A slot while its lock is held.
//!
//! Whoever holds a slot looks at its elements as it likes: if its future is dropped, the slot is
//! unlocked as it was. Changes are made and the slot is unlocked in one piece of [`finish`]ed work,
//! which can't allocate or free, because that waits for others.

use super::{
    Element, Kind, Place, SLOT_BYTES, Table,
    element::{COUNT, NEXT, PREVIOUS, Probe, from_word, to_word},
};
use crate::{
    AcpError, GlobalAddress, Result,
    container::{
        finish::finish_at,
        lock::{Held, lock},
    },
};
use core::future::Future;
use rdma_fabric::provider::SHORT;

/// Where a slot's list is, from the lock on.
const LIST: u64 = 8;

/// A locked slot, and its list, which is written back with the unlock.
pub(super) struct Slot {
    table: Table,
    held: Held,
    at: GlobalAddress,
    pub(super) list: List,
}

/// The list of a slot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct List {
    head: Option<GlobalAddress>,
    tail: Option<GlobalAddress>,
    pub(super) count: u64,
}

/// An element that is allocated and not yet written.
pub(super) struct Unwritten {
    pub(super) address: GlobalAddress,
    bytes: usize,
    short: [u8; SHORT],
    /// Used instead if there are more bytes.
    long: Vec<u8>,
}

impl Unwritten {
    /// Returns the bytes of the element, whose previous one is `previous`.
    pub(super) fn bytes(&mut self, previous: Option<GlobalAddress>) -> &[u8] {
        let bytes = match self.bytes {
            0..=SHORT => &mut self.short[..self.bytes],
            _ => &mut self.long[..],
        };
        bytes[PREVIOUS as usize..PREVIOUS as usize + 8].copy_from_slice(&to_word(previous).to_ne_bytes());
        bytes
    }
}

/// An element that is in no list, to be appended to one.
pub(super) enum Joining {
    Written(GlobalAddress),
    Unwritten(Unwritten),
}

impl Table {
    /// Returns the address of a slot's lock.
    pub(super) fn slot_at(&self, place: Place) -> Result<GlobalAddress> {
        self.directory[place.part].offset_by(place.slot * SLOT_BYTES)
    }

    /// Locks a slot and reads its list.
    pub(super) async fn lock(&self, place: Place) -> Result<Slot> {
        let at = self.slot_at(place)?;
        let held = lock(&self.acp, at).await?;
        let mut words = [0u64; 3];
        let read = self.acp.read(at.offset_by(LIST)?, &mut words).await;
        let list = read.and_then(|()| match (from_word(words[0]), from_word(words[1])) {
            (Some(head), Some(tail)) => Ok(List { head, tail, count: words[2] }),
            _ => Err(AcpError::Damaged { address: at }),
        });
        match list {
            Ok(list) => Ok(Slot { table: self.clone(), held, at, list }),
            Err(error) => {
                held.unlock().await?;
                Err(error)
            }
        }
    }

    /// Allocates an element for a part of the table.
    pub(super) async fn allocate(&self, part: usize, count: u64, key: &[u8], value: &[u8]) -> Result<Unwritten> {
        let bytes = self.kind.head_bytes() + key.len() + value.len();
        let (mut short, mut long) = ([0; SHORT], vec![]);
        let buffer = match bytes {
            0..=SHORT => &mut short[..bytes],
            _ => {
                long.resize(bytes, 0);
                &mut long[..]
            }
        };
        self.kind.encode(count, key, value, buffer);
        let address = self.acp.malloc(bytes, self.rank_of(part)).await?;
        Ok(Unwritten { address, bytes, short, long })
    }

    /// Reads the elements of a list that nobody changes meanwhile.
    pub(super) async fn elements(&self, list: List) -> Result<Vec<Element>> {
        let mut elements = Vec::with_capacity(list.count.min(1 << 10) as usize);
        let mut walk = list.walk();
        while let Some(probe) = walk.next(self).await? {
            elements.push(self.read_element(&probe).await?);
        }
        Ok(elements)
    }
}

/// Reading.
impl Slot {
    /// Returns the first element with a key.
    pub(super) async fn seek(&self, key: &[u8]) -> Result<Option<Probe>> {
        let mut walk = self.list.walk();
        while let Some(probe) = walk.next(&self.table).await? {
            if self.table.has_key(&probe, key).await? {
                return Ok(Some(probe));
            }
        }
        Ok(None)
    }

    /// Unlocks the slot, which has not changed; returns what was found, or the error.
    pub(super) async fn unlock<Out>(self, found: Result<Out>) -> Result<Out> {
        let unlocked = self.held.unlock().await;
        found.and_then(|found| unlocked.map(|()| found))
    }

    /// Changes the slot, writes its list back and unlocks it. Once begun, that is carried through.
    /// If `change` fails, the slot has the list that `change` left.
    pub(super) async fn changed<Out, Change>(self, change: impl FnOnce(Slot) -> Change) -> Result<Out>
    where
        Out: Send + 'static,
        Change: Future<Output = (Slot, Result<Out>)> + Send + 'static,
    {
        let (acp, at) = (self.table.acp.clone(), self.at);
        let change = change(self);
        finish_at(&acp, at, |_| async move {
            let (slot, done) = change.await;
            let written = slot.write_back().await;
            let unlocked = slot.held.unlock().await;
            done.and_then(|done| written.and(unlocked).map(|()| done))
        })
        .await
    }

    /// Puts the list, which is visible after the unlock.
    pub(super) async fn write_back(&self) -> Result<()> {
        let List { head, tail, count } = self.list;
        let words = [to_word(head), to_word(tail), count];
        self.table.acp.put(self.at.offset_by(LIST)?, &words).await
    }
}

/// Changes, which are visible after the unlock.
impl Slot {
    /// Writes an element and appends it.
    pub(super) async fn push_new(&mut self, mut element: Unwritten) -> Result<()> {
        let address = element.address;
        self.table.acp.put(address, element.bytes(self.list.tail)).await?;
        self.link(address).await
    }

    /// Appends an element that is written and in no list.
    async fn push(&mut self, address: GlobalAddress) -> Result<()> {
        self.table.acp.put(address, &[0, to_word(self.list.tail)]).await?;
        self.link(address).await
    }

    /// Has the last element lead to one whose own links say so.
    async fn link(&mut self, address: GlobalAddress) -> Result<()> {
        match self.list.tail {
            Some(tail) => self.table.acp.put(tail.offset_by(NEXT)?, &[address.to_bits()]).await?,
            None => self.list.head = Some(address),
        }
        self.list.tail = Some(address);
        self.list.count += 1;
        Ok(())
    }

    /// Takes an element out of the list; its memory stays. What has been put is visible.
    pub(super) async fn unlink(&mut self, probe: &Probe) -> Result<()> {
        let (acp, head) = (&self.table.acp, &probe.head);
        match head.previous {
            Some(previous) => acp.put(previous.offset_by(NEXT)?, &[to_word(head.next)]).await?,
            None => self.list.head = head.next,
        }
        match head.next {
            Some(next) => acp.put(next.offset_by(PREVIOUS)?, &[to_word(head.previous)]).await?,
            None => self.list.tail = head.previous,
        }
        self.list.count = self.list.count.saturating_sub(1);
        Ok(())
    }

    /// Changes how often a multiset has a key.
    pub(super) async fn set_count(&self, probe: &Probe, count: u64) -> Result<()> {
        self.table.acp.put(probe.address.offset_by(COUNT)?, &[count]).await
    }

    /// Appends an element, unless the table has its key and keeps one of each: then the element is
    /// not needed, and a multiset adds its count to what it has. Returns whether it was appended.
    pub(super) async fn admit(&mut self, element: Joining, key: &[u8], count: u64) -> Result<bool> {
        let found = match self.table.kind {
            Kind::Multimap => None,
            _ => self.seek(key).await?,
        };
        match (&found, element) {
            (Some(probe), _) if self.table.kind == Kind::Multiset => {
                self.set_count(probe, probe.head.count.saturating_add(count)).await?;
            }
            (Some(_), _) => {}
            (None, Joining::Unwritten(element)) => self.push_new(element).await?,
            (None, Joining::Written(address)) => self.push(address).await?,
        }
        // Whatever is put next may be where something has just been put.
        self.settle().await?;
        Ok(found.is_none())
    }

    /// Makes visible what has been put.
    pub(super) async fn settle(&self) -> Result<()> {
        self.table.acp.flush_all().await
    }
}

impl List {
    pub(super) fn walk(&self) -> Walk {
        Walk { next: self.head, left: self.count }
    }

    /// Returns a walk over the elements after one.
    pub(super) fn walk_after(&self, probe: &Probe) -> Walk {
        Walk { next: probe.head.next, left: self.count }
    }
}

/// A walk over the elements of a list, which nobody changes meanwhile except at what was passed.
pub(super) struct Walk {
    next: Option<GlobalAddress>,
    /// Elements that there still can be.
    left: u64,
}

impl Walk {
    /// Looks at the next element.
    pub(super) async fn next(&mut self, table: &Table) -> Result<Option<Probe>> {
        let Some(address) = self.next else { return Ok(None) };
        self.left = self.left.checked_sub(1).ok_or(AcpError::Damaged { address })?;
        let probe = table.probe(address).await?;
        self.next = probe.head.next;
        Ok(Some(probe))
    }
}
