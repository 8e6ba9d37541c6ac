//! The memory itself: one protected region, and the locations of its parts.

use super::Element;
use crate::LockError;
use core::{fmt, future::Future, marker::PhantomData, ops::Range};
use rdma_fabric::{
    AccessPolicy, Fabric, FabricError, GetSink, LockedMemory, Mapped, PutSource, Rank, Refused, Region, RemoteSpan,
    RemoteWord, Result,
};

/// The number of bytes before the elements in each part. The home's first word is the mark: 0, or
/// 1 + the rank that poisoned the memory.
pub(super) const HEADER: usize = 64;

/// One rank's capability to the memory.
pub(super) struct Memory<T> {
    /// The fabric handle that gives access to `region`.
    protected: Fabric,
    region: Region,
    /// The number of elements in each part.
    len: usize,
    /// The parts by rank, resolved once; empty if the provider does not map memory.
    parts: Box<[Mapped]>,
    mark: RemoteWord<u64>,
    element: PhantomData<fn() -> T>,
}

impl<T> fmt::Debug for Memory<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} elements per rank, {:?}, {}",
            self.len,
            self.region,
            if self.maps() { "mapped" } else { "copies" }
        )
    }
}

impl<T: Element> Memory<T> {
    /// Allocates the memory. Collective over the job.
    pub(super) async fn symmetric(
        fabric: &Fabric,
        home: Rank,
        len: usize,
        access_policy: AccessPolicy,
    ) -> Result<Self> {
        const { assert!(align_of::<T>() <= HEADER, "elements need no more than the alignment of regions") };
        let protected = fabric.protected(access_policy)?;
        // On overflow: a size larger than any memory.
        let bytes = len.checked_mul(size_of::<T>()).and_then(|bytes| bytes.checked_add(HEADER)).unwrap_or(usize::MAX);
        let region = protected.alloc_symmetric(bytes).await?;
        let parts = if fabric.caps().locked_memory == LockedMemory::Mapped {
            let part = |rank| region.mapped(&protected, Rank::new(rank as u32));
            (0..fabric.ranks()).map(part).collect::<Result<_>>()?
        } else {
            Box::default()
        };
        let mark = protected.remote_word(region.at(home, 0))?;
        Ok(Memory { protected, region, len, parts, mark, element: PhantomData })
    }

    /// Returns the elements `range` of `rank`'s part.
    fn span(&self, rank: Rank, range: Range<usize>) -> Result<RemoteSpan<T>> {
        let Range { start, end } = range;
        if start > end || end > self.len {
            let bytes = |elements: usize| (elements as u64).saturating_mul(size_of::<T>() as u64);
            let addr = self.region.at(rank, bytes(start));
            return Err(FabricError::out_of_bounds(addr, bytes(end.saturating_sub(start)), bytes(self.len)));
        }
        self.protected.remote_span(self.region.at(rank, (HEADER + start * size_of::<T>()) as u64), end - start)
    }

    pub(super) async fn get(&self, rank: Rank, range: Range<usize>) -> Result<Vec<T>> {
        let from = self.span(rank, range)?;
        self.protected.get(&from, vec![T::zeroed(); from.len()]).await
    }

    pub(super) async fn get_into<D: GetSink<T>>(&self, rank: Rank, start: usize, to: D) -> Result<D> {
        let from = self.span(rank, start..start.saturating_add(to.elements()))?;
        self.protected.get(&from, to).await
    }

    #[inline]
    pub(super) async fn put<S: PutSource<T>>(&self, rank: Rank, start: usize, from: S) -> Result<S> {
        let to = self.span(rank, start..start.saturating_add(from.elements()))?;
        self.protected.put(&to, from).await
    }

    /// Returns the mark: 0, or 1 + the rank that poisoned the memory. Must be called under the
    /// lock.
    #[inline(always)]
    pub(super) fn mark(&self) -> impl Future<Output = Result<u64>> {
        self.protected.get_word(&self.mark)
    }

    /// Records that this rank did not finish a change. The release that follows makes the mark
    /// visible.
    #[cold]
    pub(super) fn poison(&self) {
        let mark = [1 + u64::from(self.protected.rank().number())];
        match self.protected.try_put(&self.mark.as_span(), mark, None) {
            Ok(_) | Err(Refused::Failed(..)) => {}
            Err(Refused::Full(_)) => {
                let (fabric, word) = (self.protected.clone(), self.mark.clone());
                self.protected.detach(async move {
                    let _ = fabric.put_word(&word, mark[0]).await;
                    let _ = fabric.flush(word.rank()).await;
                });
            }
        }
    }

    /// Clears the mark of [`Memory::poison`]. This is an atomic, so that it cannot overtake, or be
    /// overtaken by, a later [`Memory::poison`].
    pub(super) async fn clear_poison(&self) -> Result<()> {
        self.protected.swap(&self.mark, 0).await.map(drop)
    }
}

impl<T> Memory<T> {
    pub(super) fn key(&self) -> rdma_fabric::RegionKey {
        self.region.key()
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    pub(super) fn maps(&self) -> bool {
        !self.parts.is_empty()
    }

    pub(super) fn parts(&self) -> &[Mapped] {
        &self.parts
    }

    #[cold]
    pub(super) fn not_mapped(&self, rank: Rank) -> LockError {
        let ranks = self.protected.ranks();
        let there = rank.index() < ranks;
        let region = self.region.key();
        if there { FabricError::NotMapped { rank, region } } else { FabricError::NoSuchRank { rank, ranks } }.into()
    }
}
