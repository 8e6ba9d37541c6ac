//! Reading, writing and changing global memory by value.

use crate::{
    Acp, AcpError, GlobalAddress, Result,
    soon::{Call, soon},
};
use core::{future::Future, marker::PhantomData};
use rdma_fabric::{
    Amo, AtomicWord, Fabric, FabricError, Pod, RemoteSpan, join,
    provider::{Boxed, SHORT},
};

/// Access by value, awaited in place. It stands outside the order of [`Acp::copy`] and
/// [`Acp::atomic`]: each call ends when its effect is visible.
impl Acp {
    /// Reads elements that start at an address of any rank. If others write them meanwhile, each
    /// byte is either old or new.
    ///
    /// # Errors
    /// [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`], [`AcpError::OutOfBounds`];
    /// [`AcpError::Fabric`].
    #[inline]
    pub async fn read<T: Pod>(&self, from: GlobalAddress, into: &mut [T]) -> Result<()> {
        let into = bytemuck::cast_slice_mut(into);
        if self.read_now(from, into) {
            Ok(())
        } else {
            Box::pin(self.read_later(from, into)).await.map_err(|error| self.named(error))
        }
    }

    /// Writes elements from an address of any rank on.
    ///
    /// # Errors
    /// As [`Acp::read`].
    #[inline]
    pub async fn write<T: Pod>(&self, to: GlobalAddress, from: &[T]) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        if self.write_now(to, from) {
            Ok(())
        } else {
            Box::pin(self.write_later(to, from)).await.map_err(|error| self.named(error))
        }
    }

    /// Reads the word at an address of any rank, whole.
    ///
    /// # Errors
    /// As [`Acp::fetch`].
    #[inline(always)]
    pub fn load<W: AtomicWord>(&self, from: GlobalAddress) -> impl Future<Output = Result<W>> {
        soon(Load { acp: self, from, value: PhantomData })
    }

    /// Writes the word at an address of any rank, whole.
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

    /// Changes the word at an address of any rank; returns what it was before. Words are `u32` and
    /// `u64`.
    ///
    /// # Errors
    /// As [`Acp::read`], and [`AcpError::Misaligned`].
    #[inline(always)]
    pub fn fetch<W: AtomicWord>(&self, word: GlobalAddress, amo: Amo<W>) -> impl Future<Output = Result<W>> {
        soon(Fetch { acp: self, word, amo })
    }

    /// Changes a word directly; returns `None` where only [`Acp::fetch`] can.
    #[inline]
    pub(crate) fn fetch_now<W: AtomicWord>(&self, word: GlobalAddress, amo: Amo<W>) -> Option<Result<W>> {
        self.with(|state| {
            let word = state.memory.word_at::<W>(word).ok()?;
            self.fabric().atomic_now(&word, amo)
        })
        .transpose()
    }

    /// Returns whether operations on the word there are done directly.
    #[inline]
    pub(crate) fn is_mapped(&self, word: GlobalAddress) -> bool {
        let mapped = self.with(|state| state.memory.word_at::<u64>(word).is_ok_and(|word| word.place().admits(8)));
        mapped.unwrap_or(false)
    }

    /// Writes elements, which are visible when the rank has been flushed.
    pub(crate) async fn put<T: Pod>(&self, to: GlobalAddress, from: &[T]) -> Result<()> {
        let from = bytemuck::cast_slice(from);
        if self.put_now(to, from)? {
            Ok(())
        } else {
            Box::pin(self.put_later(to, from)).await.map_err(|error| self.named(error))
        }
    }

    /// Puts directly; returns whether that was possible.
    #[inline]
    fn put_now(&self, to: GlobalAddress, from: &[u8]) -> Result<bool> {
        self.with(|state| {
            let Ok(to) = state.memory.bytes_at(to, from.len()) else { return false };
            from.len() <= SHORT
                && to.place().admits(from.len())
                && join::now(self.fabric().put_slice(&to, from)) == Some(Ok(()))
        })
    }

    async fn put_later(&self, to: GlobalAddress, from: &[u8]) -> Result<()> {
        let span = self.span(to, from.len()).await?;
        Ok(self.fabric().put_slice(&span, from).await?)
    }

    /// Reads directly; returns whether that was possible.
    #[inline(always)]
    fn read_now(&self, from: GlobalAddress, into: &mut [u8]) -> bool {
        let Ok(state) = self.enter() else { return false };
        let Some((span, offset)) = state.memory.near(from) else { return false };
        let Ok(from) = span.part_as::<u8>(offset, into.len()) else { return false };
        into.len() <= SHORT
            && from.place().admits(into.len())
            && join::now(self.fabric().get_slice(&from, into)) == Some(Ok(()))
    }

    /// Writes directly; returns whether that was possible.
    #[inline(always)]
    fn write_now(&self, to: GlobalAddress, from: &[u8]) -> bool {
        let Ok(state) = self.enter() else { return false };
        let Some((span, offset)) = state.memory.near(to) else { return false };
        let Ok(to) = span.part_as::<u8>(offset, from.len()) else { return false };
        let put = from.len() <= SHORT
            && to.place().admits(from.len())
            && join::now(self.fabric().put_slice(&to, from)) == Some(Ok(()));
        // Where the place admits it, the put was direct.
        if put {
            self.fabric().barrier();
        }
        put
    }

    async fn read_later(&self, from: GlobalAddress, into: &mut [u8]) -> Result<()> {
        let mut again = false;
        loop {
            let span = self.span(from, into.len()).await?;
            match self.fabric().get_slice(&span, into).await {
                Err(error) if !again && self.has_forgotten(&error, from)? => again = true,
                Err(error) => return Err(self.with(|state| state.memory.name_stale(error.into(), &[from]))?),
                done => return Ok(done?),
            }
        }
    }

    async fn write_later(&self, to: GlobalAddress, from: &[u8]) -> Result<()> {
        let mut again = false;
        loop {
            let span = self.span(to, from.len()).await?;
            match put_visibly(self.fabric(), &span, from).await {
                Err(error) if !again && self.has_forgotten(&error, to)? => again = true,
                Err(error) => return Err(self.with(|state| state.memory.name_stale(error.into(), &[to]))?),
                done => return Ok(done?),
            }
        }
    }

    /// Forgets a region that has gone; returns whether it has.
    fn has_forgotten(&self, error: &FabricError, address: GlobalAddress) -> Result<bool> {
        let gone = matches!(error, FabricError::StaleRegion { .. });
        if gone {
            self.with(|state| state.memory.forget(address.id()))?;
        }
        Ok(gone)
    }
}

async fn put_visibly(fabric: &Fabric, to: &RemoteSpan<u8>, from: &[u8]) -> Result<(), FabricError> {
    fabric.put_slice(to, from).await?;
    fabric.flush(to.rank()).await
}

struct Load<'a, W> {
    acp: &'a Acp,
    from: GlobalAddress,
    value: PhantomData<W>,
}

impl<'a, W: AtomicWord> Call<'a> for Load<'a, W> {
    type Out = W;

    #[inline(always)]
    fn now(&self) -> Option<W> {
        let state = self.acp.enter().ok()?;
        let (span, offset) = state.memory.near(self.from)?;
        self.acp.fabric().get_word_at(span, offset)
    }

    fn later(self) -> Boxed<'a, Result<W>> {
        let Load { acp, from, .. } = self;
        Box::pin(acp.retried([from], move || async move {
            let word = acp.word::<W>(from).await?;
            Ok(acp.fabric().get_word(&word).await?)
        }))
    }
}

struct Fetch<'a, W> {
    acp: &'a Acp,
    word: GlobalAddress,
    amo: Amo<W>,
}

impl<'a, W: AtomicWord> Call<'a> for Fetch<'a, W> {
    type Out = W;

    #[inline(always)]
    fn now(&self) -> Option<W> {
        let state = self.acp.enter().ok()?;
        let (span, offset) = state.memory.near(self.word)?;
        self.acp.fabric().atomic_at(span, offset, self.amo)
    }

    fn later(self) -> Boxed<'a, Result<W>> {
        let Fetch { acp, word, amo } = self;
        Box::pin(acp.retried([word], move || async move {
            if acp.delegates_atomics() {
                return acp.delegated_fetch(word, amo).await;
            }
            let word = acp.word::<W>(word).await?;
            Ok(acp.fabric().atomic(&word, amo).await?)
        }))
    }
}
