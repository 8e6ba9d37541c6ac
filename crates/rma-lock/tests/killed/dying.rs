//! A fabric on which a rank kills itself at a chosen call.

use rdma_fabric::{
    Amo, AtomicWord, Deps, Fabric, GetSink, LocalSpan, LocalWord, Pod, PutOptions, PutSource, Rank, Refused,
    RemoteSpan, RemoteWord, Result,
    layer::{Layer, Layered},
};
use rustix::process::{Signal, getpid, kill_process};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU64, Ordering::SeqCst},
    },
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
pub(crate) type Dying<F> = Layered<F, Mortal>;

/// The rank that passes them.
#[derive(Clone, Debug)]
pub(crate) struct Mortal(Arc<Points>);

impl From<Arc<Points>> for Mortal {
    fn from(points: Arc<Points>) -> Self {
        Mortal(points)
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

impl<F: Fabric> Layer<F> for Mortal {
    type Handle<T: Unpin + 'static> = F::Handle<T>;

    fn handle<T: Unpin + 'static>(&self, _: &F, handle: F::Handle<T>) -> F::Handle<T> {
        handle
    }

    fn load<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>) -> Result<W> {
        self.0.around("load", || below.load(word))
    }

    fn store<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        self.0.around("store", || below.store(word, value))
    }

    fn store_unwaited<W: AtomicWord>(&self, below: &F, word: &LocalWord<F, W>, value: W) -> Result<()> {
        self.0.around("store", || below.store_unwaited(word, value))
    }

    fn read<T: Pod>(&self, below: &F, span: &LocalSpan<F, T>, into: &mut [T]) -> Result<()> {
        self.0.around("read", || below.read(span, into))
    }

    fn write<T: Pod>(&self, below: &F, span: &LocalSpan<F, T>, from: &[T]) -> Result<()> {
        self.0.around("write", || below.write(span, from))
    }

    fn try_put<T: Pod, S: PutSource<F, T>>(
        &self,
        below: &F,
        to: &RemoteSpan<F, T>,
        from: S,
        options: PutOptions,
    ) -> Result<F::Handle<S>, Refused<S>> {
        self.0.around("put", || below.try_put(to, from, options))
    }

    fn try_get<T: Pod, D: GetSink<F, T>>(
        &self,
        below: &F,
        from: &RemoteSpan<F, T>,
        to: D,
    ) -> Result<F::Handle<D>, Refused<D>> {
        self.0.around("get", || below.try_get(from, to))
    }

    fn try_atomic<W: AtomicWord>(
        &self,
        below: &F,
        word: &RemoteWord<F, W>,
        amo: Amo<W>,
    ) -> Result<F::Handle<W>, Refused<()>> {
        self.0.around(name_of(&amo), || below.try_atomic(word, amo))
    }

    async fn flush(&self, below: &F, target: Rank) -> Result<()> {
        self.0.pass("before flush");
        let flushed = below.flush(target).await;
        self.0.pass("after flush");
        flushed
    }

    async fn flush_all(&self, below: &F) -> Result<()> {
        self.0.pass("before flush_all");
        let flushed = below.flush_all().await;
        self.0.pass("after flush_all");
        flushed
    }

    async fn wait_until<W: AtomicWord>(
        &self,
        below: &F,
        word: &LocalWord<F, W>,
        deps: Deps<'_>,
        until: impl FnMut(W) -> bool,
    ) -> Result<W> {
        self.0.pass("before wait_until");
        let dies = self.0.is_fatal("within wait_until");
        if dies {
            die_after(INTO_A_WAIT);
        }
        let waited = below.wait_until(word, deps, until).await;
        if dies {
            die();
        }
        self.0.pass("after wait_until");
        waited
    }
}
