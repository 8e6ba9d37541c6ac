//! One rank's part in a run, and the time that counts.
//!
//! That time is the same for all ranks: clocks of processes don't agree, and a rank that waits
//! can't look at its own. Each rank has a word for everybody's eyes. Who first finds that the
//! warm-up is over, or the time, sets a bit in all of them; others may do so at the same time,
//! which changes nothing. So all contend from beginning to end, however long one acquisition takes.

use super::{
    super::RankFuture,
    Workload,
    draws::{Draws, WriterShare},
    record::{EXCLUSIVE, RankRecord, SHARED},
    section::{Section, Work},
};
use core::time::Duration;
use rdma_fabric::{Fabric, Group, LocalWord, ProgramResult, Rank, Region, Result, Time};
use rma_lock::{Guard, LockError, RmaLock, locks::LockKind, with_lock};
use serde::{Deserialize, Serialize};

/// How much is done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunLength {
    /// So many acquisitions by each rank, for virtual time. Whoever has not done them all `within`
    /// that time stops, and gives up what it waits for: a lock that lets somebody starve would
    /// never end.
    Operations {
        /// Of each rank.
        each: u32,
        /// At most so long.
        within: Duration,
    },
    /// As many as are completed in a length of time, for wall clock. It begins and ends for all
    /// ranks when the first rank's clock says so, so that all contend all the time, and one that
    /// waits keeps nobody.
    Lasting {
        /// Not counted.
        warm_up: Duration,
        /// Counted.
        length: Duration,
    },
}

/// What all ranks do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Between acquisitions and inside.
    pub workload: Workload,
    /// How many are writers'.
    pub writers: WriterShare,
    /// How much.
    pub length: RunLength,
    /// Time every acquisition. Reading the clock costs nothing in virtual time, on wall clock about
    /// as much as a free lock.
    pub timed: bool,
    /// Keys of each rank in [`Workload::Dht`].
    pub keys: u32,
    /// Of everything that is drawn, the lock's home included.
    pub seed: u64,
}

/// Is one rank of `run`, all of which contend for one lock `L`.
///
/// Collective over the job. It begins and ends with a barrier. The lock's home is drawn, the
/// protected data is there as well.
///
/// # Errors
/// [`super::Unsound`] if the lock did not exclude; what the lock or the fabric met.
pub async fn contend<L: RmaLock>(fabric: &Fabric, run: &Run, options: L::Options) -> ProgramResult<RankRecord> {
    let home = Draws::home(run.seed, fabric.ranks());
    let mut world = Group::world(fabric).await?;
    let lock: L = L::symmetric_with(fabric, home, options).await?;
    let work = Work::calibrated(fabric).await;
    let section = Section::new(&mut world, run.workload, home, run.keys, work).await?;
    let draws = Draws::new(run.seed, fabric.rank());
    let record = RankRecord::default();
    let window = Window::new(fabric).await?;
    let mut contender = Contender { fabric, lock: &lock, run: *run, draws, work, section, limit: Time::MAX, record };
    world.barrier().await?;
    match run.length {
        RunLength::Operations { each, within } => contender.operations(each, within).await?,
        RunLength::Lasting { warm_up, length } => contender.lasting(&window, warm_up, length).await?,
    }
    world.barrier().await?;
    if matches!(run.length, RunLength::Lasting { .. }) {
        contender.record.elapsed = window.length()?;
    }
    contender.section.check(&mut world).await?;
    // Until then others look at this rank's memory.
    world.barrier().await?;
    Ok(contender.record)
}

/// Returns one rank's part in contending for a lock with its usual options: [`contend`], compiled
/// here for every lock.
pub fn contention(fabric: Fabric, lock: LockKind, run: Run) -> RankFuture<RankRecord> {
    Box::pin(async move { with_lock!(lock, L, options => contend::<L>(&fabric, &run, options).await) })
}

struct Contender<'a, L> {
    fabric: &'a Fabric,
    lock: &'a L,
    run: Run,
    draws: Draws,
    work: Work,
    section: Section,
    /// When acquisitions are given up.
    limit: Time,
    record: RankRecord,
}

/// How long a rank goes on without looking at the clock, about.
const UNWATCHED: Duration = Duration::from_micros(10);
/// Acquisitions between two looks, at most.
const MOST_UNWATCHED: u32 = 64;

impl<L: RmaLock> Contender<'_, L> {
    async fn operations(&mut self, each: u32, within: Duration) -> ProgramResult<()> {
        let begun = self.fabric.now();
        self.limit = begun + within;
        for _ in 0..each {
            if self.fabric.now() >= self.limit || !self.turn().await? {
                self.record.gave_up = true;
                break;
            }
        }
        self.record.elapsed = self.fabric.now().picos_since(begun);
        Ok(())
    }

    async fn lasting(&mut self, window: &Window, warm_up: Duration, length: Duration) -> ProgramResult<()> {
        let (mut begun, mut counting) = (self.fabric.now(), false);
        let (mut looked, mut stride, mut unwatched) = (begun, 1, 0);
        loop {
            let before = self.record.completed;
            self.turn().await?;
            let stage = window.stage()?;
            if stage & OVER != 0 {
                // It came too late to count; that somebody waited so long is true all the same.
                self.record.completed = if counting { before } else { [0, 0] };
                return Ok(());
            }
            if !counting && stage & BEGUN != 0 {
                // What has just been completed is the first that counts.
                let now = self.record.completed;
                self.record = RankRecord::default();
                self.record.completed = [now[SHARED] - before[SHARED], now[EXCLUSIVE] - before[EXCLUSIVE]];
                (begun, counting) = (self.fabric.now(), true);
            }
            unwatched += 1;
            if unwatched < stride {
                continue;
            }
            let now = self.fabric.now();
            stride = if now - looked < UNWATCHED { (stride * 2).min(MOST_UNWATCHED) } else { (stride / 2).max(1) };
            (looked, unwatched) = (now, 0);
            if counting && now - begun >= length {
                window.end(now.picos_since(begun)).await?;
            } else if !counting && now - begun >= warm_up {
                window.begin().await?;
            }
        }
    }

    /// One acquisition; whether it was in time.
    #[inline(always)]
    async fn turn(&mut self) -> ProgramResult<bool> {
        let (drawn, timed) = (self.draws.next(), self.run.timed);
        let clock = || if timed { self.fabric.now() } else { Time::ZERO };
        let (kind, begun, acquired, leaving);
        if drawn.writes(self.run.writers) {
            kind = EXCLUSIVE;
            begun = clock();
            let guard = match self.lock.write_before(self.limit).await {
                Ok(guard) => guard,
                Err(LockError::TimedOut) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            acquired = clock();
            self.section.write(drawn).await?;
            leaving = clock();
            guard.release().await?;
        } else {
            kind = SHARED;
            begun = clock();
            let guard = match self.lock.read_before(self.limit).await {
                Ok(guard) => guard,
                Err(LockError::TimedOut) => return Ok(false),
                Err(error) => return Err(error.into()),
            };
            acquired = clock();
            self.section.read(drawn).await?;
            leaving = clock();
            guard.release().await?;
        }
        if timed {
            let acquire = acquired.picos_since(begun);
            self.record.acquire[kind].record_picos(acquire);
            self.record.pair[kind].record_picos(acquire + clock().picos_since(leaving));
        }
        self.record.completed[kind] += 1;
        if self.run.workload == Workload::Warb {
            self.work.busy(self.fabric, drawn.wait()).await;
        }
        Ok(true)
    }
}

/// The warm-up is over.
pub(super) const BEGUN: u64 = 1;
/// So is the time.
pub(super) const OVER: u64 = 2;

pub(super) struct Window {
    fabric: Fabric,
    region: Region,
    stage: LocalWord<u64>,
    /// Picoseconds, from who ended it.
    length: LocalWord<u64>,
}

const LENGTH: u64 = 8;

impl Window {
    /// Collective over the job. To be kept until nobody can end it any more.
    pub(super) async fn new(fabric: &Fabric) -> Result<Self> {
        let region = fabric.alloc_symmetric(16).await?;
        let (stage, length) = (region.word(fabric, 0)?, region.word(fabric, LENGTH as usize)?);
        Ok(Window { fabric: fabric.clone(), region, stage, length })
    }

    #[inline]
    pub(super) fn stage(&self) -> Result<u64> {
        self.fabric.load(&self.stage)
    }

    /// Tells all ranks.
    pub(super) async fn begin(&self) -> Result<()> {
        self.tell(BEGUN).await
    }

    /// Tells all ranks, and that it took so many picoseconds.
    pub(super) async fn end(&self, took: u64) -> Result<()> {
        for rank in self.ranks() {
            self.fabric.put_word(&self.fabric.remote_word(self.region.at(rank, LENGTH))?, took).await?;
        }
        self.fabric.flush_all().await?;
        self.tell(OVER).await
    }

    /// Returns how long it was, once all ranks have met after it.
    pub(super) fn length(&self) -> Result<u64> {
        self.fabric.load(&self.length)
    }

    async fn tell(&self, bit: u64) -> Result<()> {
        for rank in self.ranks() {
            self.fabric.fetch_or(&self.fabric.remote_word::<u64>(self.region.at(rank, 0))?, bit).await?;
        }
        Ok(())
    }

    fn ranks(&self) -> impl Iterator<Item = Rank> + use<> {
        (0..self.fabric.ranks() as u32).map(Rank::new)
    }
}
