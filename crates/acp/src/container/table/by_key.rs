//! Calls on one key.

use super::{Element, Entry, Place, Position, Table, element::Probe, slot::Adding};
use crate::{GlobalAddress, Result, container::mapped::Missed};
use rdma_fabric::provider::Boxed;

/// Whether one element or count of a key is removed, or all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Amount {
    One,
    All,
}

/// The result of a removal.
#[derive(Debug, Default)]
pub(crate) struct Removed {
    /// The number of elements removed, or the amount subtracted from a multiset's count.
    pub(crate) count: u64,
    /// The first element.
    pub(crate) first: Option<Element>,
}

/// Boxed, so that the futures are compiled in this crate.
impl Table {
    pub(crate) fn remove_boxed<'a>(&'a self, key: &'a [u8], amount: Amount) -> Boxed<'a, Result<Removed>> {
        Box::pin(self.remove(key, amount))
    }

    pub(crate) fn get_all_boxed<'a>(&'a self, key: &'a [u8]) -> Boxed<'a, Result<Vec<Element>>> {
        Box::pin(self.get_all(key))
    }
}

impl Table {
    /// Inserts a key and its value. Returns whether an element was added.
    #[inline]
    pub(crate) async fn insert(&self, key: &[u8], value: &[u8]) -> Result<bool> {
        match self.insert_now(key, value) {
            Some(inserted) => inserted,
            None => self.insert_later(key, value).await,
        }
    }

    /// Returns the first element of a key.
    #[inline]
    pub(crate) async fn get(&self, key: &[u8]) -> Result<Option<Element>> {
        match self.get_now(key) {
            Some(found) => found,
            None => self.get_later(key).await,
        }
    }

    /// Returns the location of the first element of a key, and its count in a multiset.
    #[inline]
    pub(crate) async fn find(&self, key: &[u8]) -> Result<Option<Entry>> {
        match self.find_now(key) {
            Some(found) => found,
            None => self.find_later(key).await,
        }
    }

    #[inline(never)]
    fn insert_now(&self, key: &[u8], value: &[u8]) -> Option<Result<bool>> {
        let place = self.place(key);
        let heap = self.acp.heap(self.rank_of(place.part)).ok()?;
        // Other ranks have written both this word and the last element, so fetching their cache
        // lines takes time.
        self.at_once(place, Some(heap.lock_word()), async |slot| {
            slot.list.last().inspect(|last| slot.elements.memory.expect(*last));
            match slot.adding(key, 1).await? {
                Adding::Nothing => return Ok(false),
                Adding::Count(element, count) => return slot.set_count(element, count).await.map(|()| false),
                Adding::Append => {}
            }
            let bytes = self.kind.element_bytes(key, value);
            let address = heap.malloc_now(slot.elements.memory, bytes).ok_or(Missed)??;
            slot.elements.put(address, slot.list.last(), key, value).await?;
            slot.link(address).await?;
            slot.write_back().await.map(|()| true)
        })
    }

    fn insert_later<'a>(&'a self, key: &'a [u8], value: &'a [u8]) -> Boxed<'a, Result<bool>> {
        Box::pin(async move {
            let place = self.place(key);
            let locked = self.lock(place).await?;
            match locked.slot.adding(key, 1).await {
                Ok(Adding::Append) => match self.allocate(place.part, 1, key, value).await {
                    Ok(mut element) => {
                        locked
                            .changed(|mut slot| async move {
                                let done = slot.push_new(&mut element).await;
                                (slot, done.map(|()| true))
                            })
                            .await
                    }
                    Err(error) => locked.unlock(Err(error)).await,
                },
                Ok(Adding::Count(element, count)) => {
                    locked
                        .changed(|slot| async move {
                            let done = slot.set_count(element, count).await;
                            (slot, done.map(|()| false))
                        })
                        .await
                }
                found => locked.unlock(found.map(|_| false)).await,
            }
        })
    }

    /// Removes a key: of a multimap its oldest element or all, of a multiset one count or all.
    async fn remove(&self, key: &[u8], amount: Amount) -> Result<Removed> {
        let removed = self.at_once(self.place(key), None, async |slot| {
            let Some((probe, first)) = slot.element(key).await? else { return Ok(None) };
            let (gone, count) = slot.remove(probe, &first, amount).await?;
            slot.write_back().await.map(|()| Some((gone, count, first)))
        });
        let removed = match removed {
            Some(removed) => removed?,
            None => self.remove_later(key, amount).await?,
        };
        let Some((gone, count, first)) = removed else { return Ok(Removed::default()) };
        for address in gone {
            self.acp.free(address).await?;
        }
        Ok(Removed { count, first: Some(first) })
    }

    /// Removes a key; returns the elements to be freed, the number removed, and the first element.
    async fn remove_later(&self, key: &[u8], amount: Amount) -> Result<Option<(Vec<GlobalAddress>, u64, Element)>> {
        let locked = self.lock(self.place(key)).await?;
        match locked.slot.element(key).await {
            Ok(Some((probe, first))) => {
                locked
                    .changed(|mut slot| async move {
                        let done = slot.remove(probe, &first, amount).await;
                        (slot, done.map(|(gone, count)| Some((gone, count, first))))
                    })
                    .await
            }
            nothing => locked.unlock(nothing.map(|_| None)).await,
        }
    }

    #[inline(never)]
    fn get_now(&self, key: &[u8]) -> Option<Result<Option<Element>>> {
        let found = self.at_once(self.place(key), None, async |slot| slot.element(key).await)?;
        Some(found.map(|found| found.map(|(_, element)| element)))
    }

    fn get_later<'a>(&'a self, key: &'a [u8]) -> Boxed<'a, Result<Option<Element>>> {
        Box::pin(async move {
            let locked = self.lock(self.place(key)).await?;
            let found = locked.slot.element(key).await;
            Ok(locked.unlock(found).await?.map(|(_, element)| element))
        })
    }

    /// Returns all elements of a key, oldest first.
    async fn get_all(&self, key: &[u8]) -> Result<Vec<Element>> {
        let locked = self.lock(self.place(key)).await?;
        let found = async {
            let (mut found, mut walk, elements) = (vec![], locked.slot.list.walk(), &locked.slot.elements);
            while let Some(probe) = walk.next(elements).await? {
                if elements.has_key(&probe, key).await? {
                    found.push(elements.read(&probe).await?);
                }
            }
            Ok(found)
        };
        let found = found.await;
        locked.unlock(found).await
    }

    /// Copies the value of a key into `into`, truncated to its length; returns the whole length.
    pub(crate) async fn retrieve(&self, key: &[u8], into: &mut [u8]) -> Result<Option<usize>> {
        let place = self.place(key);
        if let Some(found) = self.at_once(place, None, async |slot| slot.retrieve(key, into).await) {
            return found;
        }
        let locked = self.lock(place).await?;
        let found = locked.slot.retrieve(key, into).await;
        locked.unlock(found).await
    }

    #[inline(never)]
    fn find_now(&self, key: &[u8]) -> Option<Result<Option<Entry>>> {
        let place = self.place(key);
        let found = self.at_once(place, None, async |slot| slot.seek(key).await)?;
        Some(found.and_then(|found| entry_of(place, found)))
    }

    fn find_later<'a>(&'a self, key: &'a [u8]) -> Boxed<'a, Result<Option<Entry>>> {
        Box::pin(async move {
            let place = self.place(key);
            let locked = self.lock(place).await?;
            let found = locked.slot.seek(key).await;
            entry_of(place, locked.unlock(found).await?)
        })
    }
}

fn entry_of(place: Place, found: Option<Probe>) -> Result<Option<Entry>> {
    found.map(|probe| Entry::of(Position::new(place, probe.address), &probe)).transpose()
}
