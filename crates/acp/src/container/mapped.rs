//! Calls that complete without waiting, and the memory that containers use.
//!
//! The work of a call under a lock word is written once, generic over [`Memory`]. Over an [`Acp`],
//! each access is an operation that may have to be awaited. Over a [`MappedHeap`], which is mapped
//! and looked up once per call, an access is a few instructions. Such a call never waits, so no
//! other rank sees intermediate states, and its future cannot be dropped half-way.

use super::lock::{holding, was_held};
use crate::{Acp, AcpError, GlobalAddress, Result, address::RegionId};
use core::{
    future::{Future, ready},
    pin::Pin,
};
use rdma_fabric::{Amo, RemoteSpan, join, provider::SHORT};

/// How often a call polls a lock that another rank holds: for about the duration of a call. If the
/// lock is still held then, its holder may have been descheduled.
const SPIN_LIMIT: u32 = 50;

/// Memory that a call reads and puts to. Bytes and words are located by an address and an offset
/// from it.
pub(super) trait Memory: Sync {
    /// The reason why a call is not done.
    type Error: From<AcpError> + Send;

    /// Returns the calling rank.
    fn acp(&self) -> &Acp;

    /// Reads bytes.
    fn read(
        &self,
        base: GlobalAddress,
        offset: u64,
        into: &mut [u8],
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Puts bytes, which are visible once the puts are [settled](Memory::settle), or the lock is
    /// released.
    fn put(
        &self,
        base: GlobalAddress,
        offset: u64,
        from: &[u8],
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Reads words.
    fn words<const N: usize>(
        &self,
        base: GlobalAddress,
        offset: u64,
    ) -> impl Future<Output = Result<[u64; N], Self::Error>> + Send;

    /// Puts words.
    fn put_words<const N: usize>(
        &self,
        base: GlobalAddress,
        offset: u64,
        words: [u64; N],
    ) -> impl Future<Output = Result<(), Self::Error>> + Send;

    /// Makes previous puts visible.
    fn settle(&self) -> impl Future<Output = Result<(), Self::Error>> + Send;
}

impl Memory for Acp {
    type Error = AcpError;

    fn acp(&self) -> &Acp {
        self
    }

    async fn read(&self, base: GlobalAddress, offset: u64, into: &mut [u8]) -> Result<()> {
        Acp::read(self, base.offset_by(offset)?, into).await
    }

    async fn put(&self, base: GlobalAddress, offset: u64, from: &[u8]) -> Result<()> {
        Acp::put(self, base.offset_by(offset)?, from).await
    }

    async fn words<const N: usize>(&self, base: GlobalAddress, offset: u64) -> Result<[u64; N]> {
        let mut words = [0; N];
        Acp::read(self, base.offset_by(offset)?, &mut words).await?;
        Ok(words)
    }

    async fn put_words<const N: usize>(&self, base: GlobalAddress, offset: u64, words: [u64; N]) -> Result<()> {
        Acp::put(self, base.offset_by(offset)?, &words).await
    }

    async fn settle(&self) -> Result<()> {
        self.flush_all().await
    }
}

/// A mapped heap of a rank, during a turn of the state.
#[derive(Clone, Copy)]
pub(super) struct MappedHeap<'a> {
    acp: &'a Acp,
    pub(super) heap: &'a RemoteSpan<u8>,
    id: RegionId,
    /// The number of allocations for futures that may have been dropped: calls on heaps free them
    /// first.
    pub(super) unclaimed: u32,
}

impl Acp {
    /// Calls `used` with the heap that contains `at`, if it is resolved. `used` must not enter the
    /// state, which is already entered.
    #[inline(always)]
    pub(super) fn mapped<Out>(
        &self,
        at: GlobalAddress,
        used: impl FnOnce(MappedHeap<'_>) -> Option<Out>,
    ) -> Option<Out> {
        let mut state = self.enter().ok()?;
        let (heap, _) = state.memory.mapped(at)?;
        let out = used(MappedHeap { acp: self, heap, id: at.id(), unclaimed: state.unclaimed.len() as u32 });
        state.serve_now();
        out
    }
}

impl MappedHeap<'_> {
    /// Runs `body`, which never waits, while holding the lock at `word`. Returns `None`, with no
    /// effect, if that is not possible immediately, or if `body` fails: the caller then does the
    /// same with [`locked`](super::lock::locked), which waits or reports the error.
    #[inline(always)]
    pub(super) fn locked<Out>(
        self,
        word: GlobalAddress,
        body: Pin<&mut impl Future<Output = Result<Out, Missed>>>,
    ) -> Option<Result<Out>> {
        self.locked_now(word, || join::now(body)?.ok())
    }

    /// Like [`MappedHeap::locked`], for a `body` without futures, which fails by returning `None`.
    ///
    /// The puts of `body` are visible to the next holder of the lock; until they are, other ranks
    /// read the word as taken. So no barrier follows.
    #[inline(always)]
    pub(super) fn locked_now<Out>(
        self,
        word: GlobalAddress,
        body: impl FnOnce() -> Option<Out>,
    ) -> Option<Result<Out>> {
        let (fabric, mine, at) = (self.acp.fabric(), holding(self.acp), self.offset(word, 0)?);
        let mut looks = 0;
        while fabric.direct().atomic_at(self.heap, at, Amo::CompareSwap { expected: 0, new: mine })? != 0 {
            while fabric.direct().get_word_at::<_, u64>(self.heap, at)? != 0 {
                looks += 1;
                if looks == SPIN_LIMIT {
                    return None;
                }
                core::hint::spin_loop();
            }
        }
        let done = body();
        // No other rank writes a held word, so this need not be an atomic. Release: pairs with the
        // atomic that takes the lock.
        let is_held = fabric.direct().get_word_at(self.heap, at) == Some(mine);
        if is_held {
            fabric.direct().put_word_at(self.heap, at, 0u64)?;
        }
        let out = done?;
        Some(was_held(is_held, word).map(|()| out))
    }

    /// Hints that the word will be written soon.
    #[inline(always)]
    pub(super) fn expect(&self, word: GlobalAddress) {
        if let Some(at) = self.offset(word, 0) {
            self.acp.fabric().direct().expect_put_at(self.heap, at);
        }
    }

    #[inline(always)]
    fn offset(&self, base: GlobalAddress, offset: u64) -> Option<usize> {
        (base.id() == self.id).then(|| base.offset().saturating_add(offset) as usize)
    }

    #[inline(always)]
    pub(super) fn get(&self, base: GlobalAddress, offset: u64, into: &mut [u8]) -> Option<()> {
        let (fabric, mut offset) = (self.acp.fabric(), self.offset(base, offset)?);
        // The usual length, in few instructions.
        if let Ok(into) = <&mut [u8; SHORT]>::try_from(&mut *into) {
            return fabric.direct().get_slice_at(self.heap, offset, into);
        }
        for piece in into.chunks_mut(SHORT) {
            fabric.direct().get_slice_at(self.heap, offset, piece)?;
            offset += piece.len();
        }
        Some(())
    }

    #[inline(always)]
    fn set(&self, base: GlobalAddress, offset: u64, from: &[u8]) -> Option<()> {
        let (fabric, mut offset) = (self.acp.fabric(), self.offset(base, offset)?);
        if from.len() <= SHORT {
            return fabric.direct().put_slice_at(self.heap, offset, from);
        }
        for piece in from.chunks(SHORT) {
            fabric.direct().put_slice_at(self.heap, offset, piece)?;
            offset += piece.len();
        }
        Some(())
    }

    #[inline(always)]
    pub(super) fn get_words<const N: usize>(&self, base: GlobalAddress, offset: u64) -> Option<[u64; N]> {
        self.acp.fabric().direct().get_words_at(self.heap, self.offset(base, offset)?)
    }

    #[inline(always)]
    fn set_words<const N: usize>(&self, base: GlobalAddress, offset: u64, words: [u64; N]) -> Option<()> {
        self.acp.fabric().direct().put_words_at(self.heap, self.offset(base, offset)?, words)
    }
}

/// A call on a [`MappedHeap`] is not possible, or fails. The reason is not reported: the whole call
/// is repeated in the general way, and fails for the same reason.
#[derive(Debug)]
pub(super) struct Missed;

impl From<AcpError> for Missed {
    #[cold]
    fn from(_: AcpError) -> Self {
        Missed
    }
}

// Not `async`: these are inlined.
impl Memory for MappedHeap<'_> {
    type Error = Missed;

    #[inline(always)]
    fn acp(&self) -> &Acp {
        self.acp
    }

    #[inline(always)]
    fn read(
        &self,
        base: GlobalAddress,
        offset: u64,
        into: &mut [u8],
    ) -> impl Future<Output = Result<(), Missed>> + Send {
        ready(self.get(base, offset, into).ok_or(Missed))
    }

    #[inline(always)]
    fn put(&self, base: GlobalAddress, offset: u64, from: &[u8]) -> impl Future<Output = Result<(), Missed>> + Send {
        ready(self.set(base, offset, from).ok_or(Missed))
    }

    #[inline(always)]
    fn words<const N: usize>(
        &self,
        base: GlobalAddress,
        offset: u64,
    ) -> impl Future<Output = Result<[u64; N], Missed>> + Send {
        ready(self.get_words(base, offset).ok_or(Missed))
    }

    #[inline(always)]
    fn put_words<const N: usize>(
        &self,
        base: GlobalAddress,
        offset: u64,
        words: [u64; N],
    ) -> impl Future<Output = Result<(), Missed>> + Send {
        ready(self.set_words(base, offset, words).ok_or(Missed))
    }

    #[inline(always)]
    fn settle(&self) -> impl Future<Output = Result<(), Missed>> + Send {
        ready(Ok(()))
    }
}
