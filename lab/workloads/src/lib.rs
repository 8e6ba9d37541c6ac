//! Workloads, as programs over any fabric: the papers' own, and
//! [those of the lock literature](locks).
//!
//! Elapsed times are picoseconds of the fabric's clock: virtual time on the simulator, wall-clock
//! time elsewhere.

#![forbid(unsafe_code)]

pub mod dynamics;
mod exchange;
mod global;
pub mod hashtable;
mod lock;
pub mod locks;
pub mod machine;
pub mod messages;
pub mod reflects;
mod stencil;

pub use exchange::{Exchange, Kept, exchanges};
pub use global::{Disturbance, Done, Target, disturbed_adds, entry_states, global_adds, plain_adds};
pub use lock::{FetchAdd, reader_pairs, single_fetch_adds, window_pairs};
pub use lock::{WAVES, Wave, WaveLock, wave};
pub use stencil::{Stencil, Tile, stencil_fence, stencil_lock_all, with_fences, with_lock_all};

use rdma_fabric::{Fabric, Group, ProgramResult, Rank, Time};
use std::{future::Future, pin::Pin};

/// One rank's part in a workload, boxed so that it is compiled once, in this crate, for all
/// callers. Virtual time does not depend on it.
pub type RankFuture<Out> = Pin<Box<dyn Future<Output = ProgramResult<Out>>>>;

/// The common beginning and end of the ranks of a workload.
///
/// Both kinds prevent the home rank, whose memory the other ranks access, from deregistering it too
/// early.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Together {
    /// A barrier before and after: works on every fabric, costs O(log n) operations and a control
    /// block per rank.
    Barrier,
    /// By the clock, which the ranks of a simulated job share: all ranks begin at `start`; the home
    /// stays until `end`.
    Clock {
        /// The time at which the measured part begins. Set-up must have ended by then.
        start: Time,
        /// No rank may be busy after this.
        end: Time,
    },
}

/// A workload was too late for its [`Together::Clock`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{rank} was {what} at {at}, later than the workload's {limit}")]
pub struct Late {
    rank: Rank,
    what: &'static str,
    at: Time,
    limit: Time,
}

/// The state of a rank between the beginning and the end.
pub(crate) struct Inside {
    fabric: Fabric,
    until: Until,
}

enum Until {
    // Boxed: a million ranks that use the clock should not pay for the group.
    All(Box<Group>),
    Clock(Time),
}

impl Together {
    pub(crate) async fn enter(self, fabric: &Fabric) -> ProgramResult<Inside> {
        let until = match self {
            Together::Barrier => {
                let mut world = Box::new(Box::pin(Group::world(fabric)).await?);
                Box::pin(world.barrier()).await?;
                Until::All(world)
            }
            Together::Clock { start, end } => {
                in_time(fabric, "set up", start)?;
                fabric.sleep_until(start).await;
                Until::Clock(end)
            }
        };
        Ok(Inside { fabric: fabric.clone(), until })
    }
}

impl Inside {
    /// Waits until all other ranks have finished using this rank's memory.
    pub(crate) async fn stay(self) -> ProgramResult<()> {
        let me = self.fabric.rank();
        self.leave(me).await
    }

    /// Waits, if this is the home, until all other ranks have finished using its memory.
    pub(crate) async fn leave(self, home: Rank) -> ProgramResult<()> {
        match self.until {
            Until::All(mut world) => Box::pin(world.barrier()).await?,
            Until::Clock(end) => {
                in_time(&self.fabric, "done", end)?;
                if self.fabric.rank() == home {
                    self.fabric.sleep_until(end).await;
                }
            }
        }
        Ok(())
    }
}

fn in_time(fabric: &Fabric, what: &'static str, limit: Time) -> Result<(), Late> {
    let at = fabric.now();
    if at <= limit { Ok(()) } else { Err(Late { rank: fabric.rank(), what, at, limit }) }
}
