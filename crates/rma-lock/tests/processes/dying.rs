//! A fabric on which a rank kills itself at a chosen call.

use checks::killed::{die, die_after};
use rdma_fabric::{
    Amo, Fabric, Result, forward,
    provider::{Ended, Place, Posted, Provider, Sink, Source, WaitFor, WaitState},
};
use std::{
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicU8, AtomicU64, Ordering::SeqCst},
    },
    task::{Context, Poll},
    time::Duration,
};

/// The duration of a wait before its rank dies in it.
const INTO_A_WAIT: Duration = Duration::from_millis(2);

/// The points that a rank passes: before and after each call of the fabric, and within waits. They
/// are counted while the rank is watched.
#[derive(Debug, Default)]
pub(crate) struct Points {
    watched: AtomicBool,
    passed: AtomicU64,
    /// The point at which the rank dies.
    fatal: Option<u64>,
    /// The lock's call that the rank is in, and the points passed.
    labels: Mutex<(&'static str, Vec<String>)>,
}

impl Points {
    pub(crate) fn new(fatal: Option<u64>) -> Self {
        Points { fatal, ..Points::default() }
    }

    /// Watches the rank from now on, during its call with that name.
    pub(crate) fn within(&self, call: &'static str) {
        self.labels.lock().expect("no panics").0 = call;
        self.watched.store(true, SeqCst);
    }

    /// Stops watching the rank.
    pub(crate) fn over(&self) {
        self.watched.store(false, SeqCst);
    }

    /// Returns the points passed so far: the call of the lock, then that of the fabric.
    pub(crate) fn labels(&self) -> Vec<String> {
        self.labels.lock().expect("no panics").1.clone()
    }

    /// Passes a point; returns whether it is the fatal one.
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

/// Returns this rank's fabric, wrapped so that it passes [`Points`].
pub(crate) fn dying(fabric: &Fabric, points: Arc<Points>) -> Fabric {
    fabric.layered(Mortal { below: fabric.clone(), points, wait: AtomicU8::new(NONE) })
}

/// The wrapper that passes these points.
#[derive(Debug)]
struct Mortal {
    below: Fabric,
    points: Arc<Points>,
    /// Whether the rank waits for a word; simultaneous waits count as one.
    wait: AtomicU8,
}

/// No wait, one that the rank survives, and one in which it dies.
const NONE: u8 = 0;
const WAITS: u8 = 1;
const DIES: u8 = 2;

fn name_of(amo: &Amo<u64>) -> &'static str {
    match amo {
        Amo::Add(_) => "fetch_add",
        Amo::Swap(_) => "swap",
        Amo::CompareSwap { .. } => "compare_swap",
        Amo::Or(_) => "fetch_or",
        Amo::And(_) => "fetch_and",
        Amo::Xor(_) => "fetch_xor",
    }
}

impl Mortal {
    /// Handles the first check of a wait.
    fn begins_to_wait(&self) {
        if self.wait.load(SeqCst) == NONE {
            self.points.pass("before wait_until");
            let dies = self.points.is_fatal("within wait_until");
            self.wait.store(if dies { DIES } else { WAITS }, SeqCst);
            if dies {
                die_after(INTO_A_WAIT);
            }
        }
    }
}

impl Provider for Mortal {
    forward!(alloc, alloc_symmetric, adopt, release, resolve_hidden, wake, nop, poll, test, forget, try_notice);
    forward!(copy, now, detach, optional);

    fn read(&self, from: &Place, into: &mut [u8], waiting: bool) -> Result<()> {
        if waiting {
            self.begins_to_wait();
            return self.below.provider().read(from, into, waiting);
        }
        let call = if into.len() > 8 { "read" } else { "load" };
        self.points.around(call, || self.below.provider().read(from, into, waiting))
    }

    fn write(&self, to: &Place, from: &[u8], waited: bool) -> Result<()> {
        let call = if from.len() > 8 { "write" } else { "store" };
        self.points.around(call, || self.below.provider().write(to, from, waited))
    }

    fn put(&self, to: &Place, from: Source<'_>, notice: Option<u64>) -> Posted {
        self.points.around("put", || self.below.provider().put(to, from, notice))
    }

    fn get(&self, from: &Place, to: Sink<'_>) -> Posted {
        self.points.around("get", || self.below.provider().get(from, to))
    }

    fn atomic(&self, word: &Place, amo: Amo<u64>) -> Posted {
        self.points.around(name_of(&amo), || self.below.provider().atomic(word, amo))
    }

    fn poll_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        let flush = match wait_for {
            WaitFor::Flush(Some(_)) => "flush",
            WaitFor::Flush(None) => "flush_all",
            _ => return self.below.provider().poll_wait(wait_state, wait_for, cx),
        };
        if wait_state.is_empty() {
            self.points.pass(&format!("before {flush}"));
        }
        let flushed = self.below.provider().poll_wait(wait_state, wait_for, cx);
        if flushed.is_ready() {
            self.points.pass(&format!("after {flush}"));
        }
        flushed
    }

    fn end_wait(&self, wait_state: &mut WaitState, wait_for: WaitFor<'_>, ended: Ended) {
        self.below.provider().end_wait(wait_state, wait_for, ended);
        if let WaitFor::Word(..) = wait_for {
            let dies = self.wait.swap(NONE, SeqCst) == DIES;
            match ended {
                Ended::Reached if dies => die(),
                Ended::Reached => self.points.pass("after wait_until"),
                // No value was seen, and a rank that is to die in this wait soon does so.
                Ended::GivenUp => {}
            }
        }
    }
}
