//! A fabric on which a rank kills itself at a chosen call.

use rdma_fabric::{
    Amo, AtomicWord, Caps, Deps, Fabric, GetSink, LocalSpan, LocalWord, Node, Notice, OpHandle, Pod, PutOptions,
    PutSource, Rank, Refused, RemoteAddr, RemoteSpan, RemoteWord, Result, Time, Triggers,
    op::{SinkView, SourceView},
};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    future::Future,
    marker::PhantomData,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
    thread,
    time::Duration,
};

/// End this process as `kill -9` does.
pub(crate) fn die() -> ! {
    let _ = kill_process(getpid(), Signal::KILL);
    loop {
        thread::park();
    }
}

/// The same after a while, whatever it does then.
pub(crate) fn die_after(delay: Duration) {
    thread::spawn(move || {
        thread::sleep(delay);
        die();
    });
}

/// How long a wait lasts before its rank dies in it.
const INTO_A_WAIT: Duration = Duration::from_millis(2);

/// The points that a rank passes: before and after each call of the fabric, and within waits. Counted while it is watched.
#[derive(Debug, Default)]
pub(crate) struct Points {
    watched: AtomicBool,
    passed: AtomicU64,
    /// Which one it does not survive.
    fatal: Option<u64>,
    /// What the rank is about, and where it has been.
    labels: Mutex<(&'static str, Vec<String>)>,
}

impl Points {
    pub(crate) fn new(fatal: Option<u64>) -> Self {
        Points { fatal, ..Points::default() }
    }

    /// From now on the rank is watched, in its call of that name.
    pub(crate) fn within(&self, call: &'static str) {
        self.labels.lock().expect("no panics").0 = call;
        self.watched.store(true, SeqCst);
    }

    /// From now on it is not watched.
    pub(crate) fn over(&self) {
        self.watched.store(false, SeqCst);
    }

    /// The points passed so far: the call of the lock, then that of the fabric.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.labels.lock().expect("no panics").1.clone()
    }

    /// Whether it is the fatal one.
    fn is_fatal(&self, what: &str) -> bool {
        if !self.watched.load(SeqCst) {
            return false;
        }
        let mut labels = self.labels.lock().expect("no panics");
        let label = format!("{}: {what}", labels.0);
        labels.1.push(label);
        Some(self.passed.fetch_add(1, SeqCst)) == self.fatal
    }

    fn pass(&self, what: &str) {
        if self.is_fatal(what) {
            die();
        }
    }

    fn around<T>(&self, call: &str, then: impl FnOnce() -> T) -> T {
        self.pass(&format!("before {call}"));
        let out = then();
        self.pass(&format!("after {call}"));
        out
    }
}

/// `F`, where this rank has its [`Points`].
#[derive(Clone, Debug)]
pub(crate) struct Dying<F: Fabric> {
    inner: F,
    points: Arc<Points>,
    triggers: Arc<Triggers<Self>>,
}

impl<F: Fabric> Dying<F> {
    pub(crate) fn new(inner: F, points: Arc<Points>) -> Self {
        Dying { inner, points, triggers: Arc::default() }
    }
}

/// A source or sink of the outer fabric that is one of the inner.
pub(crate) struct Across<F, B>(B, PhantomData<fn() -> F>);

impl<F: Fabric, T: Pod, S: PutSource<Dying<F>, T>> PutSource<F, T> for Across<F, S> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&self) -> SourceView<'_, F::Loc> {
        self.0.view()
    }
}

impl<F: Fabric, T: Pod, D: GetSink<Dying<F>, T>> GetSink<F, T> for Across<F, D> {
    fn elements(&self) -> usize {
        self.0.elements()
    }
    fn view(&mut self) -> SinkView<'_, F::Loc> {
        self.0.view()
    }
}

/// The handle of an operation; waiting for it is a wait.
pub(crate) enum DyingHandle<F: Fabric, T: Unpin + 'static> {
    /// Of an operation that gives a buffer back.
    Buffer(F::Handle<Across<F, T>>),
    /// Of any other.
    Plain(F::Handle<T>),
}

// Inner handles are `Unpin`, and nothing else is in it.
impl<F: Fabric, T: Unpin + 'static> Unpin for DyingHandle<F, T> {}

impl<F: Fabric, T: Unpin + 'static> Future for DyingHandle<F, T> {
    type Output = Result<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Result<T>> {
        match &mut *self {
            DyingHandle::Buffer(handle) => Pin::new(handle).poll(cx).map_ok(|across| across.0),
            DyingHandle::Plain(handle) => Pin::new(handle).poll(cx),
        }
    }
}

impl<F: Fabric, T: Unpin + 'static> OpHandle<T> for DyingHandle<F, T> {
    fn test(&mut self) -> bool {
        match self {
            DyingHandle::Buffer(handle) => handle.test(),
            DyingHandle::Plain(handle) => handle.test(),
        }
    }

    fn wait(self) -> Result<T> {
        match self {
            DyingHandle::Buffer(handle) => handle.wait().map(|across| across.0),
            DyingHandle::Plain(handle) => handle.wait(),
        }
    }
}

fn name_of<W>(amo: &Amo<W>) -> &'static str {
    match amo {
        Amo::Add(_) => "fetch_add",
        Amo::Swap(_) => "swap",
        Amo::CompareSwap { .. } => "compare_swap",
        Amo::Or(_) => "fetch_or",
        Amo::And(_) => "fetch_and",
        Amo::Xor(_) => "fetch_xor",
    }
}

impl<F: Fabric> Fabric for Dying<F> {
    type Loc = F::Loc;
    type Region = F::Region;
    type Handle<T: Unpin + 'static> = DyingHandle<F, T>;

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

    fn caps(&self) -> Caps {
        self.inner.caps()
    }

    fn alloc(&self, bytes: usize) -> Result<F::Region> {
        self.inner.alloc(bytes)
    }

    fn alloc_symmetric(&self, bytes: usize) -> impl Future<Output = Result<F::Region>> {
        self.inner.alloc_symmetric(bytes)
    }

    fn locate(&self, addr: RemoteAddr, len: usize, align: usize, width: usize) -> Result<F::Loc> {
        self.inner.locate(addr, len, align, width)
    }

    fn load<W: AtomicWord>(&self, word: &LocalWord<Self, W>) -> Result<W> {
        self.points.around("load", || self.inner.load(&word.through()))
    }

    fn store<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.points.around("store", || self.inner.store(&word.through(), value))
    }

    fn store_unwaited<W: AtomicWord>(&self, word: &LocalWord<Self, W>, value: W) -> Result<()> {
        self.points.around("store", || self.inner.store_unwaited(&word.through(), value))
    }

    fn read<T: Pod>(&self, span: &LocalSpan<Self, T>, into: &mut [T]) -> Result<()> {
        self.points.around("read", || self.inner.read(&span.through(), into))
    }

    fn write<T: Pod>(&self, span: &LocalSpan<Self, T>, from: &[T]) -> Result<()> {
        self.points.around("write", || self.inner.write(&span.through(), from))
    }

    fn try_put<T: Pod, S: PutSource<Self, T>>(
        &self,
        to: &RemoteSpan<Self, T>,
        from: S,
        options: PutOptions,
    ) -> Result<DyingHandle<F, S>, Refused<S>> {
        let across = Across::<F, S>(from, PhantomData);
        let put = || self.inner.try_put(&to.through(), across, options);
        self.points.around("put", put).map(DyingHandle::Buffer).map_err(|refused| refused.map(|across| across.0))
    }

    fn try_get<T: Pod, D: GetSink<Self, T>>(
        &self,
        from: &RemoteSpan<Self, T>,
        to: D,
    ) -> Result<DyingHandle<F, D>, Refused<D>> {
        let across = Across::<F, D>(to, PhantomData);
        let get = || self.inner.try_get(&from.through(), across);
        self.points.around("get", get).map(DyingHandle::Buffer).map_err(|refused| refused.map(|across| across.0))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        word: &RemoteWord<Self, W>,
        amo: Amo<W>,
    ) -> Result<DyingHandle<F, W>, Refused<()>> {
        let atomic = || self.inner.try_atomic(&word.through(), amo);
        self.points.around(name_of(&amo), atomic).map(DyingHandle::Plain)
    }

    fn try_nop(&self) -> Result<DyingHandle<F, ()>, Refused<()>> {
        self.inner.try_nop().map(DyingHandle::Plain)
    }

    fn room(&self, target: Option<Rank>) -> impl Future<Output = Result<()>> {
        self.inner.room(target)
    }

    async fn flush(&self, target: Rank) -> Result<()> {
        self.points.pass("before flush");
        let flushed = self.inner.flush(target).await;
        self.points.pass("after flush");
        flushed
    }

    async fn flush_all(&self) -> Result<()> {
        self.points.pass("before flush_all");
        let flushed = self.inner.flush_all().await;
        self.points.pass("after flush_all");
        flushed
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        word: &LocalWord<Self, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        self.points.pass("before wait_until");
        let dies = self.points.is_fatal("within wait_until");
        if dies {
            die_after(INTO_A_WAIT);
        }
        let word = word.through();
        let waited = self.inner.wait_until(&word, deps, until).await;
        if dies {
            die();
        }
        self.points.pass("after wait_until");
        waited
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
        self.inner.detach(rest);
    }
}
