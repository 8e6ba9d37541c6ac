//! The ranks' work under the lock, and the invariants for all deaths of ranks: no rank is inside
//! together with a writer, and no rank sees a half-written record without being notified.

use checks::lock::Record;
use rdma_fabric::{Deps, Fabric, Group, LocalWord, ProgramResult, Rank, Region, RemoteWord};
use rma_lock::{
    Guard, Lock, LockError,
    locks::{RecoverableLock, RecoverableReadGuard, RecoverableWriteGuard, Recovery},
};
use std::{fmt, str::FromStr};

pub(crate) const HOME: Rank = Rank::new(0);

/// The observations of a survivor.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    /// The number of versions it wrote and released.
    pub(crate) wrote: u64,
    /// The number of times it found torn data.
    pub(crate) torn: u64,
    /// The version at the end; at the home only.
    pub(crate) version: u64,
}

impl fmt::Display for Tally {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {} {}", self.wrote, self.torn, self.version)
    }
}

impl FromStr for Tally {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let numbers: Vec<u64> = text.split(' ').filter_map(|word| word.parse().ok()).collect();
        let [wrote, torn, version] = numbers[..] else { return Err(format!("{text:?} is no tally")) };
        Ok(Tally { wrote, torn, version })
    }
}

/// A lock, the record that it protects, and a word that shows which ranks are inside.
pub(crate) struct Protected {
    pub(crate) fabric: Fabric,
    pub(crate) lock: RecoverableLock,
    pub(crate) record: Record,
    /// A bit for each writer and, from bit 32 on, for each reader.
    inside: RemoteWord<u64>,
    /// A mask without the ranks that die, because their bits are never cleared.
    counted: u64,
    /// Messages from other ranks.
    region: Region,
}

const READERS: u32 = 32;

impl Protected {
    /// Creates the lock and the record. Collective. The ranks in `mortal` may die.
    pub(crate) async fn new(fabric: &Fabric, mortal: &[Rank]) -> ProgramResult<Self> {
        let lock = RecoverableLock::symmetric_with(fabric, HOME, Recovery::of_deaths(3)).await?;
        let region = fabric.alloc_symmetric(64).await?;
        let inside = fabric.remote_word(region.at(HOME, 16))?;
        let dead = mortal.iter().fold(0, |dead, rank| dead | 1 << rank.number());
        let counted = !(dead | dead << READERS);
        Ok(Protected { record: Record::new(fabric, &region)?, inside, fabric: fabric.clone(), lock, counted, region })
    }

    /// Lets all ranks start together: when a mortal rank returns from this, no other rank is still
    /// in a barrier.
    pub(crate) async fn begin(&self, world: &mut Group, mortal: &[Rank]) -> ProgramResult<()> {
        let (me, ranks) = (self.fabric.rank(), self.fabric.ranks());
        world.barrier().await?;
        for rank in mortal.iter().filter(|rank| **rank != me && rank.index() < ranks) {
            self.fabric.fetch_add(&self.message(*rank, 3)?, 1).await?;
        }
        if mortal.contains(&me) {
            let others = ranks as u64 - 1;
            self.fabric.wait_until(&self.told(3)?, Deps::One(HOME), |told| told == others).await?;
        }
        Ok(())
    }

    /// Returns a word of `rank` for messages, 0 to 4.
    pub(crate) fn message(&self, rank: Rank, number: u64) -> ProgramResult<RemoteWord<u64>> {
        Ok(self.fabric.remote_word(self.region.at(rank, 24 + 8 * number))?)
    }

    /// Returns this rank's own word for messages.
    pub(crate) fn told(&self, number: u64) -> ProgramResult<LocalWord<u64>> {
        Ok(self.region.word(&self.fabric, 24 + 8 * number as usize)?)
    }

    fn bit(&self, reads: bool) -> u64 {
        1 << (self.fabric.rank().number() + if reads { READERS } else { 0 })
    }

    pub(crate) async fn comes_in(&self, reads: bool) -> ProgramResult<()> {
        let before = self.fabric.fetch_or(&self.inside, self.bit(reads)).await? & self.counted;
        let beside = if reads { before & ((1 << READERS) - 1) } else { before };
        if beside == 0 { Ok(()) } else { Err(format!("came in beside {beside:#x}, reads: {reads}").into()) }
    }

    async fn goes(&self, reads: bool) -> ProgramResult<()> {
        self.fabric.fetch_and(&self.inside, !self.bit(reads)).await?;
        Ok(())
    }

    /// Enters to write, even if the record is torn.
    pub(crate) async fn write(&self, tally: &mut Tally) -> ProgramResult<RecoverableWriteGuard<'_>> {
        let (guard, torn) = self.record.write(&self.lock).await?;
        tally.torn += u64::from(torn);
        self.comes_in(false).await?;
        Ok(guard)
    }

    /// Writes the next version.
    pub(crate) async fn change(&self) -> ProgramResult<()> {
        let version = self.record.version("a writer").await?;
        self.record.set(version + 1).await
    }

    pub(crate) async fn writer_leaves(&self, guard: RecoverableWriteGuard<'_>) -> ProgramResult<()> {
        self.goes(false).await?;
        Ok(guard.release().await?)
    }

    /// Enters to read; returns `None` if the record is torn.
    pub(crate) async fn read(&self) -> ProgramResult<Option<RecoverableReadGuard<'_>>> {
        let guard = match self.lock.read().await {
            Err(LockError::Torn { .. }) => return Ok(None),
            guard => guard?,
        };
        self.comes_in(true).await?;
        Ok(Some(guard))
    }

    pub(crate) async fn reader_leaves(&self, guard: RecoverableReadGuard<'_>) -> ProgramResult<()> {
        self.record.version("a reader").await?;
        self.goes(true).await?;
        Ok(guard.release().await?)
    }

    /// Writes, and reads.
    pub(crate) async fn round(&self, tally: &mut Tally) -> ProgramResult<()> {
        let guard = self.write(tally).await?;
        self.change().await?;
        self.writer_leaves(guard).await?;
        tally.wrote += 1;
        if let Some(guard) = self.read().await? {
            self.reader_leaves(guard).await?;
        }
        Ok(())
    }

    /// Returns the version at the end.
    pub(crate) async fn version(&self) -> ProgramResult<u64> {
        let [a, b] = self.record.halves().await?;
        Ok(a.max(b))
    }
}
