//! A vector or deque of elements of any size, handled as bytes.

use super::{
    bytes::Source,
    words::{Form, Piece, Words},
};
use crate::{Acp, AcpError, GlobalAddress, Result, container::finish::finish};
use core::ops::Range;
use rdma_fabric::{Rank, provider::Boxed};

/// One rank's access to a sequence.
#[derive(Clone)]
pub(super) struct Raw {
    pub(super) acp: Acp,
    pub(super) object: GlobalAddress,
    pub(super) form: Form,
    /// Bytes of an element; positions are in elements, the words in bytes.
    unit: u64,
}

impl Raw {
    pub(super) fn new(acp: &Acp, object: GlobalAddress, form: Form, unit: usize) -> Self {
        Raw { acp: acp.clone(), object, form, unit: unit as u64 }
    }

    pub(super) fn create(acp: &Acp, capacity: usize, rank: Rank, form: Form, unit: usize) -> Boxed<'_, Result<Self>> {
        Box::pin(async move {
            let object = acp.malloc(form.words().saturating_mul(8), rank).await?;
            let raw = Raw::new(acp, object, form, unit);
            let capacity = (capacity as u64).saturating_mul(raw.unit);
            match raw.body(capacity).await {
                Ok(body) => raw.store(Words::empty(body, capacity)).await.map(|()| raw),
                Err(error) => acp.free(object).await.and(Err(error)),
            }
        })
    }

    pub(super) fn destroy(self) -> Boxed<'static, Result<()>> {
        Box::pin(async move {
            if let Some(body) = self.words().await?.body {
                self.acp.free(body).await?;
            }
            self.acp.free(self.object).await
        })
    }

    /// Returns the current words.
    pub(super) async fn words(&self) -> Result<Words> {
        let mut words = [0u64; 4];
        let words = &mut words[..self.form.words()];
        self.acp.read(self.object, words).await?;
        Words::from_words(words, self.object)
    }

    pub(super) async fn store(&self, words: Words) -> Result<()> {
        self.acp.write(self.object, &words.to_words(self.form)).await
    }

    /// Returns length and capacity.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    pub(super) fn lengths(&self) -> Boxed<'_, Result<(usize, usize)>> {
        Box::pin(async move {
            let words = self.words().await?;
            Ok(((words.size / self.unit) as usize, (words.capacity / self.unit) as usize))
        })
    }

    /// Returns the start and the size of a range of elements in bytes; they must exist.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    fn existing(&self, words: &Words, range: Range<usize>) -> Result<(u64, u64)> {
        let len = words.size / self.unit;
        let (start, end) = (range.start as u64, range.end as u64);
        match end <= len && start <= end {
            true => Ok((start * self.unit, (end - start) * self.unit)),
            false => Err(AcpError::OutOfRange { position: start.max(end), len }),
        }
    }

    /// Returns the locations of elements.
    pub(super) fn pieces(&self, range: Range<usize>) -> Boxed<'_, Result<Vec<Piece>>> {
        Box::pin(async move {
            let words = self.words().await?;
            let (at, bytes) = self.existing(&words, range)?;
            words.pieces(at, bytes)
        })
    }

    /// Reads elements into `into`, starting at position `at`.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    pub(super) fn read<'a>(&'a self, at: usize, into: &'a mut [u8]) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let words = self.words().await?;
            let end = at.saturating_add(into.len() / self.unit as usize);
            let (at, _) = self.existing(&words, at..end)?;
            self.get(&words, at, into).await
        })
    }

    /// Overwrites elements, starting at position `at`.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    pub(super) fn write<'a>(&'a self, at: usize, from: &'a [u8]) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let words = self.words().await?;
            let end = at.saturating_add(from.len() / self.unit as usize);
            let (at, _) = self.existing(&words, at..end)?;
            self.put(&words, at, from).await
        })
    }

    /// Inserts before position `at`, or at the end if it is `None`.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    pub(super) fn insert(&self, at: Option<usize>, source: Source) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let words = self.words().await?;
            let at = match at {
                Some(at) => self.existing(&words, at..at)?.0,
                None => words.size / self.unit * self.unit,
            };
            let added = source.bytes();
            // If no bytes are moved, none can be lost if the source turns out to be unreadable.
            let stay = at == words.size || (at == 0 && self.form == Form::Deque);
            let source = self.aside(&words, source, !stay).await?;
            let words = self.grown(words, words.size.saturating_add(added)).await?;
            let raw = self.clone();
            finish(&self.acp, |_| async move {
                let words = raw.part(words, at, added).await?;
                raw.fill(&words, at, source).await?;
                raw.store(words).await
            })
            .await
        })
    }

    /// Removes elements.
    pub(super) fn erase(&self, range: Range<usize>) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let words = self.words().await?;
            let (at, bytes) = self.existing(&words, range)?;
            self.close(words, at, bytes).await
        })
    }

    /// Takes the first or last element; returns whether there was one.
    #[expect(
        clippy::arithmetic_side_effects,
        reason = "an element has a size, and existing ones are inside the capacity"
    )]
    pub(super) fn pop<'a>(&'a self, first: bool, into: &'a mut [u8]) -> Boxed<'a, Result<bool>> {
        Box::pin(async move {
            let words = self.words().await?;
            if words.size < self.unit {
                return Ok(false);
            }
            let at = if first { 0 } else { words.size - self.unit };
            self.get(&words, at, into).await?;
            self.close(words, at, self.unit).await.map(|()| true)
        })
    }

    /// Replaces all elements.
    pub(super) fn assign(&self, source: Source) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let (words, size) = (self.words().await?, source.bytes());
            let source = self.aside(&words, source, false).await?;
            let words = Words { offset: 0, size, ..self.grown(words, size).await? };
            let raw = self.clone();
            finish(&self.acp, |_| async move {
                raw.fill(&words, 0, source).await?;
                raw.store(words).await
            })
            .await
        })
    }

    /// Reserves room for `capacity` elements.
    pub(super) fn reserve(&self, capacity: usize) -> Boxed<'_, Result<()>> {
        Box::pin(async move {
            let (words, capacity) = (self.words().await?, (capacity as u64).saturating_mul(self.unit));
            if capacity > words.capacity { self.replaced(words, capacity).await.map(drop) } else { Ok(()) }
        })
    }

    pub(super) fn clear(&self) -> Boxed<'_, Result<()>> {
        Box::pin(async move { self.store(Words { offset: 0, size: 0, ..self.words().await? }).await })
    }

    pub(super) fn swap<'a>(&'a self, other: &'a Raw) -> Boxed<'a, Result<()>> {
        Box::pin(async move {
            let (mine, theirs) = (self.words().await?, other.words().await?);
            let (this, other) = (self.clone(), other.clone());
            finish(&self.acp, |_| async move {
                this.store(theirs).await?;
                other.store(mine).await
            })
            .await
        })
    }

    /// Allocates a body of `capacity` bytes; `None` for 0 bytes.
    async fn body(&self, capacity: u64) -> Result<Option<GlobalAddress>> {
        if capacity == 0 { Ok(None) } else { self.acp.malloc(capacity as usize, self.object.rank()).await.map(Some) }
    }

    /// Ensures that `size` bytes fit, and reserves twice as much if the heap has room.
    async fn grown(&self, words: Words, size: u64) -> Result<Words> {
        if size <= words.capacity {
            return Ok(words);
        }
        match self.replaced(words, size.max(words.capacity.saturating_mul(2))).await {
            Err(AcpError::HeapExhausted { .. }) => self.replaced(words, size).await,
            grown => grown,
        }
    }

    /// Replaces the body with a larger one.
    async fn replaced(&self, words: Words, capacity: u64) -> Result<Words> {
        let larger = Words { size: words.size, ..Words::empty(self.body(capacity).await?, capacity) };
        self.fill(&larger, 0, Source::Global(words.pieces(0, words.size)?)).await?;
        self.store(larger).await?;
        if let Some(before) = words.body {
            self.acp.free(before).await?;
        }
        Ok(larger)
    }
}
