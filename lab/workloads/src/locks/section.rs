//! The critical section: the body of each workload, the computing inside, and the check for lost
//! updates at the end.

use super::{Workload, draws::Drawn};
use crate::hashtable::{Cells, VolumeSize};
use core::{hint::black_box, time::Duration};
use rdma_fabric::{Fabric, Group, ProgramResult, Rank, Region, RemoteWord};

/// The lock did not exclude.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unsound {
    /// Increments of the counter are missing.
    #[error("{counted} increments are left of {made} that writers made")]
    LostIncrements {
        /// The counter's value.
        counted: u64,
        /// The number of increments.
        made: u64,
    },
    /// The counter decreased between two reads of a rank.
    #[error("the counter was {before} and then {after}")]
    Backwards {
        /// The value read first.
        before: u64,
        /// The value read later.
        after: u64,
    },
    /// An insert is missing, or an earlier value has reappeared.
    #[error("key {key:#x} has {} where its rank inserted {}", value(found), value(inserted))]
    LostInsert {
        /// The key.
        key: u64,
        /// The value that the key's rank, the only one to write it, inserted last.
        inserted: Option<u64>,
        /// The value found.
        found: Option<u64>,
    },
    /// A key has a value that was never inserted for it.
    #[error("key {key:#x} has the value {found:#x}, which is another key's")]
    Strange {
        /// The key.
        key: u64,
        /// Its value.
        found: u64,
    },
}

fn value(value: &Option<u64>) -> String {
    value.map_or("nothing".into(), |value| format!("{value:#x}"))
}

/// The protected data of a workload, all of it at one rank.
pub(super) enum Protected {
    Nothing,
    Word(RemoteWord<u64>),
    Counter { word: RemoteWord<u64>, made: u64, seen: u64 },
    Table { cells: Cells, keys: u64, inserts: u64 },
}

/// One rank's access to the protected data.
pub(super) struct Section {
    fabric: Fabric,
    me: u64,
    ranks: u64,
    home: Rank,
    work: Work,
    /// SOB's word or WCSB's counter, and on another line the sum of all increments as counted by
    /// the ranks. Keeps the memory registered.
    region: Region,
    pub(super) protected: Protected,
}

/// The offset of the sum of increments.
const MADE: u64 = 64;
const BYTES: usize = 128;

impl Section {
    /// Creates the section. Collective over the job.
    pub(super) async fn new(
        world: &mut Group,
        workload: Workload,
        home: Rank,
        keys: u32,
        work: Work,
    ) -> ProgramResult<Self> {
        let fabric = world.fabric().clone();
        let region = fabric.alloc_symmetric(BYTES).await?;
        let word = fabric.remote_word(region.at(home, 0))?;
        let protected = match workload {
            Workload::Lb | Workload::Ecsb | Workload::Warb => Protected::Nothing,
            Workload::Sob => Protected::Word(word),
            Workload::Wcsb => Protected::Counter { word, made: 0, seen: 0 },
            Workload::Dht => {
                // All keys may share one bucket, so the heap has as many cells as there can be
                // keys.
                let all = keys.saturating_mul(fabric.ranks() as u32);
                let cells = Cells::collective(world, home, VolumeSize { buckets: all, heap: all }).await?;
                Protected::Table { cells, keys: u64::from(keys.max(1)), inserts: 0 }
            }
        };
        let (me, ranks) = (u64::from(fabric.rank().number()), fabric.ranks() as u64);
        Ok(Section { fabric, me, ranks, home, work, region, protected })
    }

    /// Executes a reader's critical section.
    #[inline]
    pub(super) async fn read(&mut self, drawn: Drawn) -> ProgramResult<()> {
        match &mut self.protected {
            Protected::Nothing => {}
            Protected::Word(word) => drop(self.fabric.get_word(word).await?),
            Protected::Counter { word, seen, .. } => {
                let now = self.fabric.get_word(word).await?;
                if now < *seen {
                    return Err(Unsound::Backwards { before: *seen, after: now }.into());
                }
                *seen = now;
                self.work.busy(&self.fabric, drawn.wait()).await;
            }
            Protected::Table { cells, keys, .. } => {
                let key = drawn.of(*keys * self.ranks);
                match cells.get(key).await? {
                    Some(value) if value as u32 != mark(key) => {
                        return Err(Unsound::Strange { key, found: value }.into());
                    }
                    _ => {}
                }
            }
        }
        Ok(())
    }

    /// Executes a writer's critical section.
    #[inline]
    pub(super) async fn write(&mut self, drawn: Drawn) -> ProgramResult<()> {
        match &mut self.protected {
            Protected::Nothing => {}
            Protected::Word(word) => self.fabric.put_word(word, self.me).await?,
            Protected::Counter { word, made, seen } => {
                let before = self.fabric.get_word(word).await?;
                if before < *seen {
                    return Err(Unsound::Backwards { before: *seen, after: before }.into());
                }
                self.fabric.put_word(word, before + 1).await?;
                *seen = before + 1;
                *made += 1;
                self.work.busy(&self.fabric, drawn.wait()).await;
            }
            Protected::Table { cells, keys, inserts } => {
                let (key, value) = nth_insert(self.me, *keys, *inserts);
                let found = cells.insert(key, value).await?;
                let inserted = inserts.checked_sub(*keys).map(|before| nth_insert(self.me, *keys, before).1);
                if found != inserted {
                    return Err(Unsound::LostInsert { key, inserted, found }.into());
                }
                *inserts += 1;
            }
        }
        Ok(())
    }

    /// Checks that all writes are present. Collective over the job, after the last write of any
    /// rank.
    pub(super) async fn check(&self, world: &mut Group) -> ProgramResult<()> {
        match &self.protected {
            Protected::Nothing | Protected::Word(_) => {}
            Protected::Counter { word, made, .. } => {
                let all = self.fabric.remote_word::<u64>(self.region.at(self.home, MADE))?;
                self.fabric.fetch_add(&all, *made).await?;
                world.barrier().await?;
                let (counted, made) = (self.fabric.get_word(word).await?, self.fabric.get_word(&all).await?);
                if counted != made {
                    return Err(Unsound::LostIncrements { counted, made }.into());
                }
            }
            Protected::Table { cells, keys, inserts } => {
                // The last insert of each key.
                for insert in inserts.saturating_sub(*keys)..*inserts {
                    let (key, inserted) = nth_insert(self.me, *keys, insert);
                    let found = cells.get(key).await?;
                    if found != Some(inserted) {
                        return Err(Unsound::LostInsert { key, inserted: Some(inserted), found }.into());
                    }
                }
            }
        }
        Ok(())
    }
}

/// Returns key and value of a rank's `n`-th insert: its keys in turn, each time with another value.
fn nth_insert(rank: u64, keys: u64, n: u64) -> (u64, u64) {
    let key = rank * keys + n % keys;
    (key, (n / keys) << 32 | u64::from(mark(key)))
}

/// Returns the low half of every value of a key.
fn mark(key: u64) -> u32 {
    (key as u32).wrapping_mul(0x9e37_79b9) | 1
}

/// Keeps a rank's CPU busy: by the fabric's [`Fabric::compute`] in virtual time, by a loop of as
/// many turns in wall-clock time.
///
/// The loop counts turns instead of reading the clock, so that a preempted rank still has its work
/// to do afterwards, as in a real program.
#[derive(Clone, Copy, Debug)]
pub(super) struct Work {
    /// Turns of the loop per microsecond; `None` in virtual time.
    turns: Option<u64>,
}

/// The number of turns that are timed to calibrate the loop.
const TRIAL: u64 = 4096;
/// The number of trials. The fastest one is used, since other work has not delayed it.
const TRIALS: u32 = 64;

impl Work {
    /// Measures the speed of this rank.
    pub(super) async fn calibrated(fabric: &Fabric) -> Self {
        // In wall-clock time this takes no time, unless the rank is preempted, which does not
        // happen every time.
        const STEP: Duration = Duration::from_micros(1);
        let mut is_virtual = true;
        for _ in 0..16 {
            let begun = fabric.now();
            fabric.compute(STEP).await;
            is_virtual &= fabric.now() - begun >= STEP;
        }
        if is_virtual {
            return Work { turns: None };
        }
        let fastest = (0..TRIALS).map(|_| {
            let begun = fabric.now();
            spin(TRIAL);
            fabric.now().picos_since(begun)
        });
        let fastest = fastest.min().unwrap_or(1).max(1);
        Work { turns: Some((TRIAL * 1_000_000).div_ceil(fastest)) }
    }

    /// Keeps the CPU busy for `duration`.
    #[inline]
    pub(super) async fn busy(self, fabric: &Fabric, duration: Duration) {
        match self.turns {
            None => fabric.compute(duration).await,
            Some(turns) => spin(turns * duration.as_nanos() as u64 / 1000),
        }
    }
}

fn spin(turns: u64) {
    for turn in 0..turns {
        black_box(turn);
    }
}
