//! Calls that delegate operations to other ranks.

use super::{Request, ask, is_atomic_delegated};
use crate::{
    Acp, GlobalAddress, Handle, Order, Result,
    engine::{Flight, Kind, Pair, change_by_cpu, of_reply, storing_reply},
};
use core::{
    future::Future,
    pin::Pin,
    task::{Context, Poll, ready},
};
use rdma_fabric::{Amo, AtomicWord, provider::Boxed};

impl Acp {
    /// Returns whether the CPU of the word's rank executes atomics.
    pub(crate) fn delegates_atomics(&self) -> bool {
        is_atomic_delegated(self.fabric(), self.options())
    }

    /// Copies between other ranks' memory, executed by the destination's rank.
    pub(crate) async fn delegated_copy(
        &self,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: Order,
    ) -> Result<Handle> {
        // Addresses that the server would reject are rejected here, before anything is sent.
        self.span(to, bytes).await?;
        self.span(from, bytes).await?;
        let pair = (from.rank().number(), to.rank().number());
        let request = Request::Copy { to, from, bytes: bytes as u64 };
        self.issue_delegated(request, Some(pair), order, of_reply).await
    }

    /// Changes another rank's word by an atomic, executed by that rank.
    pub(crate) async fn delegated_atomic<W: AtomicWord>(
        &self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<W>,
        order: Order,
    ) -> Result<Handle> {
        let own = self.word::<W>(to).await?;
        self.word::<W>(word).await?;
        let request = Request::Atomic { word, width: W::BYTES as u8, amo: amo.to_bits() };
        let store = |asked| storing_reply(self.fabric(), own.clone(), asked);
        self.issue_delegated(request, None, order, store).await
    }

    /// Changes a word where atomics are delegated; returns its previous value.
    pub(crate) async fn delegated_fetch<W: AtomicWord>(&self, address: GlobalAddress, amo: Amo<W>) -> Result<W> {
        let word = self.word::<W>(address).await?;
        if address.rank() == self.rank() {
            return change_by_cpu(self.fabric(), &word, amo);
        }
        let request = Request::Atomic { word: address, width: W::BYTES as u8, amo: amo.to_bits() };
        let asked = loop {
            match self.requested(request)? {
                Some(asked) => break asked,
                None => self.one_fewer().await?,
            }
        };
        self.while_serving(Asked { acp: self, asked: Some(asked) }).await.map(W::from_bits)
    }

    /// Prepares a request; `None` if the maximum number of requests is in flight.
    fn requested(&self, request: Request) -> Result<Option<Boxed<'static, Result<u64>>>> {
        self.try_with(|state| match state.replies.take() {
            Some(reply) => ask(&state.memory, state.me, request, reply).map(Some),
            None => Ok(None),
        })
    }

    async fn issue_delegated(
        &self,
        request: Request,
        pair: Option<Pair>,
        order: Order,
        flight: impl Fn(Boxed<'static, Result<u64>>) -> Flight,
    ) -> Result<Handle> {
        let kind = Kind::Delegated { pair, server: request.server().number() };
        loop {
            self.room().await?;
            if let Some(asked) = self.requested(request)? {
                return self.with(|state| {
                    match &request {
                        Request::Copy { to, from, bytes } => {
                            state.counters.add_copy(state.me, *to, *from, *bytes as usize)
                        }
                        Request::Atomic { word, amo, .. } => state.counters.add_atomic(state.me, *word, amo),
                    }
                    state.engine.issue(self.fabric(), kind, flight(asked), order)
                });
            }
            self.one_fewer().await?;
        }
    }
}

/// A request that is executed even if this is dropped.
struct Asked<'a> {
    acp: &'a Acp,
    /// `None` once it has ended.
    asked: Option<Boxed<'static, Result<u64>>>,
}

impl Future for Asked<'_> {
    type Output = Result<u64>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<u64>> {
        let done = ready!(self.asked.as_mut().expect("polled after the end").as_mut().poll(cx));
        self.asked = None;
        Poll::Ready(done)
    }
}

impl Drop for Asked<'_> {
    fn drop(&mut self) {
        if let Some(asked) = self.asked.take() {
            // On a thread other than its own it cannot have been polled, so nothing was sent.
            let _ = self.acp.with(|state| state.unawaited.push(asked));
        }
    }
}
