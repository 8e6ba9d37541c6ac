//! Calls that concern one key.

use super::{Element, Entry, Kind, Position, Table, element::Probe, slot::Slot};
use crate::{GlobalAddress, Result};
use rdma_fabric::provider::Boxed;

/// How much of a key is removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    One,
    All,
}

/// What was removed.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// How many elements, or of a multiset how often it had the key, as far as that is gone.
    pub(crate) count: u64,
    /// The first element.
    pub(crate) first: Option<Element>,
}

/// Boxed, so that they are compiled in this crate.
impl Table {
    pub(crate) fn insert_boxed<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> Boxed<'a, Result<bool>> {
        Box::pin(self.insert(key, value))
    }

    pub(crate) fn remove_boxed<'a>(&'a self, key: &'a [u8], amount: Amount) -> Boxed<'a, Result<Removed>> {
        Box::pin(self.remove(key, amount))
    }

    pub(crate) fn get_boxed<'a>(&'a self, key: &'a [u8]) -> Boxed<'a, Result<Option<Element>>> {
        Box::pin(self.get(key))
    }

    pub(crate) fn get_all_boxed<'a>(&'a self, key: &'a [u8]) -> Boxed<'a, Result<Vec<Element>>> {
        Box::pin(self.get_all(key))
    }
}

impl Table {
    /// Inserts a key and its value. Returns whether an element was added: a multimap always adds
    /// one, a multiset counts a key that it has, the others leave one that they have as it is.
    async fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        let place = self.place(key);
        let slot = self.lock(place).await?;
        let found = match self.kind {
            Kind::Multimap => Ok(None),
            _ => slot.seek(key).await,
        };
        match found {
            Ok(Some(probe)) if self.kind == Kind::Multiset => {
                let count = probe.head.count.saturating_add(1);
                slot.changed(|slot| async move {
                    let done = slot.set_count(&probe, count).await;
                    (slot, done.map(|()| false))
                })
                .await
            }
            Ok(None) => match self.allocate(place.part, 1, key, value).await {
                Ok(element) => {
                    slot.changed(|mut slot| async move {
                        let done = slot.push_new(element).await;
                        (slot, done.map(|()| true))
                    })
                    .await
                }
                Err(error) => slot.unlock(Err(error)).await,
            },
            found => slot.unlock(found.map(|_| false)).await,
        }
    }

    /// Removes a key: of a multimap its oldest element or all, of a multiset one count or all.
    async fn remove(&self, key: &[u8], amount: Amount) -> Result<Removed> {
        let slot = self.lock(self.place(key)).await?;
        let table = self.clone();
        let found = async {
            match slot.seek(key).await? {
                Some(probe) => self.read_element(&probe).await.map(|first| Some((probe, first))),
                None => Ok(None),
            }
        };
        let (probe, first) = match found.await {
            Ok(Some(found)) => found,
            nothing => return slot.unlock(nothing.map(|_| Removed::default())).await,
        };
        let (gone, count, first) = slot
            .changed(|mut slot| async move {
                let done = table.remove_found(&mut slot, probe, &first, amount).await;
                (slot, done.map(|(gone, count)| (gone, count, first)))
            })
            .await?;
        for address in gone {
            self.acp.free(address).await?;
        }
        Ok(Removed { count, first: Some(first) })
    }

    /// Takes an element out of its list, and those of the same key if all are to go, or lowers its
    /// count; returns the elements taken out, and how much was removed.
    async fn remove_found(
        &self,
        slot: &mut Slot,
        probe: Probe,
        first: &Element,
        amount: Amount,
    ) -> Result<(Vec<GlobalAddress>, u64)> {
        if amount == Amount::One && probe.head.count > 1 {
            slot.set_count(&probe, probe.head.count - 1).await?;
            return Ok((vec![], 1));
        }
        let count = if amount == Amount::One { 1 } else { probe.head.count };
        let mut gone = vec![probe.address];
        let mut walk = slot.list.walk_after(&probe);
        slot.unlink(&probe).await?;
        if amount == Amount::One || self.kind != Kind::Multimap {
            return Ok((gone, count));
        }
        // The links that come next have been put.
        slot.settle().await?;
        while let Some(probe) = walk.next(self).await? {
            if self.has_key(&probe, first.key()).await? {
                slot.unlink(&probe).await?;
                slot.settle().await?;
                gone.push(probe.address);
            }
        }
        let count = gone.len() as u64;
        Ok((gone, count))
    }

    /// Returns the first element of a key.
    async fn get(&self, key: &[u8]) -> Result<Option<Element>> {
        let slot = self.lock(self.place(key)).await?;
        let found = async {
            match slot.seek(key).await? {
                Some(probe) => self.read_element(&probe).await.map(Some),
                None => Ok(None),
            }
        };
        let found = found.await;
        slot.unlock(found).await
    }

    /// Returns all elements of a key, oldest first.
    async fn get_all(&self, key: &[u8]) -> Result<Vec<Element>> {
        let slot = self.lock(self.place(key)).await?;
        let found = async {
            let (mut found, mut walk) = (vec![], slot.list.walk());
            while let Some(probe) = walk.next(self).await? {
                if self.has_key(&probe, key).await? {
                    found.push(self.read_element(&probe).await?);
                }
            }
            Ok(found)
        };
        let found = found.await;
        slot.unlock(found).await
    }

    /// Copies the value of a key out, as much as there is room for; returns its whole length.
    pub(crate) async fn retrieve(&self, key: &[u8], into: &mut [u8]) -> Result<Option<usize>> {
        let slot = self.lock(self.place(key)).await?;
        let found = async {
            match slot.seek(key).await? {
                Some(probe) => self.read_value(&probe, into).await.map(|()| Some(probe.head.value)),
                None => Ok(None),
            }
        };
        let found = found.await;
        slot.unlock(found).await
    }

    /// Returns where the first element of a key is, and how often a multiset has it.
    pub(crate) async fn find(&self, key: &[u8]) -> Result<Option<Entry>> {
        let place = self.place(key);
        let slot = self.lock(place).await?;
        let found = slot.seek(key).await;
        let found = slot.unlock(found).await?;
        found.map(|probe| Entry::of(Position::new(place, probe.address), &probe)).transpose()
    }
}
