//! What this rank's calls have to do with delegation: they ask others, and serve them while they
//! wait.

use super::{Request, ask, is_atomic_delegated};
use crate::{
    Acp, GlobalAddress, Handle, Order, Result,
    engine::{Flight, Kind, Pair, change_by_cpu, of_reply, storing_reply},
};
use core::{
    future::{Future, poll_fn},
    pin::pin,
};
use rdma_fabric::{Amo, AtomicWord, provider::Boxed};

impl Acp {
    /// Returns whether atomics are carried out by the CPU of the word's rank.
    pub(crate) fn delegates_atomics(&self) -> bool {
        is_atomic_delegated(self.fabric(), self.options())
    }

    /// Awaits something; meanwhile makes progress with this rank's operations, and serves other
    /// ranks where the network leaves something to them. Waits in this crate's own calls do so
    /// anyhow; this is for all others.
    pub async fn while_serving<F: Future>(&self, future: F) -> F::Output {
        let mut future = pin!(future);
        poll_fn(|cx| {
            let poll = future.as_mut().poll(cx);
            if poll.is_pending() {
                // On another thread than its own it can't have been called at all.
                let _ = self.with(|state| {
                    while state.engine.len() > 0 && state.engine.poll_front(cx).is_ready() {}
                    state.poll_server(cx);
                });
            }
            poll
        })
        .await
    }

    /// Has a copy between other ranks' memory carried out by the destination's rank.
    pub(crate) async fn delegated_copy(
        &self,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: Order,
    ) -> Result<Handle> {
        // What the server would refuse is refused here, before anything is sent.
        self.span(to, bytes).await?;
        self.span(from, bytes).await?;
        let pair = (from.rank().number(), to.rank().number());
        let request = Request::Copy { to, from, bytes: bytes as u64 };
        self.issue_delegated(request, Some(pair), order, of_reply).await
    }

    /// Has an atomic on another rank's word carried out by that rank.
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

    /// Changes a word where atomics are delegated; returns what it was before.
    pub(crate) async fn delegated_fetch<W: AtomicWord>(&self, address: GlobalAddress, amo: Amo<W>) -> Result<W> {
        let word = self.word::<W>(address).await?;
        if address.rank() == self.rank() {
            return change_by_cpu(self.fabric(), &word, amo);
        }
        let request = Request::Atomic { word: address, width: W::BYTES as u8, amo: amo.to_bits() };
        let asked = loop {
            match self.asked(request, false)? {
                Some(asked) => break asked,
                None => self.one_fewer().await?,
            }
        };
        self.while_serving(asked).await.map(W::from_bits)
    }

    /// Prepares a request; `None` if as many as possible are under way.
    fn asked(&self, request: Request, flush_first: bool) -> Result<Option<Boxed<'static, Result<u64>>>> {
        self.try_with(|state| match state.replies.take() {
            Some(reply) => ask(&state.memory, state.me, request, reply, flush_first).map(Some),
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
            let flush_first = self.with(|state| state.engine.must_flush(self.fabric(), order))?;
            if let Some(asked) = self.asked(request, flush_first)? {
                return self.with(|state| state.engine.issue(kind, flight(asked), order));
            }
            self.one_fewer().await?;
        }
    }
}
