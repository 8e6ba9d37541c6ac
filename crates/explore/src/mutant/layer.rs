//! What the mutation makes of calls.

use super::{MutantHandle, Mutating, Mutation};
use rdma_fabric::{
    Amo, AtomicWord, Deps, Fabric, FabricError, GetSink, LocalWord, Location, Pod, PutOptions, PutSource, Rank,
    Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, SessionFabric,
    control_queue::{QueueLimits, QueueSpec},
    layer::Layer,
    op::{SinkView, SourceView},
};
use std::{
    future::{Future, poll_fn, ready},
    mem::replace,
    pin::pin,
    task::Poll,
};

fn word_bits(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

impl<F: Fabric, M: Mutation> Mutating<F, M> {
    fn seen<W: AtomicWord>(&self, addr: RemoteAddr, value: W) -> W {
        W::from_bits(self.mutation.seen(addr, value.to_bits()))
    }

    /// Post what is held, if this word lets it go.
    fn let_go(&self, below: &F, addr: RemoteAddr) {
        if self.mutation.lets_go(addr) {
            self.later.take().into_iter().for_each(|put| put(below));
        }
    }

    /// A flush that has not begun before it is polled.
    async fn flush_spoiled(&self, target: Option<Rank>, flush: impl Future<Output = Result<()>>) -> Result<()> {
        if !self.mutation.flushes(target) {
            return Ok(());
        }
        let mut flush = pin!(flush);
        if !self.mutation.awaits_flush(target) {
            return poll_fn(|cx| match flush.as_mut().poll(cx) {
                Poll::Pending => Poll::Ready(Ok(())),
                ended => ended,
            })
            .await;
        }
        flush.await
    }

    /// Put a word.
    fn put_spoiled<S: Unpin + 'static>(
        &self,
        below: &F,
        addr: RemoteAddr,
        bits: u64,
        from: S,
        options: PutOptions,
    ) -> Result<MutantHandle<S>, Refused<S>> {
        let put = |(addr, bits): (RemoteAddr, u64), options| {
            let to = below.remote_span::<u64>(addr, 1).map_err(|error| Refused::Failed(error, ()))?;
            below.try_put(&to, [bits], options).map_err(|refused| refused.map(drop))
        };
        if let Some(before) = self.mutation.puts_before(addr, bits) {
            drop(put(before, PutOptions::default()));
        }
        let Some(bits) = self.mutation.put(addr, bits) else { return Ok(MutantHandle::after(ready(Ok(from)))) };
        match put((addr, bits), options) {
            Ok(handle) => {
                self.let_go(below, addr);
                Ok(MutantHandle::new(handle, |_| from))
            }
            Err(refused) => Err(refused.map(|()| from)),
        }
    }
}

impl<F: Fabric, M: Mutation> Layer<F> for Mutating<F, M> {
    type Handle<T: Unpin + 'static> = MutantHandle<T>;

    fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> MutantHandle<T> {
        MutantHandle::new(handle, |out| out)
    }

    fn load<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>) -> Result<W> {
        Ok(self.seen(word.addr(), below.load(word)?))
    }

    fn store<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        if self.mutation.late(word.addr(), value.to_bits()) {
            self.held.borrow_mut().push((word.addr(), value.to_bits()));
            return Ok(());
        }
        below.store(word, value)
    }

    fn try_put<T: Pod, S: PutSource<F, T>>(
        &self,
        below: &F,
        to: &RemoteSpan<F, T>,
        from: S,
        options: PutOptions,
    ) -> Result<MutantHandle<S>, Refused<S>> {
        let addr = to.addr();
        let word = if let SourceView::Bytes(bytes) = from.view() { word_bits(bytes) } else { None };
        if let Some(bits) = word {
            self.mutation.sees_put(addr, bits);
            return self.put_spoiled(below, addr, bits, from, options);
        }
        if let SourceView::Registered(own) = from.view()
            && self.mutation.holds(addr, size_of::<T>() * to.len())
        {
            let own = match below.local_span::<T>(own.addr(), to.len()) {
                Ok(own) => own,
                Err(error) => return Err(Refused::Failed(error, from)),
            };
            let to = to.clone();
            self.later.borrow_mut().push(Box::new(move |below: &F| drop(below.try_put(&to, own, options))));
            return Ok(MutantHandle::after(ready(Ok(from))));
        }
        below.try_put(to, from, options).map(|handle| self.handle(below, handle))
    }

    fn try_get<T: Pod, D: GetSink<F, T>>(
        &self,
        below: &F,
        from: &RemoteSpan<F, T>,
        to: D,
    ) -> Result<MutantHandle<D>, Refused<D>> {
        let (addr, mutation) = (from.addr(), self.mutation.clone());
        let handle = below.try_get(from, to)?;
        Ok(MutantHandle::new(handle, move |mut to: D| {
            if let SinkView::Bytes(bytes) = to.view()
                && let Some(bits) = word_bits(bytes)
            {
                bytes.copy_from_slice(&mutation.got(addr, bits).to_ne_bytes());
            }
            to
        }))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        below: &F,
        word: &RemoteWord<F, W>,
        amo: Amo<W>,
    ) -> Result<MutantHandle<W>, Refused<()>> {
        let addr = word.addr();
        let failed = |error| Refused::Failed(error, ());
        let asked = amo.to_bits();
        let (this, fabric) = (self.clone(), below.clone());
        let inner = below.remote_word::<u64>(addr).map_err(failed)?;
        if let Some((to, bits)) = self.mutation.puts(addr, asked) {
            let to = below.remote_span::<u64>(to, 1).map_err(failed)?;
            drop(below.try_put(&to, [bits], PutOptions::default()).map_err(|refused| refused.map(drop))?);
        }
        if let Some(bits) = self.mutation.as_put(addr, asked) {
            let handle =
                below.try_put(&below.remote_span::<u64>(addr, 1).map_err(failed)?, [bits], PutOptions::default());
            let handle = handle.map_err(|refused| refused.map(drop))?;
            return Ok(MutantHandle::new(handle, |_| W::from_bits(0)));
        }
        if let Amo::CompareSwap { expected, new } = asked
            && self.mutation.tears(addr, asked)
        {
            return Ok(MutantHandle::after(async move {
                let old = fabric.get_word(&inner).await?;
                if old == expected {
                    fabric.put_word(&inner, new).await?;
                    fabric.flush(addr.rank).await?;
                }
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        let first = self.mutation.first(addr, asked);
        let done = if W::BYTES == 8 { self.mutation.atomic(addr, asked) } else { asked };
        if let Some((addr_of_first, amo)) = first {
            let word = below.remote_word::<u64>(addr_of_first).map_err(failed)?;
            return Ok(MutantHandle::after(async move {
                fabric.atomic(&word, amo).await?;
                let old = fabric.atomic(&inner, done).await?;
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        if self.mutation.goes_on(addr, asked) {
            return Ok(MutantHandle::after(async move {
                let mut old = fabric.atomic(&inner, done).await?;
                let (mut last, mut found) = ((addr, asked), old);
                while this.mutation.goes_on(last.0, last.1)
                    && let Some((to, amo)) = this.mutation.then(last.0, last.1, found)
                {
                    found = fabric.atomic(&fabric.remote_word::<u64>(to)?, amo).await?;
                    old = this.mutation.after(addr, asked, old, found);
                    last = (to, amo);
                }
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        let handle = below.try_atomic(&inner, done)?;
        self.let_go(below, addr);
        Ok(MutantHandle::new(handle, move |old| {
            for (addr, bits) in this.held.borrow_mut().drain(..) {
                let word = fabric.local_word::<u64>(addr).expect("resolved before");
                fabric.store(&word, bits).expect("registered");
            }
            W::from_bits(this.mutation.result(addr, asked, old))
        }))
    }

    fn try_nop(&self, below: &F) -> Result<MutantHandle<()>, Refused<()>> {
        let handle = below.try_nop()?;
        if self.mutation.nop_at_once() {
            return Ok(self.handle(below, handle));
        }
        let mut polled = false;
        let later = poll_fn(move |cx| {
            if replace(&mut polled, true) {
                return Poll::Ready(());
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        });
        Ok(MutantHandle::after(async {
            later.await;
            handle.await
        }))
    }

    async fn flush(&self, below: &F, target: Rank) -> Result<()> {
        self.flush_spoiled(Some(target), below.flush(target)).await
    }

    async fn flush_all(&self, below: &F) -> Result<()> {
        self.flush_spoiled(None, below.flush_all()).await
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        below: &F,
        word: &LocalWord<F, W>,
        deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let addr = word.addr();
        if !self.mutation.waits(addr) {
            return Ok(W::from_bits(self.mutation.taken_for(addr, below.load(word)?.to_bits())));
        }
        let waited = below.wait_until(word, deps, |value: W| until(self.seen(addr, value))).await;
        waited.map(|value| self.seen(addr, value))
    }

    fn detach(&self, below: &F, rest: impl Future<Output = ()> + 'static) {
        if self.mutation.detaches() {
            below.detach(rest);
        }
    }

    /// None: what they do would pass unmutated.
    fn queue_limits(&self, _: &F) -> QueueLimits
    where
        F: SessionFabric,
    {
        QueueLimits::NONE
    }

    fn open_queue(&self, _: &F, _: QueueSpec) -> Result<F::Queue>
    where
        F: SessionFabric,
    {
        Err(FabricError::Unsupported { feature: "control queues of a mutant" })
    }
}
