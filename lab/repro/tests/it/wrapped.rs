//! A lock of any kind behind a pointer, which may be watched, and may be broken: the code that
//! contends for it is compiled once.

use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use repro::{peers::Competitor, with_peer};
use rma_lock::{Fairness, Guard, Lock, Result, RmaLock, with_lock};
use std::{
    fmt,
    future::Future,
    pin::Pin,
    rc::Rc,
    sync::{Arc, Mutex},
    time::Duration,
};

/// The ranks inside, as seen by all ranks of a simulated job.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Mutex<Inside>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    readers: usize,
    writers: usize,
    /// The number of readers so far.
    pub(crate) read: u64,
    /// The number of writers so far.
    pub(crate) written: u64,
    /// A rank was admitted although it had to be excluded.
    pub(crate) broken: bool,
}

impl Watch {
    pub(crate) fn seen(&self) -> Inside {
        let seen = *self.0.lock().expect("no rank panics");
        assert_eq!((seen.readers, seen.writers), (0, 0), "somebody is inside still");
        seen
    }

    fn enter(&self, writes: bool) {
        let mut inside = self.0.lock().expect("no rank panics");
        if writes {
            inside.broken |= inside.readers + inside.writers > 0;
            inside.writers += 1;
            inside.written += 1;
        } else {
            inside.broken |= inside.writers > 0;
            inside.readers += 1;
            inside.read += 1;
        }
    }

    fn leave(&self, writes: bool) {
        let mut inside = self.0.lock().expect("no rank panics");
        if writes { inside.writers -= 1 } else { inside.readers -= 1 }
    }
}

/// The kind of the lock, and its modifications.
#[derive(Clone, Debug, Default)]
pub(crate) struct Wrapping {
    pub(crate) kind: Option<Competitor>,
    /// Whether exclusive acquisitions only acquire the lock in shared mode.
    pub(crate) broken: bool,
    /// Records the ranks that enter and leave. A rank inside stays for a while, even without work,
    /// so that others also have time to enter.
    pub(crate) watch: Option<Watch>,
}

const STAY: Duration = Duration::from_micros(1);

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T>> + 'a>>;

/// The operations of a lock of any kind.
trait AnyKind: fmt::Debug {
    fn fabric(&self) -> &Fabric;
    fn home(&self) -> Rank;
    fn read(&self, deadline: Time) -> Boxed<'_, Box<dyn Held + '_>>;
    fn write(&self, deadline: Time) -> Boxed<'_, Box<dyn Held + '_>>;
}

impl<L: RmaLock> AnyKind for L {
    fn fabric(&self) -> &Fabric {
        Lock::fabric(self)
    }

    fn home(&self) -> Rank {
        Lock::home(self)
    }

    fn read(&self, deadline: Time) -> Boxed<'_, Box<dyn Held + '_>> {
        Box::pin(async move { Ok(Box::new(self.read_before(deadline).await?) as Box<dyn Held + '_>) })
    }

    fn write(&self, deadline: Time) -> Boxed<'_, Box<dyn Held + '_>> {
        Box::pin(async move { Ok(Box::new(self.write_before(deadline).await?) as Box<dyn Held + '_>) })
    }
}

/// A guard behind a pointer.
trait Held: fmt::Debug {
    fn release<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a;
}

impl<G: Guard> Held for G {
    fn release<'a>(self: Box<Self>) -> Boxed<'a, ()>
    where
        Self: 'a,
    {
        Box::pin(Guard::release(*self))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Wrapped {
    lock: Rc<dyn AnyKind>,
    wrapping: Wrapping,
}

/// The rank is inside from the acquisition of the inner lock until just before its release.
#[derive(Debug)]
pub(crate) struct WrappedGuard<'a> {
    guard: Box<dyn Held + 'a>,
    watch: Option<&'a Watch>,
    writes: bool,
}

impl Guard for WrappedGuard<'_> {
    async fn release(self) -> Result<()> {
        if let Some(watch) = self.watch {
            watch.leave(self.writes);
        }
        self.guard.release().await
    }
}

impl Wrapped {
    async fn enter(&self, writes: bool, deadline: Time) -> Result<WrappedGuard<'_>> {
        let exclusive = writes && !self.wrapping.broken;
        let guard = if exclusive { self.lock.write(deadline) } else { self.lock.read(deadline) }.await?;
        let watch = self.wrapping.watch.as_ref();
        if let Some(watch) = watch {
            watch.enter(writes);
            Lock::fabric(self).sleep(STAY).await;
        }
        Ok(WrappedGuard { guard, watch, writes })
    }
}

impl Lock for Wrapped {
    type Options = Wrapping;

    const NAME: &'static str = "any kind";
    const FAIRNESS: Fairness = Fairness::Barging;
    const HOME_WORDS: usize = 0;

    fn bytes(_: &Wrapping, _: usize) -> usize {
        unreachable!("made by `symmetric_with` only")
    }

    fn over(_: &Fabric, _: GroupMemory, _: Rank, _: Wrapping) -> Result<Self> {
        unreachable!("made by `symmetric_with` only")
    }

    async fn symmetric_with(fabric: &Fabric, home: Rank, wrapping: Wrapping) -> Result<Self> {
        let kind = wrapping.kind.expect("the lock has a kind");
        let lock: Rc<dyn AnyKind> = match kind {
            Competitor::Ours(kind) => {
                with_lock!(kind, L, options => Rc::new(L::symmetric_with(fabric, home, options).await?))
            }
            Competitor::Peer(peer) => {
                with_peer!(peer, L, options => Rc::new(L::symmetric_with(fabric, home, options).await?))
            }
        };
        Ok(Wrapped { lock, wrapping })
    }

    fn home(&self) -> Rank {
        self.lock.home()
    }

    fn fabric(&self) -> &Fabric {
        self.lock.fabric()
    }
}

impl RmaLock for Wrapped {
    type Shared<'a> = WrappedGuard<'a>;
    type Exclusive<'a> = WrappedGuard<'a>;

    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<WrappedGuard<'_>>> {
        self.enter(false, deadline)
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<WrappedGuard<'_>>> {
        self.enter(true, deadline)
    }

    async fn try_read(&self) -> Result<Option<WrappedGuard<'_>>> {
        unreachable!("nobody who contends asks whether it is free")
    }

    async fn try_write(&self) -> Result<Option<WrappedGuard<'_>>> {
        unreachable!("nobody who contends asks whether it is free")
    }
}
