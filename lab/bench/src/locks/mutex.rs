//! The mutex with which the locks are compared: a word that all processes map, and futexes.

use crate::outside::{bare::Bare, futex::FutexMutex, lines};
use rdma_fabric::{Fabric, FabricError, GroupMemory, Rank, Time, error::Literal};
use rma_lock::{Fairness, Guard, Lock, LockError, Result, RmaLock};
use std::{fmt, sync::Arc};

/// The memory that holds the mutex.
#[derive(Clone, Debug, Default)]
pub(super) struct Memory(pub(super) Option<Arc<Bare>>);

/// A mutex in the form of a readers-writer lock: readers also exclude each other. It blocks its
/// thread, and does not support deadlines.
#[derive(Clone)]
pub(super) struct MutexLock {
    fabric: Fabric,
    home: Rank,
    bare: Arc<Bare>,
}

impl fmt::Debug for MutexLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("MutexLock")
    }
}

impl MutexLock {
    fn mutex(&self) -> FutexMutex<'_> {
        FutexMutex(self.bare.half(lines::MUTEX))
    }
}

/// Holds the mutex until it is dropped.
#[derive(Debug)]
pub(super) struct MutexGuard<'a>(FutexMutex<'a>);

impl Drop for MutexGuard<'_> {
    #[inline]
    fn drop(&mut self) {
        self.0.unlock();
    }
}

impl Guard for MutexGuard<'_> {
    #[inline]
    async fn release(self) -> Result<()> {
        Ok(())
    }
}

fn unsupported(feature: Literal) -> LockError {
    FabricError::Unsupported { feature }.into()
}

impl Lock for MutexLock {
    type Options = Memory;

    const NAME: &'static str = "futex mutex";
    const FAIRNESS: Fairness = Fairness::Barging;
    const HOME_WORDS: usize = 1;

    fn bytes(_: &Memory, _: usize) -> usize {
        0
    }

    fn over(fabric: &Fabric, _: GroupMemory, home: Rank, memory: Memory) -> Result<Self> {
        let bare = memory.0.ok_or_else(|| unsupported(&"a mutex without memory to lie in"))?;
        Ok(MutexLock { fabric: fabric.clone(), home, bare })
    }

    fn home(&self) -> Rank {
        self.home
    }

    fn fabric(&self) -> &Fabric {
        &self.fabric
    }
}

impl RmaLock for MutexLock {
    type Shared<'a> = MutexGuard<'a>;
    type Exclusive<'a> = MutexGuard<'a>;

    #[inline]
    async fn read_before(&self, deadline: Time) -> Result<MutexGuard<'_>> {
        self.write_before(deadline).await
    }

    async fn try_read(&self) -> Result<Option<MutexGuard<'_>>> {
        self.try_write().await
    }

    #[inline]
    async fn write_before(&self, deadline: Time) -> Result<MutexGuard<'_>> {
        if deadline != Time::MAX {
            return Err(unsupported(&"a mutex with a deadline"));
        }
        let mutex = self.mutex();
        mutex.lock();
        Ok(MutexGuard(mutex))
    }

    async fn try_write(&self) -> Result<Option<MutexGuard<'_>>> {
        let mutex = self.mutex();
        Ok(mutex.try_lock().then(|| MutexGuard(mutex)))
    }
}
