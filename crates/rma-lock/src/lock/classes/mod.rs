//! A lock for two classes of ranks: ranks of one class may be inside together, ranks of different
//! classes may not (group mutual exclusion).
//!
//! # Words
//! At the home:
//! * `counts`: the number of ranks of each class that are inside or wait, and the *epoch*, whose
//!   lowest bit is the class that has its turn.
//! * `open`: while the other class waits, the number of ranks of the current batch that have not
//!   left yet; negative while leaving ranks have subtracted themselves before the batch was added.
//! * `waiting`: four stacks. The waiters of an epoch are on the stack of its number.
//!
//! At each rank: its queue nodes ([`crate::lock::queue`]).
//!
//! # Turns
//! A rank that arrives in its class's turn, and finds no rank of the other class, is inside. A rank
//! that finds the other class waiting waits too, for the turn after the next one. The first rank of
//! a class that has to wait closes the batch that is inside: it adds their number to `open`. Each
//! rank that leaves while ranks are waiting subtracts 1. The rank that brings `open` to 0, either
//! one of these or the rank that closed the batch, starts the next epoch by one addition. The
//! addition also returns the number of waiters for that epoch, and whether its batch must be closed
//! immediately because the other class waits again. Then the rank wakes the stack. So turns
//! alternate as long as both classes are waiting, and a rank waits for at most two turns: its own
//! class's batch, if that is closed, and one of the other class.
//!
//! When an epoch ends, its stack is empty and receives no more waiters: all ranks that were counted
//! for the epoch have left. Therefore four stacks suffice, and an epoch's waiters are never woken
//! by those of another epoch.

mod enter;
mod leave;

use crate::{
    Result,
    lock::{
        detach::{DetachOnDrop, HasFabric},
        holder_limit,
        nodes::{Above, Patience},
        queue::{HOME_BYTES, Queue},
    },
};
use core::fmt;
use rdma_fabric::{Fabric, GroupMemory, Rank, RemoteWord, Time, provider::Boxed};
use std::sync::Arc;

/// The size of the lock at each rank, in bytes.
pub(crate) use crate::lock::queue::LOCK_BYTES as CLASSES_BYTES;

/// A class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Class {
    Even = 0,
    Odd = 1,
}

impl Class {
    fn other(self) -> Class {
        match self {
            Class::Even => Class::Odd,
            Class::Odd => Class::Even,
        }
    }

    /// Returns the amount that one member of the class adds to `counts`.
    fn one(self) -> u64 {
        1 << (COUNT_BITS * self as u32)
    }
}

const COUNT_BITS: u32 = 30;
const _: () = assert!(holder_limit::MAX_HOLDERS <= 1 << (COUNT_BITS - 2));
const EPOCH: u32 = 2 * COUNT_BITS;
const EPOCHS: u64 = 1 << (u64::BITS - EPOCH);
/// The increment of `counts` to the next epoch. The highest bits wrap.
const NEXT_EPOCH: u64 = 1 << EPOCH;

/// The value of `counts`.
#[derive(Clone, Copy)]
struct Counts(u64);

impl Counts {
    fn of(self, class: Class) -> u64 {
        self.0 >> (COUNT_BITS * class as u32) & ((1 << COUNT_BITS) - 1)
    }

    fn epoch(self) -> u64 {
        self.0 >> EPOCH
    }

    /// Returns the class that has its turn.
    fn turn(self) -> Class {
        if self.epoch().is_multiple_of(2) { Class::Even } else { Class::Odd }
    }
}

/// Returns the epoch that is `after` epochs later than the given one.
fn later(epoch: u64, after: u64) -> u64 {
    (epoch + after) % EPOCHS
}

const STACKS: u64 = 4;
const _: () = assert!(8 * (2 + STACKS) <= HOME_BYTES && EPOCHS.is_multiple_of(STACKS));

/// The part of the lock at one rank.
pub(crate) struct Classes {
    queue: Queue,
    counts: RemoteWord<u64>,
    open: RemoteWord<u64>,
    waiting: [RemoteWord<u64>; STACKS as usize],
}

impl fmt::Debug for Classes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Classes({:?})", self.queue)
    }
}

impl HasFabric for Classes {
    fn fabric(&self) -> &Fabric {
        &self.queue.fabric
    }
}

impl Classes {
    /// Creates this rank's part of the lock, in zeroed memory of [`CLASSES_BYTES`].
    pub(crate) fn over(fabric: &Fabric, memory: GroupMemory, home: Rank) -> Result<Self> {
        let word = |number: u64| fabric.remote_word(memory.at(home, 8 * number)?);
        Ok(Classes {
            counts: word(0)?,
            open: word(1)?,
            waiting: [word(2)?, word(3)?, word(4)?, word(5)?],
            queue: Queue::over(fabric, memory, home, false)?,
        })
    }

    /// Returns the stack of the waiters for an epoch.
    fn stack(&self, epoch: u64) -> &RemoteWord<u64> {
        &self.waiting[(epoch % STACKS) as usize]
    }
}

/// The lock from the view of one class.
pub(crate) struct ClassOf {
    pub(crate) classes: Arc<Classes>,
    pub(crate) class: Class,
}

impl fmt::Debug for ClassOf {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?} of {:?}", self.class, self.classes)
    }
}

impl ClassOf {
    fn acquire(&self, patience: Patience) -> Boxed<'_, Result<bool>> {
        Box::pin(async move {
            self.classes.queue.broken.check()?;
            let class = self.class;
            DetachOnDrop::new(&self.classes, |classes, cancelled| async move {
                classes.queue.broken.answer(classes.enter(class, patience, &cancelled).await)
            })
            .await
        })
    }
}

impl Above for ClassOf {
    fn enter(&self, deadline: Time) -> Boxed<'_, Result<()>> {
        Box::pin(async move { self.acquire(Patience::Before(deadline)).await.map(drop) })
    }

    fn try_enter(&self) -> Boxed<'_, Result<bool>> {
        self.acquire(Patience::None)
    }

    /// Does not flush: the ranks that were inside have already flushed.
    fn leave(&self) -> Boxed<'_, Result<()>> {
        let class = self.class;
        Box::pin(DetachOnDrop::new(&self.classes, move |classes, _| async move {
            classes.queue.broken.answer(classes.leave(class).await)
        }))
    }
}
