//! Closes an epoch and opens the next one; a single survivor does this alone.

use super::{
    Core,
    scan::{Seen, at_each, batches},
    words::{self, Agreement, Claim, State},
};
use crate::{LockError, Result, lock::counted::recoverable};
use rdma_fabric::{Amo, FabricError, GroupMemory, Rank, RemoteWord, op};
use std::sync::Arc;

/// Executes the agreed opening.
pub(super) async fn open(core: &Arc<Core>, mut agreed: Agreement) -> Result<()> {
    loop {
        let end = match agreed.state {
            State::Opening { next, .. } => Opening::new(core, agreed, next).await?.open().await?,
            State::Open | State::Exhausted => End::Exhausted,
        };
        match end {
            End::Open(survivors) => return wake(core, agreed, &survivors).await,
            End::Exhausted => {
                let over = Agreement { state: State::Exhausted, ..agreed };
                core.agree(agreed, over).await?;
                return wake(core, over, &core.living(&core.dead(agreed.deaths).await?)).await;
            }
            End::Again => {
                let again = agreed.opened_by(core.me, core.options.epochs);
                core.agree(agreed, again).await?;
                agreed = again;
            }
        }
    }
}

/// The outcome of an opening.
enum End {
    /// The epoch is open to these members.
    Open(Vec<Rank>),
    /// A member died, and it is unknown whether its stand-in is in the epoch's words, so they
    /// cannot be used.
    Again,
    /// More ranks have died than can be recorded.
    Exhausted,
}

/// Wakes the ranks that wait for the epoch, each on its own memory.
async fn wake(core: &Core, agreed: Agreement, survivors: &[Rank]) -> Result<()> {
    let number = match agreed.state {
        State::Opening { next, .. } => next as u64,
        State::Open | State::Exhausted => u64::MAX,
    };
    // Atomics, because their failure is reported here and not to the next flush.
    for batch in batches(survivors) {
        let wake = |rank| async move {
            let doorbell = core.fabric.remote_word::<u64>(core.memory.at(rank, words::DOORBELL)?)?;
            core.fabric.post(op::Atomic { word: &doorbell, amo: Amo::Swap(number) }).await
        };
        for (rank, rung) in batch.iter().zip(at_each::<_, _>(batch, wake).await) {
            match rung {
                // A rank that has left does not wait.
                Err(error) if error.gone() != Some(*rank) => return Err(error.into()),
                _ => {}
            }
        }
    }
    Ok(())
}

impl Core {
    /// Replaces the agreement of this rank; no other rank changes it.
    async fn agree(&self, agreed: Agreement, now: Agreement) -> Result<()> {
        let old = self.fabric.compare_swap(&self.agreement, agreed.bits(), now.bits()).await?;
        if old == agreed.bits() { Ok(()) } else { Err(LockError::corrupt("agreement", old)) }
    }
}

struct Opening<'a> {
    core: &'a Arc<Core>,
    agreed: Agreement,
    next: usize,
    /// Members that were alive when the old epoch was opened.
    members: Vec<Rank>,
    /// Members that have been found dead since then.
    found: Vec<Rank>,
    /// The words of the old epoch and of the next.
    old: GroupMemory,
    new: GroupMemory,
    /// The next epoch's words at the home.
    home_words: recoverable::HomeWords,
}

impl<'a> Opening<'a> {
    async fn new(core: &'a Arc<Core>, agreed: Agreement, next: usize) -> Result<Self> {
        let dead = core.dead(agreed.deaths).await?;
        let new = core.words_of(next)?;
        Ok(Opening {
            core,
            agreed,
            next,
            members: core.living(&dead),
            found: Vec::new(),
            old: core.words_of(agreed.epoch)?,
            home_words: recoverable::HomeWords::new(&core.fabric, &new, core.home)?,
            new,
        })
    }

    async fn open(mut self) -> Result<End> {
        let fabric = &self.core.fabric;
        let old = recoverable::HomeWords::new(fabric, &self.old, self.core.home)?;
        let closed = old.close(fabric).await?;
        let members = self.members.clone();
        let seen = self.core.scan(self.agreed.epoch, &members).await?;
        let mut standing = Vec::new();
        for (rank, seen) in members.into_iter().zip(seen) {
            let stands = match seen {
                Seen::Lost => {
                    self.found.push(rank);
                    false
                }
                Seen::MaybeInside => true,
                // The member may still have a stand-in from an older epoch.
                Seen::Out => self.hosts(rank).await?,
            };
            if stands {
                standing.push(rank);
            }
        }
        let writer = closed.writer;
        let torn_by = writer.filter(|rank| self.found.contains(rank));
        let sits = writer.filter(|rank| standing.contains(rank));
        self.home_words.install(fabric, sits, closed.torn || torn_by.is_some()).await?;
        for rank in standing {
            match self.stand_in(rank, writer == Some(rank)).await {
                Err(LockError::Fabric(error)) if error == (FabricError::PeerLost { rank }) => return Ok(End::Again),
                stood => stood?,
            }
        }
        if let Some(rank) = torn_by {
            fabric.put_word(&self.core.torn_by, 1 + u64::from(rank.number())).await?;
        }
        self.declare().await
    }

    /// Records the dead, and opens the epoch.
    async fn declare(self) -> Result<End> {
        let (core, fabric) = (self.core, &self.core.fabric);
        let deaths = self.agreed.deaths + self.found.len();
        if deaths > core.options.deaths {
            return Ok(End::Exhausted);
        }
        for (number, rank) in self.found.iter().enumerate() {
            let word = core.memory.at(core.home, words::dead(self.agreed.deaths + number))?;
            fabric.put_word(&fabric.remote_word(word)?, u64::from(rank.number())).await?;
        }
        fabric.flush(core.home).await?;
        core.agree(self.agreed, Agreement { state: State::Open, epoch: self.next, deaths }).await?;
        Ok(End::Open(self.members.into_iter().filter(|rank| !self.found.contains(rank)).collect()))
    }

    /// Puts a stand-in for `rank` into the next epoch, unless the rank turns out to have completed
    /// its work in the old one.
    async fn stand_in(&self, rank: Rank, writes: bool) -> Result<()> {
        if !writes {
            self.home_words.count_reader(&self.core.fabric).await?;
        }
        if !self.mark(rank, writes).await? {
            self.take_back(rank, writes).await?;
        }
        Ok(())
    }

    /// Assigns the removal of the stand-in to `rank`. Returns false if the rank needs no stand-in,
    /// and therefore will not remove it.
    async fn mark(&self, rank: Rank, writes: bool) -> Result<bool, FabricError> {
        let fabric = &self.core.fabric;
        let (there, here) = (self.claim(&self.new, rank)?, self.claim(&self.old, rank)?);
        fabric.fetch_or(&there, Claim::HOSTS).await?;
        let mut known = 0;
        let marked = loop {
            let claim = Claim::of_bits(known);
            if claim.has_ended() {
                break None;
            }
            let marked = claim.with_stand_in(self.next, writes);
            match fabric.compare_swap(&here, known, marked.bits()).await? {
                old if old == known => break Some(marked),
                old => known = old,
            }
        };
        // The rank publishes that it is out before it checks its claim. So if it missed the mark,
        // it is observed as out now.
        let stays = match marked {
            None => false,
            Some(marked) if marked.hosts() => true,
            Some(marked) => {
                self.core.look(self.agreed.epoch, rank).await? != Seen::Out
                    || fabric.compare_swap(&here, marked.bits(), marked.bits() | Claim::OVER).await? != marked.bits()
            }
        };
        if !stays {
            fabric.fetch_and(&there, !Claim::HOSTS).await?;
        }
        Ok(stays)
    }

    /// Removes a stand-in. No rank can have queued behind it: the epoch is not open.
    async fn take_back(&self, rank: Rank, writes: bool) -> Result<()> {
        if writes {
            self.home_words.unseat(&self.core.fabric, rank).await?;
        } else {
            self.home_words.uncount_reader(&self.core.fabric).await?;
        }
        Ok(())
    }

    /// Returns whether a stand-in of `rank` is in the old epoch.
    async fn hosts(&self, rank: Rank) -> Result<bool> {
        let claim = async { self.core.fabric.get_word(&self.claim(&self.old, rank)?).await };
        match claim.await {
            Ok(bits) => Ok(Claim::of_bits(bits).hosts()),
            Err(error) if error.gone() == Some(rank) => Ok(false),
            Err(error) => Err(error.into()),
        }
    }

    fn claim(&self, memory: &GroupMemory, rank: Rank) -> Result<RemoteWord<u64>, FabricError> {
        self.core.fabric.remote_word(memory.at(rank, words::CLAIM)?)
    }
}
