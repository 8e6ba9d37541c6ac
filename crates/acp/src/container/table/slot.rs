//! A slot while its lock is held: finding and changing its elements.

use super::{
    Amount, Element, Kind,
    element::{COUNT, NEXT, PREVIOUS, Probe, from_word, to_word},
    elements::Elements,
};
use crate::{AcpError, GlobalAddress, Result, container::mapped::Memory};
use core::future::Future;
use rdma_fabric::provider::SHORT;

/// The offset of a slot's list from the lock.
pub(super) const LIST: u64 = 8;

/// A slot whose lock this rank holds, and its list, which is written back with the unlock.
pub(super) struct Slot<M> {
    pub(super) elements: Elements<M>,
    pub(super) at: GlobalAddress,
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
    pub(super) fn new(address: GlobalAddress, kind: Kind, count: u64, key: &[u8], value: &[u8]) -> Self {
        let bytes = kind.element_bytes(key, value);
        let (mut short, mut long) = ([0; SHORT], vec![]);
        let buffer = match bytes {
            0..=SHORT => &mut short[..bytes],
            _ => {
                long.resize(bytes, 0);
                &mut long[..]
            }
        };
        kind.encode(count, key, value, buffer);
        Unwritten { address, bytes, short, long }
    }

    /// Returns the bytes of the element, with a link to its predecessor `previous`.
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

/// The effect of inserting a key on its slot.
pub(super) enum Adding {
    /// The key is present, and is unchanged.
    Nothing,
    /// The element at the address gets this count.
    Count(GlobalAddress, u64),
    /// An element is appended.
    Append,
}

/// Reading.
impl<M: Memory> Slot<M> {
    /// Returns a slot whose list is in these words.
    #[inline]
    pub(super) fn of(elements: Elements<M>, at: GlobalAddress, [head, tail, count]: [u64; 3]) -> Result<Self> {
        // A heap has no room for more elements, and a walk along damaged links takes no longer.
        let most = elements.memory.acp().options().heap_bytes as u64 / 24;
        match (from_word(head), from_word(tail)) {
            (Some(head), Some(tail)) if count <= most => Ok(Slot { elements, at, list: List { head, tail, count } }),
            _ => Err(AcpError::Damaged { address: at }),
        }
    }

    /// Returns the first element with a key.
    #[inline(always)]
    pub(super) fn seek(&self, key: &[u8]) -> impl Future<Output = Result<Option<Probe>, M::Error>> {
        self.elements.seek(self.list.head, self.list.count, key)
    }

    /// Returns the first element with a key, read completely.
    pub(super) async fn element(&self, key: &[u8]) -> Result<Option<(Probe, Element)>, M::Error> {
        match self.seek(key).await? {
            Some(probe) => self.elements.read(&probe).await.map(|element| Some((probe, element))),
            None => Ok(None),
        }
    }

    /// Copies the value of a key into `into`, truncated to its length; returns the whole length.
    pub(super) async fn retrieve(&self, key: &[u8], into: &mut [u8]) -> Result<Option<usize>, M::Error> {
        match self.seek(key).await? {
            Some(probe) => self.elements.read_value(&probe, into).await.map(|()| Some(probe.head.value)),
            None => Ok(None),
        }
    }

    /// Reads all elements.
    pub(super) async fn all(&self) -> Result<Vec<Element>, M::Error> {
        let mut all = Vec::with_capacity(self.list.count.min(1 << 10) as usize);
        let mut walk = self.list.walk();
        while let Some(probe) = walk.next(&self.elements).await? {
            all.push(self.elements.read(&probe).await?);
        }
        Ok(all)
    }

    /// Returns the effect of inserting a key: a multimap always adds an element, a multiset counts
    /// an existing key, the others leave it unchanged.
    pub(super) async fn adding(&self, key: &[u8], count: u64) -> Result<Adding, M::Error> {
        let found = match self.elements.kind {
            Kind::Multimap => None,
            _ => self.seek(key).await?,
        };
        Ok(match found {
            None => Adding::Append,
            Some(probe) if self.elements.kind == Kind::Multiset => {
                Adding::Count(probe.address, probe.head.count.saturating_add(count))
            }
            Some(_) => Adding::Nothing,
        })
    }
}

/// Changes, which are visible after the unlock.
impl<M: Memory> Slot<M> {
    fn memory(&self) -> &M {
        &self.elements.memory
    }

    /// Puts the list.
    #[inline(always)]
    pub(super) fn write_back(&self) -> impl Future<Output = Result<(), M::Error>> {
        let List { head, tail, count } = self.list;
        self.memory().put_words(self.at, LIST, [to_word(head), to_word(tail), count])
    }

    /// Writes an element and appends it.
    pub(super) async fn push_new(&mut self, element: &mut Unwritten) -> Result<(), M::Error> {
        let address = element.address;
        self.memory().put(address, 0, element.bytes(self.list.tail)).await?;
        self.link(address).await
    }

    /// Appends an element that has been written and is in no list.
    async fn push(&mut self, address: GlobalAddress) -> Result<(), M::Error> {
        self.memory().put_words(address, 0, [0, to_word(self.list.tail)]).await?;
        self.link(address).await
    }

    /// Links the last element to one whose own links are already correct.
    pub(super) async fn link(&mut self, address: GlobalAddress) -> Result<(), M::Error> {
        match self.list.tail {
            Some(tail) => self.memory().put_words(tail, NEXT, [address.to_bits()]).await?,
            None => self.list.head = Some(address),
        }
        self.list.tail = Some(address);
        self.list.count += 1;
        Ok(())
    }

    /// Unlinks an element from the list, without freeing it. Previous puts must be visible.
    pub(super) async fn unlink(&mut self, probe: &Probe) -> Result<(), M::Error> {
        let head = &probe.head;
        match head.previous {
            Some(previous) => self.memory().put_words(previous, NEXT, [to_word(head.next)]).await?,
            None => self.list.head = head.next,
        }
        match head.next {
            Some(next) => self.memory().put_words(next, PREVIOUS, [to_word(head.previous)]).await?,
            None => self.list.tail = head.previous,
        }
        self.list.count = self.list.count.saturating_sub(1);
        Ok(())
    }

    /// Sets a multiset's count of the key of an element.
    pub(super) async fn set_count(&self, element: GlobalAddress, count: u64) -> Result<(), M::Error> {
        self.memory().put_words(element, COUNT, [count]).await
    }

    /// Appends an element, unless the table has its key and keeps one element per key: in that case
    /// the element is not needed, and a multiset adds its count to that of the key. Returns whether
    /// the element was appended.
    pub(super) async fn admit(&mut self, element: Joining, key: &[u8], count: u64) -> Result<bool, M::Error> {
        let adding = self.adding(key, count).await?;
        match (&adding, element) {
            (Adding::Nothing, _) => {}
            (Adding::Count(element, count), _) => self.set_count(*element, *count).await?,
            (Adding::Append, Joining::Unwritten(mut element)) => self.push_new(&mut element).await?,
            (Adding::Append, Joining::Written(address)) => self.push(address).await?,
        }
        // The next put may write a word that an earlier put has just written.
        self.memory().settle().await?;
        Ok(matches!(adding, Adding::Append))
    }

    /// Unlinks an element, and all others with the same key if requested, or reduces its count;
    /// returns the unlinked elements, and the number removed.
    pub(super) async fn remove(
        &mut self,
        probe: Probe,
        first: &Element,
        amount: Amount,
    ) -> Result<(Vec<GlobalAddress>, u64), M::Error> {
        if amount == Amount::One && probe.head.count > 1 {
            self.set_count(probe.address, probe.head.count - 1).await?;
            return Ok((vec![], 1));
        }
        let count = if amount == Amount::One { 1 } else { probe.head.count };
        let mut gone = vec![probe.address];
        let mut walk = self.list.walk_after(&probe);
        self.unlink(&probe).await?;
        if amount == Amount::One || self.elements.kind != Kind::Multimap {
            return Ok((gone, count));
        }
        // The links read next have been put.
        self.memory().settle().await?;
        while let Some(probe) = walk.next(&self.elements).await? {
            if self.elements.has_key(&probe, first.key()).await? {
                self.unlink(&probe).await?;
                self.memory().settle().await?;
                gone.push(probe.address);
            }
        }
        let count = gone.len() as u64;
        Ok((gone, count))
    }
}

impl List {
    pub(super) fn last(&self) -> Option<GlobalAddress> {
        self.tail
    }

    pub(super) fn walk(&self) -> Walk {
        Walk { next: self.head, left: self.count }
    }

    /// Returns a walk over the elements after another one.
    pub(super) fn walk_after(&self, probe: &Probe) -> Walk {
        Walk { next: probe.head.next, left: self.count }
    }
}

/// A walk over the elements of a list, which must not change during the walk except behind it.
pub(super) struct Walk {
    next: Option<GlobalAddress>,
    /// The maximum number of remaining elements.
    left: u64,
}

impl Walk {
    /// Probes the next element.
    pub(super) async fn next<M: Memory>(&mut self, elements: &Elements<M>) -> Result<Option<Probe>, M::Error> {
        let Some(address) = self.next else { return Ok(None) };
        self.left = self.left.checked_sub(1).ok_or(AcpError::Damaged { address })?;
        let probe = elements.probe(address).await?;
        self.next = probe.head.next;
        Ok(Some(probe))
    }
}
