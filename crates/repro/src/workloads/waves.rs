//! Everybody wants all of a window at once: `lock_all`, and when all have it, `unlock_all`.

use super::Together;
use core::fmt;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{
    Guard, RmaLock,
    locks::{Aggregated, AggregatedOptions, Levels, PackedLock, RpLock},
};

/// Where the lock lives.
const HOME: Rank = Rank::new(0);

/// How many units of a level share a word of the next.
const RADIX: u32 = 64;

/// How the ranks of a wave come to the home.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Form {
    /// Each for itself, as in the paper.
    Flat,
    /// The same with the packed home word.
    Packed,
    /// The first and the last of each node.
    Nodes,
    /// The first and the last of each group of nodes, of groups of those, and so on.
    Tree,
}

impl Form {
    /// All of them.
    pub const ALL: [Form; 4] = [Form::Flat, Form::Packed, Form::Nodes, Form::Tree];

    /// The name in tables.
    pub const fn name(self) -> &'static str {
        match self {
            Form::Flat => "flat",
            Form::Packed => "packed",
            Form::Nodes => "by node",
            Form::Tree => "tree of 64",
        }
    }
}

impl fmt::Display for Form {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

/// How long one rank's part of a wave took, in picoseconds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Wave {
    /// To take the lock shared.
    pub lock: u64,
    /// To let go of it.
    pub unlock: u64,
}

/// All ranks lock at once, hold the lock until `unlock` has come, and unlock at once.
pub async fn wave(fabric: Fabric, form: Form, together: Together, unlock: Time) -> ProgramResult<Wave> {
    let levels = |levels| AggregatedOptions { levels, lock: () };
    match form {
        Form::Flat => Box::pin(pass::<RpLock>(fabric, (), together, unlock)).await,
        Form::Packed => Box::pin(pass::<PackedLock>(fabric, (), together, unlock)).await,
        Form::Nodes => Box::pin(pass::<Aggregated<RpLock>>(fabric, levels(Levels::Nodes), together, unlock)).await,
        Form::Tree => {
            let levels = levels(Levels::Tree { radix: RADIX });
            Box::pin(pass::<Aggregated<RpLock>>(fabric, levels, together, unlock)).await
        }
    }
}

async fn pass<L: RmaLock>(
    fabric: Fabric,
    options: L::Options,
    together: Together,
    unlock: Time,
) -> ProgramResult<Wave> {
    let lock = L::symmetric_with(&fabric, HOME, options).await?;
    let inside = together.enter(&fabric).await?;
    let begun = fabric.now();
    let guard = lock.read().await?;
    let lock_took = fabric.now().picos_since(begun);
    fabric.sleep_until(unlock).await;
    let begun = fabric.now();
    guard.release().await?;
    let unlock_took = fabric.now().picos_since(begun);
    // Others pass words on to this rank's until all are out.
    inside.stay().await?;
    Ok(Wave { lock: lock_took, unlock: unlock_took })
}
