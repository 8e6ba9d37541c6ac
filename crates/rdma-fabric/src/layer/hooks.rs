//! What a layer may do differently.

use super::Layered;
use crate::{
    Amo, AtomicWord, Caps, ControlQueue, Deps, Fabric, FabricError, GetSink, LocalSpan, LocalWord, Node, Notice,
    OpHandle, OwnedMemory, PutOptions, PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result,
    SessionFabric, Time, Uses,
    barrier::{BarrierFabric, BarrierLimits, GateId, Progress, Values},
    control_queue::{Completion, MrqNotice, Posting, QueueLimits, QueueSpec},
};
use bytemuck::Pod;
use core::{fmt, future::Future, time::Duration};

/// What stands between programs and the fabric `F`; see the [module](crate::layer).
///
/// A method stands for the one of the same name, and unless said otherwise hands the call to `below`. Clones share their state: they belong to
/// handles of the same rank.
#[allow(clippy::missing_errors_doc)]
pub trait Layer<F: Fabric>: Clone + fmt::Debug + 'static {
    /// The handle of an operation that was posted through the layer: where that changes nothing of handles, `F::Handle<T>`.
    type Handle<T: Unpin + 'static>: OpHandle<T>;

    /// What becomes of the handle of an operation whose method below is not written anew: where it changes nothing of handles, the same.
    fn handle<T: Unpin + 'static>(&self, below: &F, handle: F::Handle<T>) -> Self::Handle<T>;

    /// `below` under this layer.
    fn over(self, below: F) -> Layered<F, Self> {
        Layered::new(below, self)
    }

    // ----- identity -----

    /// [`Fabric::node`].
    #[inline]
    fn node(&self, below: &F, rank: Rank) -> Result<Node> {
        below.node(rank)
    }

    /// [`Fabric::nodes`].
    #[inline]
    fn nodes(&self, below: &F) -> usize {
        below.nodes()
    }

    /// [`Fabric::rank_on`].
    #[inline]
    fn rank_on(&self, below: &F, node: Node, number: usize) -> Option<Rank> {
        below.rank_on(node, number)
    }

    /// [`Fabric::caps`]; without references in any case.
    #[inline]
    fn caps(&self, below: &F) -> Caps {
        below.caps()
    }

    // ----- memory -----

    /// [`Fabric::alloc`].
    #[inline]
    fn alloc(&self, below: &F, bytes: usize) -> Result<F::Region> {
        below.alloc(bytes)
    }

    /// [`Fabric::alloc_symmetric`].
    #[inline]
    fn alloc_symmetric(&self, below: &F, bytes: usize) -> impl Future<Output = Result<F::Region>> {
        below.alloc_symmetric(bytes)
    }

    /// [`Fabric::adopt`].
    #[inline]
    fn adopt(&self, below: &F, memory: OwnedMemory, uses: Uses) -> Result<F::Region, (FabricError, OwnedMemory)> {
        below.adopt(memory, uses)
    }

    /// [`Fabric::release`].
    #[inline]
    fn release(&self, below: &F, region: F::Region) -> impl Future<Output = Result<OwnedMemory>> {
        below.release(region)
    }

    /// [`Fabric::locate`].
    #[inline]
    fn locate(&self, below: &F, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<F::Loc> {
        below.locate(addr, len, align, width)
    }

    /// [`Fabric::load`].
    #[inline]
    fn load<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>) -> Result<W> {
        below.load(word)
    }

    /// [`Fabric::store`].
    #[inline]
    fn store<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        below.store(word, value)
    }

    /// [`Fabric::store_unwaited`]; unless said otherwise, a [store](Layer::store).
    #[inline]
    fn store_unwaited<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        self.store(below, word, value)
    }

    /// [`Fabric::read`].
    #[inline]
    fn read<T: Pod>(&self, below: &F, span: &LocalSpan<F, T>, into: &mut [T]) -> Result<()> {
        below.read(span, into)
    }

    /// [`Fabric::write`].
    #[inline]
    fn write<T: Pod>(&self, below: &F, span: &LocalSpan<F, T>, from: &[T]) -> Result<()> {
        below.write(span, from)
    }

    // ----- operations -----

    /// [`Fabric::try_put`].
    #[inline]
    fn try_put<T: Pod, S: PutSource<F, T>>(
        &self,
        below: &F,
        to: &RemoteSpan<F, T>,
        from: S,
        options: PutOptions,
    ) -> Result<Self::Handle<S>, Refused<S>> {
        below.try_put(to, from, options).map(|handle| self.handle(below, handle))
    }

    /// [`Fabric::try_get`].
    #[inline]
    fn try_get<T: Pod, D: GetSink<F, T>>(
        &self,
        below: &F,
        from: &RemoteSpan<F, T>,
        to: D,
    ) -> Result<Self::Handle<D>, Refused<D>> {
        below.try_get(from, to).map(|handle| self.handle(below, handle))
    }

    /// [`Fabric::try_atomic`].
    #[inline]
    fn try_atomic<W: AtomicWord>(
        &self,
        below: &F,
        word: &RemoteWord<F, W>,
        amo: Amo<W>,
    ) -> Result<Self::Handle<W>, Refused<()>> {
        below.try_atomic(word, amo).map(|handle| self.handle(below, handle))
    }

    /// [`Fabric::try_nop`].
    #[inline]
    fn try_nop(&self, below: &F) -> Result<Self::Handle<()>, Refused<()>> {
        below.try_nop().map(|handle| self.handle(below, handle))
    }

    /// [`Fabric::room`].
    #[inline]
    fn room(&self, below: &F, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        below.room(target)
    }

    /// [`Fabric::flush`].
    #[inline]
    fn flush(&self, below: &F, target: Rank) -> impl Future<Output = Result<()>> {
        below.flush(target)
    }

    /// [`Fabric::flush_all`].
    #[inline]
    fn flush_all(&self, below: &F) -> impl Future<Output = Result<()>> {
        below.flush_all()
    }

    // ----- waiting and time -----

    /// [`Fabric::wait_until`].
    #[inline]
    fn wait_until<W: AtomicWord>(
        &self,
        below: &F,
        word: &LocalWord<F, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> impl Future<Output = Result<W>> {
        below.wait_until(word, deps, until)
    }

    /// [`Fabric::try_notice`].
    #[inline]
    fn try_notice(&self, below: &F) -> Result<Option<Notice>> {
        below.try_notice()
    }

    /// [`Fabric::next_notice`].
    #[inline]
    fn next_notice(&self, below: &F, deps: Deps<'_>) -> impl Future<Output = Result<Notice>> {
        below.next_notice(deps)
    }

    /// [`Fabric::now`].
    #[inline]
    fn now(&self, below: &F) -> Time {
        below.now()
    }

    /// [`Fabric::sleep_until`].
    #[inline]
    fn sleep_until(&self, below: &F, at: Time) -> impl Future<Output = ()> {
        below.sleep_until(at)
    }

    /// [`Fabric::compute`].
    #[inline]
    fn compute(&self, below: &F, duration: Duration) -> impl Future<Output = ()> {
        below.compute(duration)
    }

    /// [`Fabric::charge`].
    #[inline]
    fn charge(&self, below: &F, layer: &'static str) -> impl Future<Output = ()> {
        below.charge(layer)
    }

    /// [`Fabric::detach`].
    #[inline]
    fn detach(&self, below: &F, rest: impl Future<Output = ()> + 'static) {
        below.detach(rest);
    }

    // ----- control queues -----

    /// [`SessionFabric::queue_limits`].
    #[inline]
    fn queue_limits(&self, below: &F) -> QueueLimits
    where
        F: SessionFabric,
    {
        below.queue_limits()
    }

    /// [`SessionFabric::open_queue`].
    #[inline]
    fn open_queue(&self, below: &F, spec: QueueSpec) -> Result<F::Queue>
    where
        F: SessionFabric,
    {
        below.open_queue(spec)
    }

    /// [`ControlQueue::try_post`].
    #[inline]
    fn try_command(&self, below: &F, queue: &F::Queue, posting: Posting) -> Result<(), Refused<()>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.try_post(posting)
    }

    /// [`ControlQueue::post`].
    #[inline]
    fn command(&self, below: &F, queue: &F::Queue, posting: Posting, deps: Deps<'_>) -> impl Future<Output = Result<()>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.post(posting, deps)
    }

    /// [`ControlQueue::post_all`]; unless said otherwise, one [command](Layer::command) after the other.
    #[inline]
    fn commands(
        &self,
        below: &F,
        queue: &F::Queue,
        postings: &[Posting],
        deps: Deps<'_>,
    ) -> impl Future<Output = Result<()>>
    where
        F: SessionFabric,
    {
        async move {
            for posting in postings {
                self.command(below, queue, *posting, deps).await?;
            }
            Ok(())
        }
    }

    /// [`ControlQueue::poll_tcq`].
    #[inline]
    fn poll_tcq(&self, below: &F, queue: &F::Queue) -> Result<Option<Completion>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.poll_tcq()
    }

    /// [`ControlQueue::next_completion`].
    #[inline]
    fn next_completion(&self, below: &F, queue: &F::Queue, deps: Deps<'_>) -> impl Future<Output = Result<Completion>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.next_completion(deps)
    }

    /// [`ControlQueue::poll_mrq`].
    #[inline]
    fn poll_mrq(&self, below: &F, queue: &F::Queue) -> Result<Option<MrqNotice>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.poll_mrq()
    }

    /// [`ControlQueue::next_notice`].
    #[inline]
    fn next_mrq_notice(&self, below: &F, queue: &F::Queue, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>>
    where
        F: SessionFabric,
    {
        let _ = below;
        queue.next_notice(deps)
    }

    // ----- the barrier unit -----

    /// [`BarrierFabric::barrier_limits`].
    #[inline]
    fn barrier_limits(&self, below: &F) -> BarrierLimits
    where
        F: BarrierFabric,
    {
        below.barrier_limits()
    }

    /// [`BarrierFabric::take_gates`].
    #[inline]
    fn take_gates(&self, below: &F, relays: usize) -> Result<Vec<GateId>>
    where
        F: BarrierFabric,
    {
        below.take_gates(relays)
    }

    /// [`BarrierFabric::start_gate`].
    #[inline]
    fn start_gate(&self, below: &F, gate: GateId, values: Values) -> Result<()>
    where
        F: BarrierFabric,
    {
        below.start_gate(gate, values)
    }

    /// [`BarrierFabric::poll_gate`].
    #[inline]
    fn poll_gate(&self, below: &F, gate: GateId, deps: Deps<'_>) -> Result<Progress>
    where
        F: BarrierFabric,
    {
        below.poll_gate(gate, deps)
    }

    /// [`BarrierFabric::await_gate`].
    #[inline]
    fn await_gate(&self, below: &F, gate: GateId, deps: Deps<'_>) -> impl Future<Output = Result<Option<Values>>>
    where
        F: BarrierFabric,
    {
        below.await_gate(gate, deps)
    }
}
