//! Puts of records with cached descriptors.
//!
//! Headers and flags are put to the same addresses again and again. If puts are posted to an
//! interface, the descriptor for each address is built once, at the first put, and reads its source
//! from a copy of the area in local memory (paper, section 5.1: sending by a *reused TCW*). If
//! memory is mapped, there are neither descriptors nor a copy.

use super::{Channel, Ends, channel::flag};
use crate::{Result, cost};
use core::fmt;
use rdma_fabric::{
    Fabric, Handle, LocalSpan, Prepared, Region, RemoteSpan,
    op::{Put, PutDescriptor},
};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The descriptors for one area at a peer.
#[derive(Default)]
pub(crate) struct Staged(Mutex<Kept>);

#[derive(Default)]
struct Kept {
    /// The source of the puts: a copy of the area.
    copy: Option<(Region, LocalSpan<u64>)>,
    /// Ordered by offset and number of words.
    descriptors: Vec<(Key, Prepared<PutDescriptor<u64>>)>,
}

/// The offset in bytes, and the number of words.
type Key = (usize, usize);

impl fmt::Debug for Staged {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Staged")
    }
}

impl Channel<'_> {
    /// Puts a flag from a detached task ([`Fabric::detach`]), so that no call waits for the put.
    pub(crate) async fn put_deferred_flag(&self, n: u64, word: u64) -> Result<()> {
        self.put_unprepared(flag(n).first, [word]).await
    }

    /// Posts a flag behind a body; returns the handle unless the put completes immediately.
    pub(crate) async fn post_flag(&self, n: u64, word: u64) -> Result<Option<Handle<()>>> {
        self.post(flag(n).first, [word]).await
    }

    /// Reports that message `n`, which has no body, has arrived, and charges for it.
    pub(crate) async fn put_signal(&self, n: u64, word: u64) -> Result<()> {
        self.put_charged(flag(n).first, [word]).await
    }

    /// Puts words, and waits until they have been sent.
    pub(super) async fn put<const N: usize>(&self, at: usize, words: [u64; N]) -> Result<()> {
        match self.post(at, words).await? {
            Some(put) => Ok(put.await?),
            None => Ok(()),
        }
    }

    /// Puts words without a cached descriptor, and waits until they have been sent.
    pub(super) async fn put_unprepared<const N: usize>(&self, at: usize, words: [u64; N]) -> Result<()> {
        match self.post_unprepared(at, words).await? {
            Some(put) => Ok(put.await.map(drop)?),
            None => Ok(()),
        }
    }

    /// Posts words without a cached descriptor; returns the handle unless the put completes
    /// immediately.
    pub(super) async fn post_unprepared<const N: usize>(
        &self,
        at: usize,
        words: [u64; N],
    ) -> Result<Option<Handle<[u64; N]>>> {
        if self.fabric.direct().put_words_at(&self.ends.there, self.at + at, words).is_some() {
            return Ok(None);
        }
        let to = self.ends.there.part_as::<u64>(self.at + at, N)?;
        Ok(Some(self.fabric.post(Put { to: &to, from: words, notice: None }).await?))
    }

    /// Puts words, and charges for the put unless it completes immediately.
    pub(super) async fn put_charged<const N: usize>(&self, at: usize, words: [u64; N]) -> Result<()> {
        if let Some(put) = self.post(at, words).await? {
            self.fabric.charge(cost::HEADER).await;
            put.await?;
        }
        Ok(())
    }

    /// Posts words; returns the handle unless the put completes immediately.
    pub(super) async fn post<const N: usize>(&self, at: usize, words: [u64; N]) -> Result<Option<Handle<()>>> {
        let Ends { there, staged, .. } = self.ends;
        match self.fabric.direct().put_words_at(there, self.at + at, words) {
            Some(()) => Ok(None),
            None => staged.post(self.fabric, there, self.at + at, words).await.map(Some),
        }
    }
}

impl Staged {
    /// Posts a put of words to byte `at` of an area. The previous words put there must have been
    /// sent.
    async fn post<const N: usize>(
        &self,
        fabric: &Fabric,
        area: &RemoteSpan<u64>,
        at: usize,
        words: [u64; N],
    ) -> Result<Handle<()>> {
        let (from, known) = {
            let mut kept = self.lock();
            let copy = kept.copy(fabric, area.len())?;
            let from = LocalSpan::clone(&*copy.part_as::<u64>(at, N)?);
            (from, kept.find((at, N)).ok().map(|place| kept.descriptors[place].1.clone()))
        };
        fabric.write(&from, &words)?;
        let descriptor = match known {
            Some(descriptor) => descriptor,
            None => {
                let to = area.part_as::<u64>(at, N)?;
                let made = Prepared::new(fabric, Put { to: &to, from, notice: None }).await?;
                let mut kept = self.lock();
                if let Err(place) = kept.find((at, N)) {
                    if kept.descriptors.len() == kept.descriptors.capacity() {
                        // A descriptor is large, and most areas have few.
                        let more = kept.descriptors.len().div_ceil(2).max(1);
                        kept.descriptors.reserve_exact(more);
                    }
                    kept.descriptors.insert(place, ((at, N), made.clone()));
                }
                made
            }
        };
        Ok(descriptor.post().await?)
    }

    fn lock(&self) -> MutexGuard<'_, Kept> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Kept {
    fn copy(&mut self, fabric: &Fabric, words: usize) -> Result<LocalSpan<u64>> {
        if let Some((_, copy)) = &self.copy {
            return Ok(copy.clone());
        }
        let region = fabric.alloc(8 * words)?;
        let copy = region.span(fabric, 0, words)?;
        self.copy = Some((region, copy.clone()));
        Ok(copy)
    }

    fn find(&self, key: Key) -> Result<usize, usize> {
        self.descriptors.binary_search_by_key(&key, |(key, _)| *key)
    }
}
