//! A lock that is chosen at run time.

mod choice;

pub use choice::{Choice, Hint, LockKind};

use crate::{
    Aggregated, AggregatedGuard, AggregatedOptions, BackOff, BackOffGuard, BackOffLock, Exclusive, Fairness, Guard,
    IndicatorGuard, IndicatorLock, Lock, ReadGuard, Result, RmaLock, RpLock, Shared, WriteGuard,
};
use core::fmt;
use rdma_fabric::{Fabric, GroupMemory, Rank, Time};

/// One of the locks of this crate, chosen when it is made: [`LockKind::auto`]. It shows which and why.
///
/// ```
/// use rdma_fabric::{Fabric, ProgramResult, Rank};
/// use rma_lock::{AnyLock, Guard, Hint, Lock, LockKind, RmaLock};
///
/// async fn enter(fabric: &Fabric) -> ProgramResult<()> {
///     let choice = LockKind::auto(fabric.ranks(), fabric.nodes(), Hint::Mixed);
///     let lock = AnyLock::symmetric_with(fabric, Rank::new(0), choice).await?;
///     println!("{lock}");
///     let guard = lock.read().await?;
///     Ok(guard.release().await?)
/// }
/// ```
pub struct AnyLock {
    choice: Choice,
    lock: Chosen,
}

#[derive(Clone)]
enum Chosen {
    ReaderPreference(RpLock),
    BackOff(BackOffLock),
    Nodes(Aggregated<RpLock>),
    Indicator(IndicatorLock<RpLock>),
}

impl Clone for AnyLock {
    fn clone(&self) -> Self {
        AnyLock { choice: self.choice, lock: self.lock.clone() }
    }
}

impl fmt::Debug for AnyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.lock {
            Chosen::ReaderPreference(lock) => lock.fmt(f),
            Chosen::BackOff(lock) => lock.fmt(f),
            Chosen::Nodes(lock) => lock.fmt(f),
            Chosen::Indicator(lock) => lock.fmt(f),
        }
    }
}

/// What was chosen, and why.
impl fmt::Display for AnyLock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.choice.fmt(f)
    }
}

impl AnyLock {
    /// What was chosen.
    pub fn choice(&self) -> Choice {
        self.choice
    }

    /// Who gets in when several want to.
    pub fn fairness(&self) -> Fairness {
        self.choice.kind.fairness()
    }
}

/// Shared access by an [`AnyLock`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct AnyReadGuard<'a>(Reading<'a>);

enum Reading<'a> {
    ReaderPreference(ReadGuard<'a>),
    BackOff(BackOffGuard<'a, Shared>),
    Nodes(AggregatedGuard<'a, RpLock>),
    Indicator(IndicatorGuard<'a, RpLock>),
}

/// Exclusive access by an [`AnyLock`].
#[must_use = "a guard that is dropped at once protects nothing"]
pub struct AnyWriteGuard<'a>(Writing<'a>);

enum Writing<'a> {
    /// That of the lock above nodes, too.
    ReaderPreference(WriteGuard<'a>),
    BackOff(BackOffGuard<'a, Exclusive>),
    Indicator(IndicatorGuard<'a, RpLock>),
}

impl fmt::Debug for AnyReadGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Reading::ReaderPreference(guard) => guard.fmt(f),
            Reading::BackOff(guard) => guard.fmt(f),
            Reading::Nodes(guard) => guard.fmt(f),
            Reading::Indicator(guard) => guard.fmt(f),
        }
    }
}

impl fmt::Debug for AnyWriteGuard<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Writing::ReaderPreference(guard) => guard.fmt(f),
            Writing::BackOff(guard) => guard.fmt(f),
            Writing::Indicator(guard) => guard.fmt(f),
        }
    }
}

impl Guard for AnyReadGuard<'_> {
    async fn release(self) -> Result<()> {
        match self.0 {
            Reading::ReaderPreference(guard) => guard.release().await,
            Reading::BackOff(guard) => guard.release().await,
            Reading::Nodes(guard) => guard.release().await,
            Reading::Indicator(guard) => guard.release().await,
        }
    }
}

impl Guard for AnyWriteGuard<'_> {
    async fn release(self) -> Result<()> {
        match self.0 {
            Writing::ReaderPreference(guard) => guard.release().await,
            Writing::BackOff(guard) => guard.release().await,
            Writing::Indicator(guard) => guard.release().await,
        }
    }
}

impl Lock for AnyLock {
    type Options = Choice;

    const NAME: &'static str = "chosen at run time";
    /// What all of them promise; [`AnyLock::fairness`] says more.
    const FAIRNESS: Fairness = Fairness::Barging;
    /// Of the one with most.
    const HOME_WORDS: usize = 4;

    fn bytes(choice: &Choice, members: usize) -> usize {
        match choice.kind {
            LockKind::ReaderPreference => RpLock::bytes(&(), members),
            LockKind::BackOff => BackOffLock::bytes(&BackOff::default(), members),
            LockKind::Nodes(levels) => Aggregated::<RpLock>::bytes(&AggregatedOptions { levels, lock: () }, members),
            LockKind::Indicator => IndicatorLock::<RpLock>::bytes(&(), members),
        }
    }

    fn over(fabric: &Fabric, memory: GroupMemory, home: Rank, choice: Choice) -> Result<Self> {
        let lock = match choice.kind {
            LockKind::ReaderPreference => Chosen::ReaderPreference(<RpLock as Lock>::over(fabric, memory, home, ())?),
            LockKind::BackOff => Chosen::BackOff(Lock::over(fabric, memory, home, BackOff::default())?),
            LockKind::Nodes(levels) => {
                Chosen::Nodes(Lock::over(fabric, memory, home, AggregatedOptions { levels, lock: () })?)
            }
            LockKind::Indicator => Chosen::Indicator(Lock::over(fabric, memory, home, ())?),
        };
        Ok(AnyLock { choice, lock })
    }

    fn home(&self) -> Rank {
        match &self.lock {
            Chosen::ReaderPreference(lock) => lock.home(),
            Chosen::BackOff(lock) => lock.home(),
            Chosen::Nodes(lock) => lock.home(),
            Chosen::Indicator(lock) => lock.home(),
        }
    }

    fn fabric(&self) -> &Fabric {
        match &self.lock {
            Chosen::ReaderPreference(lock) => lock.fabric(),
            Chosen::BackOff(lock) => lock.fabric(),
            Chosen::Nodes(lock) => lock.fabric(),
            Chosen::Indicator(lock) => lock.fabric(),
        }
    }
}

impl RmaLock for AnyLock {
    type Shared<'a> = AnyReadGuard<'a>;
    type Exclusive<'a> = AnyWriteGuard<'a>;

    async fn read_before(&self, deadline: Time) -> Result<AnyReadGuard<'_>> {
        Ok(AnyReadGuard(match &self.lock {
            Chosen::ReaderPreference(lock) => Reading::ReaderPreference(lock.read_before(deadline).await?),
            Chosen::BackOff(lock) => Reading::BackOff(lock.read_before(deadline).await?),
            Chosen::Nodes(lock) => Reading::Nodes(lock.read_before(deadline).await?),
            Chosen::Indicator(lock) => Reading::Indicator(lock.read_before(deadline).await?),
        }))
    }

    async fn try_read(&self) -> Result<Option<AnyReadGuard<'_>>> {
        let reading = match &self.lock {
            Chosen::ReaderPreference(lock) => lock.try_read().await?.map(Reading::ReaderPreference),
            Chosen::BackOff(lock) => lock.try_read().await?.map(Reading::BackOff),
            Chosen::Nodes(lock) => lock.try_read().await?.map(Reading::Nodes),
            Chosen::Indicator(lock) => lock.try_read().await?.map(Reading::Indicator),
        };
        Ok(reading.map(AnyReadGuard))
    }

    async fn write_before(&self, deadline: Time) -> Result<AnyWriteGuard<'_>> {
        Ok(AnyWriteGuard(match &self.lock {
            Chosen::ReaderPreference(lock) => Writing::ReaderPreference(lock.write_before(deadline).await?),
            Chosen::BackOff(lock) => Writing::BackOff(lock.write_before(deadline).await?),
            Chosen::Nodes(lock) => Writing::ReaderPreference(lock.write_before(deadline).await?),
            Chosen::Indicator(lock) => Writing::Indicator(lock.write_before(deadline).await?),
        }))
    }

    async fn try_write(&self) -> Result<Option<AnyWriteGuard<'_>>> {
        let writing = match &self.lock {
            Chosen::ReaderPreference(lock) => lock.try_write().await?.map(Writing::ReaderPreference),
            Chosen::BackOff(lock) => lock.try_write().await?.map(Writing::BackOff),
            Chosen::Nodes(lock) => lock.try_write().await?.map(Writing::ReaderPreference),
            Chosen::Indicator(lock) => lock.try_write().await?.map(Writing::Indicator),
        };
        Ok(writing.map(AnyWriteGuard))
    }
}
