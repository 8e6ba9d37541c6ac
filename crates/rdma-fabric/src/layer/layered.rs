//! The fabric under a layer.

use super::{Layer, LayeredHandle, handle::Across};
use crate::{
    Amo, AtomicWord, Caps, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, LockedMemory, Node, Notice,
    OwnedMemory, Pact, PutOptions, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, Time,
    Triggers, Uses,
};
use bytemuck::Pod;
use core::{fmt, future::Future, time::Duration};
use std::sync::Arc;

/// `F`, but for what the [`Layer`] `L` does differently. Locations and regions are those of `F`.
#[derive(Clone)]
pub struct Layered<F: Fabric, L: Layer<F>> {
    below: F,
    layer: L,
    triggers: Arc<Triggers<Self>>,
}

impl<F: Fabric, L: Layer<F>> Layered<F, L> {
    /// `below` under `layer`, which may be given as what it is made of: for names like `type Counted<F> = Layered<F, Counting>`.
    /// Where nothing tells the type of the layer, write [`Layer::over`].
    pub fn new(below: F, layer: impl Into<L>) -> Self {
        Layered { below, layer: layer.into(), triggers: Arc::default() }
    }

    /// The fabric below.
    #[inline]
    pub fn below(&self) -> &F {
        &self.below
    }

    /// The layer.
    #[inline]
    pub fn layer(&self) -> &L {
        &self.layer
    }
}

impl<F: Fabric, L: Layer<F>> fmt::Debug for Layered<F, L> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} under {:?}", self.below, self.layer)
    }
}

impl<F: Fabric, L: Layer<F>> Fabric for Layered<F, L> {
    type Loc = F::Loc;
    type Region = F::Region;
    type Handle<T: Unpin + 'static> = LayeredHandle<F, L, T>;

    #[inline]
    fn rank(&self) -> Rank {
        self.below.rank()
    }

    #[inline]
    fn ranks(&self) -> usize {
        self.below.ranks()
    }

    #[inline]
    fn node(&self, rank: Rank) -> Result<Node> {
        self.layer.node(&self.below, rank)
    }

    #[inline]
    fn nodes(&self) -> usize {
        self.layer.nodes(&self.below)
    }

    #[inline]
    fn rank_on(&self, node: Node, number: usize) -> Option<Rank> {
        self.layer.rank_on(&self.below, node, number)
    }

    #[inline]
    fn caps(&self) -> Caps {
        let mut caps = self.layer.caps(&self.below);
        caps.locked_memory = caps.locked_memory.min(LockedMemory::Copies);
        caps
    }

    #[inline]
    fn triggers(&self) -> &Triggers<Self> {
        &self.triggers
    }

    #[inline]
    fn alloc(&self, bytes: usize) -> Result<F::Region> {
        self.layer.alloc(&self.below, bytes)
    }

    #[inline]
    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<F::Region>> {
        self.layer.alloc_symmetric(&self.below, bytes)
    }

    #[inline]
    fn adopt(&self, memory: OwnedMemory, uses: Uses) -> Result<F::Region, (FabricError, OwnedMemory)> {
        self.layer.adopt(&self.below, memory, uses)
    }

    #[inline]
    fn release(&self, region: F::Region) -> impl Future<Output = Result<OwnedMemory>> {
        self.layer.release(&self.below, region)
    }

    fn keyless(&self, pact: Pact<Self>) -> Result<Self> {
        Ok(Layered { below: self.below.keyless(pact.without_references())?, ..self.clone() })
    }

    #[inline]
    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<F::Loc> {
        self.layer.locate(&self.below, addr, len, align, width)
    }

    #[inline]
    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.layer.load(&self.below, &word.through())
    }

    #[inline]
    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.layer.store(&self.below, &word.through(), value)
    }

    #[inline]
    fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.layer.store_unwaited(&self.below, &word.through(), value)
    }

    #[inline]
    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        self.layer.read(&self.below, &span.through(), into)
    }

    #[inline]
    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        self.layer.write(&self.below, &span.through(), from)
    }

    #[inline]
    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<LayeredHandle<F, L, S>, Refused<S>> {
        match self.layer.try_put(&self.below, &to.through(), Across::<Self, S>::new(from), options) {
            Ok(handle) => Ok(LayeredHandle::of_buffer(handle)),
            Err(refused) => Err(refused.map(|across| across.0)),
        }
    }

    #[inline]
    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        to: D,
    ) -> Result<LayeredHandle<F, L, D>, Refused<D>> {
        match self.layer.try_get(&self.below, &from.through(), Across::<Self, D>::new(to)) {
            Ok(handle) => Ok(LayeredHandle::of_buffer(handle)),
            Err(refused) => Err(refused.map(|across| across.0)),
        }
    }

    #[inline]
    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<LayeredHandle<F, L, W>, Refused<()>> {
        self.layer.try_atomic(&self.below, &word.through(), amo).map(LayeredHandle::plain)
    }

    #[inline]
    fn try_nop(&self) -> Result<LayeredHandle<F, L, ()>, Refused<()>> {
        self.layer.try_nop(&self.below).map(LayeredHandle::plain)
    }

    #[inline]
    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        self.layer.room(&self.below, target)
    }

    #[inline]
    fn flush(&self, target: Rank) -> impl Future<Output = Result<()>> {
        self.layer.flush(&self.below, target)
    }

    #[inline]
    fn flush_all(&self) -> impl Future<Output = Result<()>> {
        self.layer.flush_all(&self.below)
    }

    #[inline]
    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        let word = word.through();
        self.layer.wait_until(&self.below, &word, deps, until).await
    }

    #[inline]
    fn try_notice(&self) -> Result<Option<Notice>> {
        self.layer.try_notice(&self.below)
    }

    #[inline]
    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<Notice>> {
        self.layer.next_notice(&self.below, deps)
    }

    #[inline]
    fn now(&self) -> Time {
        self.layer.now(&self.below)
    }

    #[inline]
    fn sleep_until(&self, at: Time) -> impl Future<Output = ()> {
        self.layer.sleep_until(&self.below, at)
    }

    #[inline]
    fn compute(&self, duration: Duration) -> impl Future<Output = ()> {
        self.layer.compute(&self.below, duration)
    }

    #[inline]
    fn charge(&self, layer: &'static str) -> impl Future<Output = ()> {
        self.layer.charge(&self.below, layer)
    }

    #[inline]
    fn detach(&self, rest: impl Future<Output = ()> + 'static) {
        self.layer.detach(&self.below, rest);
    }
}
