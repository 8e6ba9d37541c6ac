//! Reading, writing and changing global memory by value.

use crate::{Acp, AcpError, GlobalAddress, Result, directory::is_stale};
use core::{future::Future, marker::PhantomData, task::Context};
use rdma_fabric::{
    Amo, AtomicWord, Pod,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

/// Access by value, awaited in place. It is outside the order of [`Acp::copy`] and [`Acp::atomic`]:
/// each call returns when its effect is visible.
impl Acp {
    /// Reads elements that start at an address of any rank. If other ranks write them at the same
    /// time, each byte is either old or new.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`], [`AcpError::OutOfBounds`];
    /// [`AcpError::Fabric`].
    #[inline]
    pub async fn read<T: Pod>(&self, from: GlobalAddress, into: &mut [T]) -> Result<()> {
        let into = bytemuck::cast_slice_mut(into);
        if self.read_now(from, into).is_some() {
            Ok(())
        } else {
            Box::pin(self.read_later(from, into)).await.map_err(|error| self.named(error))
        }
    }

    /// Reads `len` elements that start at an address of any rank. Memory for them is allocated only
    /// if they exist.
    ///
    /// # Errors
    /// As [`Acp::read`].
    pub async fn read_vec<T: Pod>(&self, from: GlobalAddress, len: usize) -> Result<Vec<T>> {
        Box::pin(self.span(from, len.saturating_mul(size_of::<T>()))).await?;
        let mut read = vec![T::zeroed(); len];
        self.read(from, &mut read).await?;
        Ok(read)
    }

    /// Writes elements, starting at an address of any rank.
    ///
    /// # Errors
    /// As [`Acp::read`].
    #[inline]
    pub async fn write<T: Pod>(&self, to: GlobalAddress, from: &[T]) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        if self.put_now(to, from).is_none() {
            return Box::pin(self.write_later(to, from)).await;
        }
        self.fabric().direct().barrier();
        Ok(())
    }

    /// Reads the word at an address of any rank atomically.
    ///
    /// # Errors
    /// As [`Acp::fetch`].
    #[inline(always)]
    pub fn load<W: AtomicWord>(&self, from: GlobalAddress) -> impl Future<Output = Result<W>> {
        fast_path(Load { acp: self, from, value: PhantomData }, Load::slow)
    }

    /// Writes the word at an address of any rank atomically.
    ///
    /// # Errors
    /// As [`Acp::fetch`].
    #[inline]
    pub async fn store<W: AtomicWord>(&self, to: GlobalAddress, value: W) -> Result<()> {
        if !to.offset().is_multiple_of(W::BYTES as u64) {
            return Err(AcpError::Misaligned { address: to, align: W::BYTES as u8 });
        }
        self.write(to, core::slice::from_ref(&value)).await
    }

    /// Changes the word at an address of any rank; returns its previous value. Words are `u32` and
    /// `u64`.
    ///
    /// # Errors
    /// As [`Acp::read`], and [`AcpError::Misaligned`].
    #[inline(always)]
    pub fn fetch<W: AtomicWord>(&self, word: GlobalAddress, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        self.fetch_by(word, move || amo)
    }

    /// As [`Acp::fetch`]. A future keeps the operands of `amo` and not the kind of its result, which would have to be
    /// inspected at run time.
    #[inline(always)]
    pub(crate) fn fetch_by<W: AtomicWord>(
        &self,
        word: GlobalAddress,
        amo: impl FnOnce() -> Amo<W> + Copy,
    ) -> impl Future<Output = Result<W>> {
        fast_path(Fetch { acp: self, word, amo }, Fetch::slow)
    }

    /// Changes a word directly; returns `None`, with no effect, if only [`Acp::fetch`] can.
    #[inline(always)]
    pub(crate) fn fetch_now<W: AtomicWord>(&self, word: GlobalAddress, amo: Amo<W>) -> Option<W> {
        let state = self.enter().ok()?;
        let (span, offset) = state.memory.mapped(word)?;
        self.fabric().direct().atomic_at(span, offset, amo)
    }

    /// Returns whether operations on the word are executed directly.
    #[inline]
    pub(crate) fn is_mapped(&self, word: GlobalAddress) -> bool {
        let Ok(state) = self.enter() else { return false };
        let near = state.memory.mapped(word);
        near.is_some_and(|(span, offset)| self.fabric().direct().admits_word_at::<_, u64>(span, offset))
    }

    /// Writes elements, which are visible once the rank has been flushed.
    pub(crate) async fn put<T: Pod>(&self, to: GlobalAddress, from: &[T]) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        if self.put_now(to, from).is_some() { Ok(()) } else { Box::pin(self.put_later(to, from)).await }
    }

    /// Reads directly; returns `None`, with no effect, if only [`Acp::read`] can.
    #[inline(always)]
    fn read_now(&self, from: GlobalAddress, into: &mut [u8]) -> Option<()> {
        let state = self.enter().ok()?;
        let (span, offset) = state.memory.mapped(from)?;
        self.fabric().direct().get_slice_at(span, offset, into)
    }

    /// Puts directly; returns `None`, with no effect, if only [`Acp::put`] can.
    #[inline(always)]
    fn put_now(&self, to: GlobalAddress, from: &[u8]) -> Option<()> {
        let state = self.enter().ok()?;
        let (span, offset) = state.memory.mapped(to)?;
        self.fabric().direct().put_slice_at(span, offset, from)
    }

    /// As [`Acp::retried`], which cannot lend the buffer to two successive attempts.
    async fn read_later(&self, from: GlobalAddress, into: &mut [u8]) -> Result<()> {
        let mut again = false;
        loop {
            let span = self.span(from, into.len()).await?;
            match self.fabric().get_slice(&span, into).await.map_err(AcpError::from) {
                Err(error) if !again && is_stale(&error) => {
                    again = true;
                    self.with(|state| state.memory.forget(from.id()))?;
                }
                Err(error) => return Err(self.with(|state| state.memory.name_stale(error, &[from]))?),
                done => return done,
            }
        }
    }

    async fn put_later(&self, to: GlobalAddress, from: &[u8]) -> Result<()> {
        let put = || async { Ok(self.fabric().put_slice(&self.span(to, from.len()).await?, from).await?) };
        self.retried([to], put).await
    }

    async fn write_later(&self, to: GlobalAddress, from: &[u8]) -> Result<()> {
        let write = || async {
            let span = self.span(to, from.len()).await?;
            self.fabric().put_slice(&span, from).await?;
            Ok(self.fabric().flush(span.rank()).await?)
        };
        self.retried([to], write).await
    }
}

struct Load<'a, W> {
    acp: &'a Acp,
    from: GlobalAddress,
    value: PhantomData<W>,
}

impl<W: AtomicWord> FastPath for Load<'_, W> {
    type Out = Result<W>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<W>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a, W: AtomicWord> Load<'a, W> {
    #[inline(always)]
    fn at_once(&self) -> Option<W> {
        let mut state = self.acp.enter().ok()?;
        let (span, offset) = state.memory.mapped(self.from)?;
        let value = self.acp.fabric().direct().get_word_at(span, offset)?;
        state.serve_now();
        Some(value)
    }

    fn slow(self) -> Boxed<'a, Result<W>> {
        let Load { acp, from, .. } = self;
        let load = acp.retried([from], move || async move {
            let word = acp.word::<W>(from).await?;
            Ok(acp.fabric().get_word(&word).await?)
        });
        Box::pin(acp.while_serving(load))
    }
}

struct Fetch<'a, By> {
    acp: &'a Acp,
    word: GlobalAddress,
    amo: By,
}

impl<W: AtomicWord, By: FnOnce() -> Amo<W> + Copy> FastPath for Fetch<'_, By> {
    type Out = Result<W>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<W>, Self> {
        self.acp.fetch_now(self.word, (self.amo)()).map(Ok).ok_or(self)
    }
}

impl<'a, By> Fetch<'a, By> {
    fn slow<W: AtomicWord>(self) -> Boxed<'a, Result<W>>
    where
        By: FnOnce() -> Amo<W>,
    {
        let Fetch { acp, word, amo } = self;
        let amo = amo();
        Box::pin(acp.retried([word], move || async move {
            if acp.delegates_atomics() {
                return acp.delegated_fetch(word, amo).await;
            }
            let word = acp.word::<W>(word).await?;
            Ok(acp.fabric().atomic(&word, amo).await?)
        }))
    }
}
