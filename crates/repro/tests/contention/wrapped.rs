//! Locks around locks: one that watches who is inside, one that is broken.

use rdma_fabric::{Fabric, GroupMemory, Rank, Time};
use rma_lock::{Fairness, Guard, Lock, Result, RmaLock};
use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

/// Who is inside, as all ranks of a simulated job see it.
#[derive(Clone, Debug, Default)]
pub(crate) struct Watch(Arc<Mutex<Inside>>);

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Inside {
    readers: usize,
    writers: usize,
    /// Readers that have been.
    pub(crate) read: u64,
    /// Writers that have been.
    pub(crate) written: u64,
    /// Somebody came in who should not have.
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

/// A lock that tells a [`Watch`]. Who gets it stays a while, even with nothing to do, so that others have the time to come in too.
#[derive(Clone, Debug)]
pub(crate) struct Watched<L> {
    lock: L,
    watch: Watch,
}

const STAY: Duration = Duration::from_micros(1);

/// Inside from when the inner lock is held until it is about to be released.
#[derive(Debug)]
pub(crate) struct WatchedGuard<G> {
    guard: G,
    watch: Watch,
    writes: bool,
}

impl<G> WatchedGuard<G> {
    fn new(guard: G, watch: &Watch, writes: bool) -> Self {
        watch.enter(writes);
        WatchedGuard { guard, watch: watch.clone(), writes }
    }
}

impl<G: Guard> Guard for WatchedGuard<G> {
    async fn release(self) -> Result<()> {
        self.watch.leave(self.writes);
        self.guard.release().await
    }
}

impl<L: RmaLock> Lock for Watched<L> {
    type Options = Watch;

    const NAME: &'static str = L::NAME;
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(_: &Watch, members: usize) -> usize {
        L::bytes(&L::Options::default(), members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, watch: Watch) -> Result<Self> {
        Ok(Watched { lock: L::over(fabric, memory, home, L::Options::default())?, watch })
    }

    fn home(&self) -> Rank {
        self.lock.home()
    }

    fn fabric(&self) -> &Fabric {
        self.lock.fabric()
    }
}

impl<L: RmaLock> RmaLock for Watched<L> {
    type Shared<'a> = WatchedGuard<L::Shared<'a>>;
    type Exclusive<'a> = WatchedGuard<L::Exclusive<'a>>;

    async fn read_before(&self, deadline: Time) -> Result<Self::Shared<'_>> {
        let guard = WatchedGuard::new(self.lock.read_before(deadline).await?, &self.watch, false);
        self.fabric().sleep(STAY).await;
        Ok(guard)
    }

    async fn try_read(&self) -> Result<Option<Self::Shared<'_>>> {
        Ok(self.lock.try_read().await?.map(|guard| WatchedGuard::new(guard, &self.watch, false)))
    }

    async fn write_before(&self, deadline: Time) -> Result<Self::Exclusive<'_>> {
        let guard = WatchedGuard::new(self.lock.write_before(deadline).await?, &self.watch, true);
        self.fabric().sleep(STAY).await;
        Ok(guard)
    }

    async fn try_write(&self) -> Result<Option<Self::Exclusive<'_>>> {
        Ok(self.lock.try_write().await?.map(|guard| WatchedGuard::new(guard, &self.watch, true)))
    }
}

/// A lock done wrong: who wants it exclusively gets it shared.
#[derive(Clone, Debug)]
pub(crate) struct Broken<L>(L);

impl<L: RmaLock> Lock for Broken<L> {
    type Options = L::Options;

    const NAME: &'static str = "broken";
    const FAIRNESS: Fairness = L::FAIRNESS;
    const HOME_WORDS: usize = L::HOME_WORDS;

    fn bytes(options: &L::Options, members: usize) -> usize {
        L::bytes(options, members)
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, options: L::Options) -> Result<Self> {
        Ok(Broken(L::over(fabric, memory, home, options)?))
    }

    fn home(&self) -> Rank {
        self.0.home()
    }

    fn fabric(&self) -> &Fabric {
        self.0.fabric()
    }
}

impl<L: RmaLock> RmaLock for Broken<L> {
    type Shared<'a> = L::Shared<'a>;
    type Exclusive<'a> = L::Shared<'a>;

    fn read_before(&self, deadline: Time) -> impl Future<Output = Result<L::Shared<'_>>> {
        self.0.read_before(deadline)
    }

    fn try_read(&self) -> impl Future<Output = Result<Option<L::Shared<'_>>>> {
        self.0.try_read()
    }

    fn write_before(&self, deadline: Time) -> impl Future<Output = Result<L::Shared<'_>>> {
        self.0.read_before(deadline)
    }

    fn try_write(&self) -> impl Future<Output = Result<Option<L::Shared<'_>>>> {
        self.0.try_read()
    }
}
