//! The queue lock of Mellor-Crummey and Scott (1991) by remote operations: the baseline that both
//! papers improve on. Readers also exclude each other.
//!
//! An acquisition swaps the tail at the home and, if there is a predecessor, puts the rank's own
//! identifier into the predecessor's memory. A release puts the grant into the successor's memory,
//! or empties the tail by a compare-and-swap if there is no successor. An acquisition and its
//! release take two atomics if the lock is free, and one atomic and two puts in a queue.

use super::lock::{PeerLock, Protocol, RankState, named};
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, Result};

/// The queue lock.
pub type McsLock = PeerLock<Mcs>;

const NEXT: u64 = 0;
const GRANT: u64 = 1;

/// A rank's side of an [`McsLock`].
#[derive(Debug)]
pub struct Mcs {
    rank_state: RankState,
    tail: RemoteWord<u64>,
    next: LocalWord<u64>,
    grant: LocalWord<u64>,
}

impl Protocol for Mcs {
    type Held = ();

    const NAME: &'static str = "MCS";
    const FAIRNESS: Fairness = Fairness::Fifo;
    const HOME_WORDS: usize = 1;

    fn new(rank_state: RankState) -> Result<Self> {
        Ok(Mcs { tail: rank_state.at_home(0)?, next: rank_state.own(NEXT)?, grant: rank_state.own(GRANT)?, rank_state })
    }

    fn rank_state(&self) -> &RankState {
        &self.rank_state
    }

    async fn acquire(&self, _: bool) -> Result<()> {
        let before = self.rank_state.fabric.swap(&self.tail, self.rank_state.name()).await?;
        if before != 0 {
            self.rank_state.tell(named(before), NEXT, self.rank_state.name()).await?;
            self.rank_state.told(&self.grant).await?;
        }
        Ok(())
    }

    async fn release(&self, (): ()) -> Result<()> {
        let (fabric, me) = (&self.rank_state.fabric, self.rank_state.name());
        if fabric.load(&self.next)? == 0 && fabric.compare_swap(&self.tail, me, 0).await? == me {
            return Ok(());
        }
        let next = named(self.rank_state.told(&self.next).await?);
        self.rank_state.tell(next, GRANT, 1).await
    }
}
