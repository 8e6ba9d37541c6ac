//! A fabric that breaks a protocol on its way to another fabric.
//!
//! The lock has no switches for its own mutation. What a mutated line would do differently is seen at the fabric: a
//! flush that is missing, a result that is ignored, a store that comes late. [`Mutant`] does that to every rank alike.

mod fair;
mod rp;

pub(crate) use fair::Fair;
pub(crate) use rp::{Rp, Step, Subject, assert_idle};

use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Location, Node, Notice, OpHandle,
    Pact, Pod, PutOptions, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Triggers,
    op::{SinkView, SourceView},
};
use std::{
    cell::RefCell,
    fmt,
    future::Future,
    marker::PhantomData,
    pin::Pin,
    rc::Rc,
    task::{Context, Poll, Waker},
    time::Duration,
};

/// What is done differently. Addresses are of 8-byte words; everything else passes unchanged.
pub(crate) trait Mutation: fmt::Debug + 'static {
    /// Whether a flush of `target` (`None`: of all) happens.
    fn flushes(&self, _target: Option<Rank>) -> bool {
        true
    }
    /// What a get of a word yields.
    fn got(&self, _addr: RemoteAddr, bits: u64) -> u64 {
        bits
    }
    /// The atomic that is executed.
    fn atomic(&self, _addr: RemoteAddr, amo: Amo<u64>) -> Amo<u64> {
        amo
    }
    /// What the poster of `amo` is told.
    fn result(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64) -> u64 {
        old
    }
    /// An atomic that is executed, to its end, before `amo` is posted.
    fn first(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// An atomic that is executed, to its end, after `amo`, which found `old`; what that finds goes to [`Mutation::after`].
    fn then(&self, _addr: RemoteAddr, _amo: Amo<u64>, _old: u64) -> Option<(RemoteAddr, Amo<u64>)> {
        None
    }
    /// What the poster of `amo` is told if another one came [after](Mutation::then) it.
    fn after(&self, _addr: RemoteAddr, _amo: Amo<u64>, old: u64, _found: u64) -> u64 {
        old
    }
    /// Whether [`Mutation::then`] is to be asked for this `amo`.
    fn goes_on(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// A word that is put, and not flushed, before `amo` is posted.
    fn puts(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> Option<(RemoteAddr, u64)> {
        None
    }
    /// Whether an own store waits until this rank's next atomic is complete.
    fn late(&self, _addr: RemoteAddr, _bits: u64) -> bool {
        false
    }
    /// Whether what a dropped future owes is done.
    fn detaches(&self) -> bool {
        true
    }
    /// Whether a comparison falls apart into a get and a put.
    fn tears(&self, _addr: RemoteAddr, _amo: Amo<u64>) -> bool {
        false
    }
    /// Whether an own word is waited for; if not, it is taken as it is.
    fn waits(&self, _addr: RemoteAddr) -> bool {
        true
    }
    /// A word is being put.
    fn sees_put(&self, _addr: RemoteAddr, _bits: u64) {}
}

/// `F`, mutated.
pub(crate) struct Mutant<F: Fabric, M: Mutation> {
    inner: F,
    mutation: Rc<M>,
    /// Stores that wait for an atomic to complete.
    held: Rc<RefCell<Vec<(RemoteAddr, u64)>>>,
    triggers: Rc<Triggers<Self>>,
}

impl<F: Fabric, M: Mutation> Clone for Mutant<F, M> {
    fn clone(&self) -> Self {
        Mutant {
            inner: self.inner.clone(),
            mutation: self.mutation.clone(),
            held: self.held.clone(),
            triggers: self.triggers.clone(),
        }
    }
}

impl<F: Fabric, M: Mutation> fmt::Debug for Mutant<F, M> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} with {:?}", self.inner, self.mutation)
    }
}

impl<F: Fabric, M: Mutation> Mutant<F, M> {
    /// One rank's `fabric` with one rank's `mutation`.
    pub(crate) fn new(fabric: F, mutation: M) -> Self {
        Mutant { inner: fabric, mutation: Rc::new(mutation), held: Rc::default(), triggers: Rc::default() }
    }
}

/// A source, sink or operation of the inner fabric that is one of the outer.
struct Across<M, B>(B, PhantomData<fn() -> M>);

impl<M, B> Across<M, B> {
    fn new(buffer: B) -> Self {
        Across(buffer, PhantomData)
    }
}

impl<F: Fabric, M: Mutation, T: Pod, S: PutSource<Mutant<F, M>, T>> PutSource<F, T> for Across<M, S> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&self) -> SourceView<'_, F::Loc> {
        self.0.view()
    }
}

impl<F: Fabric, M: Mutation, T: Pod, D: GetSink<Mutant<F, M>, T>> GetSink<F, T> for Across<M, D> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        self.0.view()
    }
}

/// A handle whose result is changed on the way out.
pub(crate) struct MutantHandle<T> {
    inner: Pin<Box<dyn Future<Output = Result<T>>>>,
    done: Option<Result<T>>,
}

impl<T: Unpin + 'static> MutantHandle<T> {
    fn new<I: Unpin + 'static>(inner: impl OpHandle<I>, change: impl FnOnce(I) -> T + 'static) -> Self {
        MutantHandle::after(async move { inner.await.map(change) })
    }

    fn after(inner: impl Future<Output = Result<T>> + 'static) -> Self {
        MutantHandle { inner: Box::pin(inner), done: None }
    }
}

impl<T: Unpin> Future for MutantHandle<T> {
    type Output = Result<T>;
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match self.done.take() {
            Some(result) => Poll::Ready(result),
            None => self.inner.as_mut().poll(cx),
        }
    }
}

impl<T: Unpin + 'static> OpHandle<T> for MutantHandle<T> {
    fn test(&mut self) -> bool {
        if self.done.is_none()
            && let Poll::Ready(result) = self.inner.as_mut().poll(&mut Context::from_waker(Waker::noop()))
        {
            self.done = Some(result);
        }
        self.done.is_some()
    }
    fn wait(mut self) -> Result<T> {
        self.test();
        self.done.unwrap_or(Err(FabricError::Unsupported { feature: "blocking wait" }))
    }
}

fn word_bits(bytes: &[u8]) -> Option<u64> {
    bytes.try_into().ok().map(u64::from_ne_bytes)
}

/// Applied to the amo of any word type; narrower ones pass unchanged.
fn as_u64<W: AtomicWord>(amo: Amo<W>) -> Amo<u64> {
    match amo {
        Amo::Add(v) => Amo::Add(v.to_bits()),
        Amo::Swap(v) => Amo::Swap(v.to_bits()),
        Amo::CompareSwap { expected, new } => Amo::CompareSwap { expected: expected.to_bits(), new: new.to_bits() },
        Amo::Or(v) => Amo::Or(v.to_bits()),
        Amo::And(v) => Amo::And(v.to_bits()),
        Amo::Xor(v) => Amo::Xor(v.to_bits()),
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
        self.inner.load(&self.inner.local_word(word.loc().addr())?)
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
        if let SourceView::Bytes(bytes) = from.view()
            && let Some(bits) = word_bits(bytes)
        {
            self.mutation.sees_put(to.loc().addr(), bits);
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
        let asked = as_u64(amo);
        let this = self.clone();
        let inner = self.inner.remote_word::<u64>(addr).map_err(failed)?;
        if let Some((to, bits)) = self.mutation.puts(addr, asked) {
            let to = self.inner.remote_span::<u64>(to, 1).map_err(failed)?;
            drop(self.inner.try_put(&to, [bits], PutOptions::default()).map_err(|refused| refused.map(drop))?);
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
        Ok(MutantHandle::new(handle, move |old| {
            for (addr, bits) in this.held.borrow_mut().drain(..) {
                let word = this.inner.local_word::<u64>(addr).expect("resolved before");
                this.inner.store(&word, bits).expect("registered");
            }
            W::from_bits(this.mutation.result(addr, asked, old))
        }))
    }

    fn try_nop(&self) -> Result<MutantHandle<()>, Refused<()>> {
        self.inner.try_nop().map(|handle| MutantHandle::new(handle, |()| ()))
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
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let addr = word.loc().addr();
        let word = self.inner.local_word(addr)?;
        if !self.mutation.waits(addr) {
            return self.inner.load(&word);
        }
        self.inner.wait_until(&word, deps, until).await
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
