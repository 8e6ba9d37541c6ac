//! The time that counts, the same for all ranks: clocks of processes don't agree, and one that waits can't look at its own.
//!
//! Each rank has a word for everybody's eyes. Who first finds that the warm-up is over, or the time, sets a bit in all of them; others may
//! do so at the same time, which changes nothing. So all contend from beginning to end, however long one acquisition takes.

use rdma_fabric::{Fabric, LocalWord, Rank, Region, Result};

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

    /// Tell all ranks.
    pub(super) async fn begin(&self) -> Result<()> {
        self.tell(BEGUN).await
    }

    /// Tell all ranks, and that it took so many picoseconds.
    pub(super) async fn end(&self, took: u64) -> Result<()> {
        for rank in self.ranks() {
            self.fabric.put_word(&self.fabric.remote_word(self.region.at(rank, LENGTH))?, took).await?;
        }
        self.fabric.flush_all().await?;
        self.tell(OVER).await
    }

    /// How long it was, once all ranks have met after it.
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
