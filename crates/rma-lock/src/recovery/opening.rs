//! Closing an epoch and opening the next: what one survivor does alone.

use super::{
    Survivor,
    agreement::{Agreement, State},
    claim::Claim,
    layout,
    scan::Seen,
};
use crate::{LockError, Result, counted::surviving};
use rdma_fabric::{Fabric, FabricError, GroupMemory, Rank, RemoteWord};
use std::sync::Arc;

/// Do what was agreed.
pub(super) async fn open<F: Fabric>(core: &Arc<Survivor<F>>, agreed: Agreement) -> Result<()> {
    let opened = match agreed.state {
        State::Opening { next, .. } => Opening::new(core, agreed, next).await?.open().await?,
        State::Open | State::Over => Err(agreed),
    };
    match opened {
        Ok(survivors) => ring(core, agreed, &survivors).await,
        Err(agreed) => {
            let dead = core.dead(agreed.deaths).await?;
            ring(core, agreed, &core.living(&dead)?).await
        }
    }
}

/// Wake those who wait for it, on their own memory.
async fn ring<F: Fabric>(core: &Survivor<F>, agreed: Agreement, survivors: &[Rank]) -> Result<()> {
    let number = match agreed.state {
        State::Opening { next, .. } => next as u64,
        State::Open | State::Over => u64::MAX,
    };
    for rank in survivors {
        if *rank == core.me {
            core.fabric.store(&core.doorbell, number)?;
            continue;
        }
        let rung = async {
            let doorbell = core.fabric.remote_word(core.memory.at(*rank, layout::DOORBELL)?)?;
            core.fabric.put_word(&doorbell, number).await
        };
        match rung.await {
            Err(error) if !is_gone(&error, *rank) => return Err(error.into()),
            // Who is gone waits for nothing.
            _ => {}
        }
    }
    Ok(())
}

/// Whether `error` says that `rank` is lost, or has left.
fn is_gone(error: &FabricError, rank: Rank) -> bool {
    match error {
        FabricError::PeerLost { rank: lost } => *lost == rank,
        FabricError::StaleRegion { .. } | FabricError::NoSuchRegion { .. } => true,
        _ => false,
    }
}

struct Opening<'a, F: Fabric> {
    core: &'a Arc<Survivor<F>>,
    agreed: Agreement,
    next: usize,
    /// Members that were alive when the old epoch was opened.
    members: Vec<Rank>,
    /// Those who have been found dead since.
    found: Vec<Rank>,
    /// The words of the old epoch and of the next.
    old: GroupMemory<F>,
    new: GroupMemory<F>,
    /// The next epoch's words at the home.
    words: surviving::HomeWords<F>,
}

impl<'a, F: Fabric> Opening<'a, F> {
    async fn new(core: &'a Arc<Survivor<F>>, agreed: Agreement, next: usize) -> Result<Self> {
        let dead = core.dead(agreed.deaths).await?;
        let new = core.words_of(next)?;
        Ok(Opening {
            core,
            agreed,
            next,
            members: core.living(&dead)?,
            found: Vec::new(),
            old: core.words_of(agreed.epoch)?,
            words: surviving::HomeWords::new(&core.fabric, &new, core.home)?,
            new,
        })
    }

    /// Yields the survivors; or, if more have died than can be written down, what is agreed now.
    async fn open(mut self) -> Result<Result<Vec<Rank>, Agreement>> {
        let fabric = &self.core.fabric;
        let old = surviving::HomeWords::new(fabric, &self.old, self.core.home)?;
        let closed = old.close(fabric).await?;
        let members = self.members.clone();
        let seen = self.core.scan(self.agreed.epoch, &members).await?;
        let mut standing = vec![false; members.len()];
        for (number, rank) in members.iter().enumerate() {
            standing[number] = match seen[number] {
                Seen::Lost => {
                    self.found.push(*rank);
                    false
                }
                Seen::MaybeInside => true,
                // A stand-in from an older epoch may still be there for it.
                Seen::Out => self.hosts(*rank).await?,
            };
        }
        let mut torn = closed.torn;
        let mut torn_by = None;
        let writer = closed.writer;
        let writes = |rank: Rank| writer == Some(rank);
        if let Some(rank) = writer
            && self.found.contains(&rank)
        {
            (torn, torn_by) = (true, Some(rank));
        }
        let sits = writer.filter(|rank| members.iter().zip(&standing).any(|(member, stands)| member == rank && *stands));
        self.words.install(fabric, sits, torn).await?;
        for (number, rank) in members.iter().enumerate().filter(|(number, _)| standing[*number]) {
            debug_assert!(standing[number]);
            match self.stand_in(*rank, writes(*rank)).await {
                Ok(()) => {}
                Err(LockError::Fabric(error)) if *error == FabricError::PeerLost { rank: *rank } => {
                    self.found.push(*rank);
                    self.take_back(*rank, writes(*rank)).await?;
                    if writes(*rank) {
                        torn_by = Some(*rank);
                        self.words.tear(fabric).await?;
                    }
                }
                Err(error) => return Err(error),
            }
        }
        if let Some(rank) = torn_by {
            fabric.put_word(&self.core.torn_by, 1 + u64::from(rank.number())).await?;
        }
        self.declare().await
    }

    /// Write down who is dead, and open the epoch.
    async fn declare(self) -> Result<Result<Vec<Rank>, Agreement>> {
        let (core, fabric) = (self.core, &self.core.fabric);
        let deaths = self.agreed.deaths + self.found.len();
        let agreement = if deaths <= core.options.deaths {
            for (number, rank) in self.found.iter().enumerate() {
                let word = core.memory.at(core.home, layout::dead(self.agreed.deaths + number))?;
                fabric.put_word(&fabric.remote_word(word)?, u64::from(rank.number())).await?;
            }
            Agreement { state: State::Open, epoch: self.next, deaths }
        } else {
            Agreement { state: State::Over, ..self.agreed }
        };
        fabric.flush(core.home).await?;
        let old = fabric.compare_swap(&core.agreement, self.agreed.bits(), agreement.bits()).await?;
        if old != self.agreed.bits() {
            return Err(LockError::corrupt("agreement", old));
        }
        if agreement.state == State::Over {
            return Ok(Err(agreement));
        }
        Ok(Ok(self.members.into_iter().filter(|rank| !self.found.contains(rank)).collect()))
    }

    /// Put a stand-in for `rank` into the next epoch, unless it turns out to be through with the old one.
    async fn stand_in(&self, rank: Rank, writes: bool) -> Result<()> {
        let fabric = &self.core.fabric;
        let (there, here) = (self.claim(&self.new, rank)?, self.claim(&self.old, rank)?);
        fabric.fetch_or(&there, Claim::HOSTS).await?;
        if !writes {
            self.words.count_reader(fabric).await?;
        }
        let mut known = 0;
        let marked = loop {
            let claim = Claim::of_bits(known);
            let marked = claim.with_stand_in(self.next, writes);
            if claim.is_over() {
                break None;
            }
            match fabric.compare_swap(&here, known, marked.bits()).await? {
                old if old == known => break Some(marked),
                old => known = old,
            }
        };
        // The rank publishes that it is out before it looks at its claim. So if it did not find the mark, it is seen out now.
        let leaves = match marked {
            None => true,
            Some(marked) if marked.hosts() => false,
            Some(marked) => {
                self.core.look(self.agreed.epoch, rank).await? == Seen::Out
                    && fabric.compare_swap(&here, marked.bits(), marked.bits() | Claim::OVER).await? == marked.bits()
            }
        };
        if leaves {
            self.take_back(rank, writes).await?;
            fabric.fetch_and(&there, !Claim::HOSTS).await?;
        }
        Ok(())
    }

    /// Nobody can have queued behind it: the epoch is not open.
    async fn take_back(&self, rank: Rank, writes: bool) -> Result<()> {
        if writes {
            self.words.unseat(&self.core.fabric, rank).await?;
        } else {
            self.words.uncount_reader(&self.core.fabric).await?;
        }
        Ok(())
    }

    /// Whether a stand-in of `rank` is in the old epoch.
    async fn hosts(&self, rank: Rank) -> Result<bool> {
        let claim = async { self.core.fabric.get_word(&self.claim(&self.old, rank)?).await };
        match claim.await {
            Ok(bits) => Ok(Claim::of_bits(bits).hosts()),
            Err(error) if is_gone(&error, rank) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn claim(&self, words: &GroupMemory<F>, rank: Rank) -> Result<RemoteWord<F, u64>, FabricError> {
        self.core.fabric.remote_word(words.at(rank, layout::CLAIM)?)
    }
}
