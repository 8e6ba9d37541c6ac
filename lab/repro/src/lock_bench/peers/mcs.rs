//! The queue lock of Mellor-Crummey and Scott (1991) by remote operations: the baseline that both
//! papers improve on. Readers also exclude each other.
//!
//! An acquisition swaps the tail at the home and, if there is a predecessor, puts the rank's own
//! identifier into the predecessor's memory. A release puts the grant into the successor's memory,
//! or empties the tail by a compare-and-swap if there is no successor. An acquisition and its
//! release take two atomics if the lock is free, and one atomic and two puts in a queue.

use super::lock::{PeerLock, Protocol, Seat, named};
use rdma_fabric::{LocalWord, RemoteWord};
use rma_lock::{Fairness, Result};

/// The queue lock.
pub type McsLock = PeerLock<Mcs>;

const NEXT: u64 = 0;
const GRANT: u64 = 1;

/// A rank's side of an [`McsLock`].
#[derive(Debug)]
pub struct Mcs {
    seat: Seat,
    tail: RemoteWord<u64>,
    next: LocalWord<u64>,
    grant: LocalWord<u64>,
}

impl Protocol for Mcs {
    type Held = ();

    const NAME: &'static str = "MCS";
    const FAIRNESS: Fairness = Fairness::Fifo;
    const HOME_WORDS: usize = 1;

    fn new(seat: Seat) -> Result<Self> {
        Ok(Mcs { tail: seat.at_home(0)?, next: seat.own(NEXT)?, grant: seat.own(GRANT)?, seat })
    }

    fn seat(&self) -> &Seat {
        &self.seat
    }

    async fn acquire(&self, _: bool) -> Result<()> {
        let before = self.seat.fabric.swap(&self.tail, self.seat.name()).await?;
        if before != 0 {
            self.seat.tell(named(before), NEXT, self.seat.name()).await?;
            self.seat.told(&self.grant).await?;
        }
        Ok(())
    }

    async fn release(&self, (): ()) -> Result<()> {
        let (fabric, me) = (&self.seat.fabric, self.seat.name());
        if fabric.load(&self.next)? == 0 && fabric.compare_swap(&self.tail, me, 0).await? == me {
            return Ok(());
        }
        let next = named(self.seat.told(&self.next).await?);
        self.seat.tell(next, GRANT, 1).await
    }
}
