//! Copies and atomics between any two addresses, in the order that their caller asks for.

use crate::{
    Acp, AcpError, GlobalAddress, Handle, Order, Result, cost,
    engine::{Kind, atomic, atomic_by_cpu, copy},
    queue::{Command, more_complete},
    soon::soon,
    state::State,
};
use core::{
    future::{Future, poll_fn},
    task::{Context, Poll, Waker},
};
use rdma_fabric::{Amo, AtomicWord, Fabric, join, provider::SHORT};

impl Acp {
    /// Copies `bytes` bytes from `from` to `to`, both of any rank. Ends when the copy is issued,
    /// which needs no wait unless [`Options::depth`](crate::Options::depth) operations are under
    /// way; the handle tells when it is complete. No bytes are a legal copy. If the two overlap,
    /// each byte written is what either was there before or arrived meanwhile.
    ///
    /// # Errors
    /// Nothing is issued then: [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`],
    /// [`AcpError::OutOfBounds`]; [`AcpError::Fabric`].
    #[inline]
    pub fn copy(
        &self,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: impl Into<Order>,
    ) -> impl Future<Output = Result<Handle>> {
        let order = order.into();
        soon(
            move || self.try_with(|state| state.copy_now(self.fabric(), to, from, bytes, order)).transpose(),
            move || {
                Box::pin(self.retried([to, from], move || async move {
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
                        let fabric = self.fabric();
                        let flush_first = state.engine.must_flush(fabric, order);
                        let pair = (from.rank().number(), to.rank().number());
                        state.engine.issue(Kind::Copy(pair), copy(fabric, to_span, from_span, flush_first), order)
                    })
                }))
            },
        )
    }

    /// Changes the word at `word`, of any rank, and stores what it was before at `to`, which must
    /// be this rank's own; `u32` and `u64` are the words there are. Ends when the operation is
    /// issued, as [`Acp::copy`] does.
    ///
    /// # Errors
    /// Nothing is issued then: [`AcpError::NotOwn`], [`AcpError::Misaligned`],
    /// [`AcpError::NoSuchRank`], [`AcpError::NoSuchRegion`], [`AcpError::OutOfBounds`];
    /// [`AcpError::Fabric`].
    #[inline]
    pub fn atomic<W: AtomicWord>(
        &self,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<W>,
        order: impl Into<Order>,
    ) -> impl Future<Output = Result<Handle>> {
        let order = order.into();
        soon(
            move || self.try_with(|state| state.atomic_now(self.fabric(), to, word, amo, order)).transpose(),
            move || {
                Box::pin(self.retried([to, word], move || async move {
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
                    let (to, word) = (self.word::<W>(to).await?, self.word::<W>(word).await?);
                    self.with(|state| {
                        let flush_first = state.engine.must_flush(self.fabric(), order);
                        let flight = match by_cpu {
                            true => atomic_by_cpu(self.fabric(), to, word, amo, flush_first),
                            false => atomic(self.fabric(), to, word, amo, flush_first),
                        };
                        state.engine.issue(Kind::Atomic, flight, order)
                    })
                }))
            },
        )
    }

    /// Waits until an operation and all earlier ones are complete: their effects are visible at
    /// their destinations. A handle that was never issued counts as complete.
    ///
    /// # Errors
    /// The first failure among them that was not reported before; the others among them are
    /// complete or have failed.
    #[inline]
    pub fn complete(&self, handle: Handle) -> impl Future<Output = Result<()>> {
        self.completed(Order::After(handle))
    }

    /// Waits until every operation issued so far is complete.
    ///
    /// # Errors
    /// As [`Acp::complete`].
    #[inline]
    pub fn complete_all(&self) -> impl Future<Output = Result<()>> {
        self.completed(Order::All)
    }

    #[inline(always)]
    fn completed(&self, limit: Order) -> impl Future<Output = Result<()>> {
        soon(
            move || {
                self.try_with(|state| match state.queue {
                    None => state.engine.complete_now(self.fabric(), limit).transpose(),
                    Some(_) => Ok(None),
                })
                .transpose()
            },
            move || Box::pin(self.completed_later(limit)),
        )
    }

    async fn completed_later(&self, limit: Order) -> Result<()> {
        let queued =
            self.with(|state| state.queue.as_ref().map(|queue| (queue.complete_word(), queue.last_of(limit))))?;
        if let Some((word, until)) = queued {
            more_complete(self.fabric(), &word, until - 1).await?;
            return self.try_with(|state| state.queue.as_ref().map_or(Ok(()), |queue| queue.report(until)));
        }
        let until = self.with(|state| state.engine.last_of(limit))?;
        poll_fn(|cx| {
            let poll = self.with(|state| match state.engine.poll_complete(self.fabric(), until, cx) {
                Poll::Ready(done) => Poll::Ready(done.map_err(|error| state.memory.explained(error))),
                Poll::Pending => {
                    state.poll_server(cx);
                    Poll::Pending
                }
            });
            poll.unwrap_or_else(|error| Poll::Ready(Err(error)))
        })
        .await
    }

    /// Returns whether an operation and all earlier ones are complete, without waiting.
    ///
    /// # Errors
    /// As [`Acp::complete`].
    pub fn is_complete(&self, handle: Handle) -> Result<bool> {
        let poll = self.try_with(|state| {
            if let Some(queue) = &state.queue {
                let until = queue.last_of(Order::After(handle));
                let complete = queue.complete()? >= until;
                return Ok(if complete { Poll::Ready(queue.report(until)) } else { Poll::Pending });
            }
            let until = state.engine.last_of(Order::After(handle));
            let poll = state.engine.poll_complete(self.fabric(), until, &mut Context::from_waker(Waker::noop()));
            Ok(poll.map_err(|error| state.memory.explained(error)))
        })?;
        match poll {
            Poll::Ready(complete) => complete.map(|()| true),
            Poll::Pending => Ok(false),
        }
    }

    /// Waits until one more operation may be under way.
    pub(crate) async fn room(&self) -> Result<()> {
        self.fewer_than(self.options().depth).await
    }

    /// Waits until fewer than `depth` operations are under way.
    async fn fewer_than(&self, depth: usize) -> Result<()> {
        poll_fn(|cx| {
            let poll = self.with(|state| {
                let poll = state.engine.poll_room(depth, cx);
                if poll.is_pending() {
                    state.poll_server(cx);
                }
                poll
            });
            poll.map_or_else(|error| Poll::Ready(Err(error)), |poll| poll.map(Ok))
        })
        .await
    }

    /// Waits until one operation fewer is under way.
    pub(crate) async fn one_fewer(&self) -> Result<()> {
        let under_way = self.with(|state| state.engine.len())?;
        self.fewer_than(under_way.max(1)).await
    }
}

impl State {
    /// Copies directly, if that is possible and in order.
    #[inline(always)]
    fn copy_now(
        &mut self,
        fabric: &Fabric,
        to: GlobalAddress,
        from: GlobalAddress,
        bytes: usize,
        order: Order,
    ) -> Result<Option<Handle>> {
        if bytes > SHORT || !self.engine.is_idle(order) || self.queue.is_some() {
            return Ok(None);
        }
        let (Ok(to), Ok(from)) = (self.memory.bytes_at(to, bytes), self.memory.bytes_at(from, bytes)) else {
            return Ok(None);
        };
        if !to.place().admits(bytes) || !from.place().admits(bytes) {
            return Ok(None);
        }
        let mut buffer = [0; SHORT];
        let Some(Ok(())) = join::now(fabric.get_slice(&from, &mut buffer[..bytes])) else { return Ok(None) };
        let Some(Ok(())) = join::now(fabric.put_slice(&to, &buffer[..bytes])) else { return Ok(None) };
        Ok(Some(self.engine.count_over(true)))
    }

    /// Changes a word directly, if that is possible and in order.
    #[inline(always)]
    fn atomic_now<W: AtomicWord>(
        &mut self,
        fabric: &Fabric,
        to: GlobalAddress,
        word: GlobalAddress,
        amo: Amo<W>,
        order: Order,
    ) -> Result<Option<Handle>> {
        if to.rank() != self.me || !self.engine.is_idle(order) || self.queue.is_some() {
            return Ok(None);
        }
        let (Ok(own), Ok(word)) = (self.memory.word_at::<W>(to), self.memory.word_at::<W>(word)) else {
            return Ok(None);
        };
        // Own memory is registered as long as this rank does not unregister it.
        if !own.place().admits(W::BYTES) {
            return Ok(None);
        }
        let Some(before) = fabric.atomic_now(&word, amo) else { return Ok(None) };
        if fabric.put_word_now(&own, before).is_none() {
            return Err(AcpError::NoSuchRegion { address: to });
        }
        Ok(Some(self.engine.count_over(false)))
    }
}
