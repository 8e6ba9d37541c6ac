//! One rank's part in a run, and the measured time window.
//!
//! The window is the same for all ranks. The clocks of processes don't agree, and a waiting rank
//! can't read its own, so each rank has a word that all ranks can write. The first rank that finds
//! that the warm-up or the measured time has ended sets a bit in the words of all ranks; others may
//! do so at the same time without effect. So all ranks contend from beginning to end, regardless of
//! the time of a single acquisition.

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

/// The amount of work of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum RunLength {
    /// This number of acquisitions by each rank, for virtual time. A rank that has not completed
    /// them `within` that time stops, and gives up its pending acquisition: otherwise a lock that
    /// starves a rank would never end the run.
    Operations {
        /// The acquisitions of each rank.
        each: u32,
        /// The time limit.
        within: Duration,
    },
    /// As many acquisitions as complete in a length of time, for wall-clock time. The window begins
    /// and ends for all ranks when the first rank's clock has reached the time, so that all ranks
    /// contend all the time, and a waiting rank does not delay the others.
    Lasting {
        /// Not counted.
        warm_up: Duration,
        /// Counted.
        length: Duration,
    },
}

/// The parameters of a run, the same for all ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// The operations between acquisitions and inside.
    pub workload: Workload,
    /// The share of writers.
    pub writers: WriterShare,
    /// The amount of work.
    pub length: RunLength,
    /// Whether to time every acquisition. Reading the clock is free in virtual time; in wall-clock
    /// time it costs about as much as a free lock.
    pub timed: bool,
    /// The number of keys of each rank in [`Workload::Dht`].
    pub keys: u32,
    /// Seed of all random choices, including the lock's home.
    pub seed: u64,
}

/// Executes one rank of `run`, in which all ranks contend for one lock `L`.
///
/// Collective over the job. It begins and ends with a barrier. The lock's home is chosen at random,
/// and also stores the protected data.
///
/// # Errors
/// [`super::Unsound`] if the lock did not exclude; errors of the lock and the fabric.
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
    // Until then other ranks access this rank's memory.
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
    /// The time at which pending acquisitions are given up.
    limit: Time,
    record: RankRecord,
}

/// The approximate time that a rank runs without reading the clock.
const UNWATCHED: Duration = Duration::from_micros(10);
/// The maximum number of acquisitions between two reads of the clock.
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
                // The last acquisition completed too late to count, but its waiting time is valid
                // all the same.
                self.record.completed = if counting { before } else { [0, 0] };
                return Ok(());
            }
            if !counting && stage & BEGUN != 0 {
                // The acquisition that has just completed is the first one that counts.
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

    /// Performs one acquisition; returns whether it completed within the time limit.
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

/// The warm-up has ended.
pub(super) const BEGUN: u64 = 1;
/// The measured time has ended.
pub(super) const OVER: u64 = 2;

pub(super) struct Window {
    fabric: Fabric,
    region: Region,
    stage: LocalWord<u64>,
    /// The length of the window in picoseconds, written by the rank that ended it.
    length: LocalWord<u64>,
}

const LENGTH: u64 = 8;

impl Window {
    /// Creates the window. Collective over the job. The window has to be kept until no rank can end
    /// it any longer.
    pub(super) async fn new(fabric: &Fabric) -> Result<Self> {
        let region = fabric.alloc_symmetric(16).await?;
        let (stage, length) = (region.word(fabric, 0)?, region.word(fabric, LENGTH as usize)?);
        Ok(Window { fabric: fabric.clone(), region, stage, length })
    }

    #[inline]
    pub(super) fn stage(&self) -> Result<u64> {
        self.fabric.load(&self.stage)
    }

    /// Notifies all ranks that the measured time begins.
    pub(super) async fn begin(&self) -> Result<()> {
        self.tell(BEGUN).await
    }

    /// Notifies all ranks that the measured time has ended, after `took` picoseconds.
    pub(super) async fn end(&self, took: u64) -> Result<()> {
        for rank in self.ranks() {
            self.fabric.put_word(&self.fabric.remote_word(self.region.at(rank, LENGTH))?, took).await?;
        }
        self.fabric.flush_all().await?;
        self.tell(OVER).await
    }

    /// Returns the length of the window in picoseconds, once all ranks have passed a barrier after
    /// its end.
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
