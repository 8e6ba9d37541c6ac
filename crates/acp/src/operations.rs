//! Copies and atomics between any two addresses, with an order given by the caller.

use crate::{
    Acp, AcpError, GlobalAddress, Handle, Order, Result, cost,
    engine::{Kind, atomic, atomic_by_cpu, copy},
    queue::Command,
    state::State,
};
use core::{future::Future, task::Context};
use rdma_fabric::{
    Amo, AtomicWord,
    fast_path::{FastPath, fast_path},
    provider::Boxed,
};

impl Acp {
    /// Copies `bytes` bytes from `from` to `to`, both of any rank. Returns once the copy has been
    /// issued, which requires no waiting unless [`Options::depth`](crate::Options::depth)
    /// operations are in flight; the handle shows when it is complete. A copy of no bytes is valid.
    /// If source and destination overlap, each byte written is either the previous byte of the
    /// source or one that the copy itself has written there.
    ///
    /// # Errors
    /// In these cases nothing is issued: [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`],
    /// [`AcpError::OutOfBounds`]; [`AcpError::Fabric`].
    #[inline(always)]
    pub fn copy(
        &self,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: impl Into<Order>,
    ) -> impl Future<Output = Result<Handle>> {
        fast_path(Copy { acp: self, to, from, bytes, order: order.into() }, Copy::slow)
    }

    /// Changes the word at `word`, of any rank, and stores its previous value at `to`, which must
    /// be this rank's own; words are `u32` and `u64`. Returns when the operation is issued, as
    /// [`Acp::copy`] does.
    ///
    /// # Errors
    /// In these cases nothing is issued: [`AcpError::NotOwn`], [`AcpError::Misaligned`],
    /// [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`], [`AcpError::OutOfBounds`];
    /// [`AcpError::Fabric`].
    #[inline(always)]
    pub fn atomic<W: AtomicWord>(
        &self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<W>,
        order: impl Into<Order>,
    ) -> impl Future<Output = Result<Handle>> {
        fast_path(Atomic { acp: self, to, word, amo, order: order.into() }, Atomic::slow)
    }

    async fn copy_later(&self, to: GlobalAddress, from: GlobalAddress, bytes: usize, order: Order) -> Result<Handle> {
        if self.is_queued() {
            return self.queued(Command::Copy { to, from, bytes, order }).await;
        }
        let me = self.rank();
        cost::call(self.fabric(), self.options(), false).await;
        if to.rank() != me || from.rank() != me {
            cost::network(self.fabric(), self.options()).await;
        }
        if to.rank() != me && from.rank() != me && !self.fabric().caps().third_party_copy {
            return self.delegated_copy(to, from, bytes, order).await;
        }
        self.room().await?;
        let (to_span, from_span) = (self.span(to, bytes).await?, self.span(from, bytes).await?);
        self.with(|state| {
            let kind = Kind::Copy((from.rank().number(), to.rank().number()));
            state.counters.add_copy(me, to, from, bytes);
            state.engine.issue(self.fabric(), kind, copy(self.fabric(), to_span, from_span), order)
        })
    }

    async fn atomic_later<W: AtomicWord>(
        &self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<W>,
        order: Order,
    ) -> Result<Handle> {
        if to.rank() != self.rank() {
            return Err(AcpError::NotOwn { address: to });
        }
        if self.is_queued() {
            return self.queued(Command::atomic(to, word, amo, order)).await;
        }
        let by_cpu = self.is_by_cpu(word);
        cost::call(self.fabric(), self.options(), by_cpu).await;
        if !by_cpu {
            cost::network(self.fabric(), self.options()).await;
        }
        if !by_cpu && self.delegates_atomics() {
            return self.delegated_atomic(to, word, amo, order).await;
        }
        self.room().await?;
        let (to, at) = (self.word::<W>(to).await?, self.word::<W>(word).await?);
        self.with(|state| {
            let fabric = self.fabric();
            state.counters.add_atomic(state.me, word, &amo);
            let flight = if by_cpu { atomic_by_cpu(fabric, to, at, amo) } else { atomic(fabric, to, at, amo) };
            state.engine.issue(fabric, Kind::Atomic, flight, order)
        })
    }
}

struct Copy<'a> {
    acp: &'a Acp,
    to: GlobalAddress,
    from: GlobalAddress,
    bytes: usize,
    order: Order,
}

impl FastPath for Copy<'_> {
    type Out = Result<Handle>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Handle>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a> Copy<'a> {
    #[inline(always)]
    fn at_once(&self) -> Option<Handle> {
        let mut state = self.acp.enter().ok()?;
        let State { memory, engine, counters, me, queue: None, .. } = &mut *state else { return None };
        let (to, from) = (memory.mapped(self.to)?, memory.mapped(self.from)?);
        if !engine.may_start(self.acp.fabric(), self.order) {
            return None;
        }
        self.acp.fabric().direct().copy_at(to, from, self.bytes)?;
        counters.add_copy(*me, self.to, self.from, self.bytes);
        let handle = engine.count_over();
        self.acp.passed(handle.0);
        state.serve_now();
        Some(handle)
    }

    fn slow(self) -> Boxed<'a, Result<Handle>> {
        let Copy { acp, to, from, bytes, order } = self;
        Box::pin(acp.retried([to, from], move || acp.copy_later(to, from, bytes, order)))
    }
}

struct Atomic<'a, W> {
    acp: &'a Acp,
    to: GlobalAddress,
    word: GlobalAddress,
    amo: Amo<W>,
    order: Order,
}

impl<W: AtomicWord> FastPath for Atomic<'_, W> {
    type Out = Result<Handle>;
    type Stage = Self;

    #[inline(always)]
    fn fast(self, _: &mut Context<'_>) -> Result<Result<Handle>, Self> {
        self.at_once().map(Ok).ok_or(self)
    }
}

impl<'a, W: AtomicWord> Atomic<'a, W> {
    #[inline(always)]
    fn at_once(&self) -> Option<Handle> {
        let mut state = self.acp.enter().ok()?;
        let fabric = self.acp.fabric();
        let State { memory, engine, counters, me, queue: None, .. } = &mut *state else { return None };
        let (own, word) = (memory.mapped(self.to)?, memory.mapped(self.word)?);
        if self.to.rank() != *me || !engine.may_start(fabric, self.order) {
            return None;
        }
        let put = fabric.direct().atomic_into_at(word, own, self.amo)?;
        counters.add_atomic(*me, self.word, &self.amo);
        // The atomic is visible. The store of its result may still be in the CPU's buffer.
        let handle = engine.count_over();
        self.acp.passed(handle.0);
        // Memory of this rank stays registered unless another thread of this rank unregisters it
        // concurrently.
        if !put {
            engine.fail(handle.0, AcpError::NoSuchRegion { address: self.to });
        }
        state.serve_now();
        Some(handle)
    }

    fn slow(self) -> Boxed<'a, Result<Handle>> {
        let Atomic { acp, to, word, amo, order } = self;
        Box::pin(acp.retried([to, word], move || acp.atomic_later(to, word, amo, order)))
    }
}
