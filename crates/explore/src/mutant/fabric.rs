//! The contract, passed on with what the mutation makes of it.

use super::{Across, Mutant, MutantHandle, Mutation};
use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, GetSink, LocalSpan, LocalWord, Location, Node, Notice, Pact, Pod, PutOptions,
    PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, SessionFabric, Time, Triggers,
    control_queue::NoQueue,
    op::{SinkView, SourceView},
};
use std::{
    future::{Future, poll_fn, ready},
    mem::replace,
    task::Poll,
    time::Duration,
};

fn word_bits(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

impl<F: Fabric, M: Mutation> Mutant<F, M> {
    fn seen<W: AtomicWord>(&self, addr: RemoteAddr, value: W) -> W {
        W::from_bits(self.mutation.seen(addr, value.to_bits()))
    }

    /// Post what is held, if this word lets it go.
    fn let_go(&self, addr: RemoteAddr) {
        if self.mutation.lets_go(addr) {
            self.later.take().into_iter().for_each(|put| put(&self.inner));
        }
    }

    /// Put a word.
    fn put_spoiled<S: Unpin + 'static>(
        &self,
        addr: RemoteAddr,
        bits: u64,
        from: S,
        options: PutOptions,
    ) -> Result<MutantHandle<S>, Refused<S>> {
        let put = |(addr, bits): (RemoteAddr, u64), options| {
            let to = self.inner.remote_span::<u64>(addr, 1).map_err(|error| Refused::Failed(error, ()))?;
            self.inner.try_put(&to, [bits], options).map_err(|refused| refused.map(drop))
        };
        if let Some(before) = self.mutation.puts_before(addr, bits) {
            drop(put(before, PutOptions::default()));
        }
        let Some(bits) = self.mutation.put(addr, bits) else { return Ok(MutantHandle::after(ready(Ok(from)))) };
        match put((addr, bits), options) {
            Ok(handle) => {
                self.let_go(addr);
                Ok(MutantHandle::new(handle, |_| from))
            }
            Err(refused) => Err(refused.map(|()| from)),
        }
    }
}

impl<F: Fabric, M: Mutation> Fabric for Mutant<F, M> {
    type Loc = F::Loc;
    type Region = F::Region;
    type Handle<T: Unpin + 'static> = MutantHandle<T>;

    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    fn rank(&self) -> Rank {
        self.inner.rank()
    }

    fn ranks(&self) -> usize {
        self.inner.ranks()
    }

    fn node(&self, rank: Rank) -> Result<Node> {
        self.inner.node(rank)
    }

    fn nodes(&self) -> usize {
        self.inner.nodes()
    }

    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        self.inner.rank_on(node, number)
    }

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn alloc(&self, bytes: usize) -> Result<F::Region> {
        self.inner.alloc(bytes)
    }

    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<F::Region>> {
        self.inner.alloc_symmetric(bytes)
    }

    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        Ok(Mutant { inner: self.inner.keyless(pact.without_references())?, ..self.clone() })
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<F::Loc> {
        self.inner.locate(addr, len, align, width)
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        let addr = word.loc().addr();
        let value: W = self.inner.load(&self.inner.local_word(addr)?)?;
        Ok(self.seen(addr, value))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        let addr = word.loc().addr();
        if self.mutation.late(addr, value.to_bits()) {
            self.held.borrow_mut().push((addr, value.to_bits()));
            return Ok(());
        }
        self.inner.store(&self.inner.local_word(addr)?, value)
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        self.inner.read(&self.inner.local_span(span.loc().addr(), span.len())?, into)
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        self.inner.write(&self.inner.local_span(span.loc().addr(), span.len())?, from)
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<MutantHandle<S>, Refused<S>> {
        let inner = match self.inner.remote_span::<T>(to.loc().addr(), to.len()) {
            Ok(span) => span,
            Err(error) => return Err(Refused::Failed(error, from)),
        };
        let addr = to.loc().addr();
        let word = if let SourceView::Bytes(bytes) = from.view() { word_bits(bytes) } else { None };
        if let Some(bits) = word {
            self.mutation.sees_put(addr, bits);
            return self.put_spoiled(addr, bits, from, options);
        }
        if let SourceView::Registered(own) = from.view()
            && self.mutation.holds(addr, size_of::<T>() * to.len())
        {
            let own = match self.inner.local_span::<T>(own.addr(), to.len()) {
                Ok(own) => own,
                Err(error) => return Err(Refused::Failed(error, from)),
            };
            self.later.borrow_mut().push(Box::new(move |fabric: &F| drop(fabric.try_put(&inner, own, options))));
            return Ok(MutantHandle::after(ready(Ok(from))));
        }
        match self.inner.try_put(&inner, Across::<M, S>::new(from), options) {
            Ok(handle) => Ok(MutantHandle::new(handle, |across: Across<M, S>| across.0)),
            Err(refused) => Err(refused.map(|across| across.0)),
        }
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        to: D,
    ) -> Result<MutantHandle<D>, Refused<D>> {
        let addr = from.loc().addr();
        let inner = match self.inner.remote_span::<T>(addr, from.len()) {
            Ok(span) => span,
            Err(error) => return Err(Refused::Failed(error, to)),
        };
        let mutation = self.mutation.clone();
        match self.inner.try_get(&inner, Across::<M, D>::new(to)) {
            Ok(handle) => Ok(MutantHandle::new(handle, move |mut across: Across<M, D>| {
                if let SinkView::Bytes(bytes) = across.0.view()
                    && let Some(bits) = word_bits(bytes)
                {
                    bytes.copy_from_slice(&mutation.got(addr, bits).to_ne_bytes());
                }
                across.0
            })),
            Err(refused) => Err(refused.map(|across| across.0)),
        }
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<MutantHandle<W>, Refused<()>> {
        let addr = word.loc().addr();
        let failed = |error| Refused::Failed(error, ());
        let asked = amo.to_bits();
        let this = self.clone();
        let inner = self.inner.remote_word::<u64>(addr).map_err(failed)?;
        if let Some((to, bits)) = self.mutation.puts(addr, asked) {
            let to = self.inner.remote_span::<u64>(to, 1).map_err(failed)?;
            drop(self.inner.try_put(&to, [bits], PutOptions::default()).map_err(|refused| refused.map(drop))?);
        }
        if let Some(bits) = self.mutation.as_put(addr, asked) {
            let handle = self.inner.try_put(
                &self.inner.remote_span::<u64>(addr, 1).map_err(failed)?,
                [bits],
                PutOptions::default(),
            );
            let handle = handle.map_err(|refused| refused.map(drop))?;
            return Ok(MutantHandle::new(handle, |_| W::from_bits(0)));
        }
        if let Amo::CompareSwap { expected, new } = asked
            && self.mutation.tears(addr, asked)
        {
            return Ok(MutantHandle::after(async move {
                let old = this.inner.get_word(&inner).await?;
                if old == expected {
                    this.inner.put_word(&inner, new).await?;
                    this.inner.flush(addr.rank).await?;
                }
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        let first = self.mutation.first(addr, asked);
        let done = if W::BYTES == 8 { self.mutation.atomic(addr, asked) } else { asked };
        if let Some((addr_of_first, amo)) = first {
            let word = self.inner.remote_word::<u64>(addr_of_first).map_err(failed)?;
            return Ok(MutantHandle::after(async move {
                this.inner.atomic(&word, amo).await?;
                let old = this.inner.atomic(&inner, done).await?;
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        if self.mutation.goes_on(addr, asked) {
            return Ok(MutantHandle::after(async move {
                let mut old = this.inner.atomic(&inner, done).await?;
                if let Some((to, amo)) = this.mutation.then(addr, asked, old) {
                    let found = this.inner.atomic(&this.inner.remote_word::<u64>(to)?, amo).await?;
                    old = this.mutation.after(addr, asked, old, found);
                }
                Ok(W::from_bits(this.mutation.result(addr, asked, old)))
            }));
        }
        let handle = self.inner.try_atomic(&inner, done)?;
        self.let_go(addr);
        Ok(MutantHandle::new(handle, move |old| {
            for (addr, bits) in this.held.borrow_mut().drain(..) {
                let word = this.inner.local_word::<u64>(addr).expect("resolved before");
                this.inner.store(&word, bits).expect("registered");
            }
            W::from_bits(this.mutation.result(addr, asked, old))
        }))
    }

    fn try_nop(&self) -> Result<MutantHandle<()>, Refused<()>> {
        let handle = self.inner.try_nop()?;
        if self.mutation.nop_at_once() {
            return Ok(MutantHandle::new(handle, |()| ()));
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

    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        self.inner.room(target)
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        if self.mutation.flushes(Some(target)) { self.inner.flush(target).await } else { Ok(()) }
    }

    async fn flush_all(&self) -> Result<()> {
        if self.mutation.flushes(None) { self.inner.flush_all().await } else { Ok(()) }
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        mut until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let addr = word.loc().addr();
        let word = self.inner.local_word(addr)?;
        if !self.mutation.waits(addr) {
            return self.inner.load(&word);
        }
        self.inner
            .wait_until(&word, deps, |value: W| until(self.seen(addr, value)))
            .await
            .map(|value| self.seen(addr, value))
    }

    fn try_notice(&self) -> Result<Option<Notice>> {
        self.inner.try_notice()
    }

    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<Notice>> {
        self.inner.next_notice(deps)
    }

    fn now(&self) -> Time {
        self.inner.now()
    }

    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        self.inner.sleep_until(at)
    }

    fn compute(&self, duration: Duration) -> impl Future<Output = ()> {
        self.inner.compute(duration)
    }

    fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        self.inner.charge(layer)
    }

    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        if self.mutation.detaches() {
            self.inner.detach(rest);
        }
    }
}

impl<F: Fabric, M: Mutation> SessionFabric for Mutant<F, M> {
    type Queue = NoQueue<Self>;
}
