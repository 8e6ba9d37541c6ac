//! A plain MCS mutex over the fabric, and ways to break it: what the harness is tried on.

use rdma_fabric::{Deps, Fabric, LocalWord, Rank, Region, RemoteAddr, RemoteWord, Result};

/// What is wrong with a [`Mcs`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Broken {
    Nothing,
    /// Hands over without a flush of the protected data.
    NoFlush,
    /// The same by an atomic, which is no mistake where puts are ordered before atomics.
    NoFlushButSwap,
    /// Marks itself as blocked only after it can be woken.
    LateInit,
    /// Believes that the tail was still its own.
    IgnoredCas,
}

/// Words of a rank's part: the tail (rank 0's counts), `blocked`, `next`.
const TAIL: usize = 0;
const BLOCKED: usize = 8;
const NEXT: usize = 16;

pub(crate) struct Mcs {
    fabric: Fabric,
    region: Region,
    tail: RemoteWord<u64>,
    blocked: LocalWord<u64>,
    next: LocalWord<u64>,
    broken: Broken,
}

impl Mcs {
    pub(crate) async fn new(fabric: &Fabric, broken: Broken) -> Result<Self> {
        let region = fabric.alloc_symmetric(24).await?;
        let home = RemoteAddr { rank: Rank::new(0), region: region.key(), offset: TAIL as u64 };
        Ok(Mcs {
            tail: fabric.remote_word(home)?,
            blocked: region.word(fabric, BLOCKED)?,
            next: region.word(fabric, NEXT)?,
            region,
            fabric: fabric.clone(),
            broken,
        })
    }

    fn word(&self, id: u64, offset: usize) -> Result<RemoteWord<u64>> {
        let rank = Rank::new(id as u32 - 1);
        self.fabric.remote_word(RemoteAddr { rank, region: self.region.key(), offset: offset as u64 })
    }

    fn id(&self) -> u64 {
        u64::from(self.fabric.rank().number()) + 1
    }

    pub(crate) async fn lock(&self) -> Result<()> {
        self.fabric.store(&self.next, 0)?;
        if self.broken != Broken::LateInit {
            self.fabric.store(&self.blocked, 1)?;
        }
        let pred = self.fabric.swap(&self.tail, self.id()).await?;
        if pred != 0 {
            self.fabric.put_word(&self.word(pred, NEXT)?, self.id()).await?;
            if self.broken == Broken::LateInit {
                self.fabric.store(&self.blocked, 1)?;
            }
            self.fabric.wait_until(&self.blocked, Deps::All, |blocked| blocked == 0).await?;
        }
        Ok(())
    }

    pub(crate) async fn unlock(&self) -> Result<()> {
        if !matches!(self.broken, Broken::NoFlush | Broken::NoFlushButSwap) {
            self.fabric.flush_all().await?;
        }
        if self.fabric.load(&self.next)? == 0 {
            let old = self.fabric.compare_swap(&self.tail, self.id(), 0).await?;
            if old == self.id() || self.broken == Broken::IgnoredCas {
                return Ok(());
            }
        }
        let next = self.fabric.wait_until(&self.next, Deps::All, |next| next != 0).await?;
        let blocked = self.word(next, BLOCKED)?;
        if self.broken == Broken::NoFlushButSwap {
            return self.fabric.swap(&blocked, 0).await.map(drop);
        }
        self.fabric.put_word(&blocked, 0).await
    }
}
