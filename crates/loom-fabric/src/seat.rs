//! One rank of a job under loom.

use crate::{Access, Job, fabric::Modelled, operation::Operation};
use loom::sync::atomic::Ordering::{self, Relaxed};
use rdma_fabric::{
    Fabric, FabricError, Rank, Region, RegionKey, Result,
    provider::{InFlightTable, OneThread, Place, Slot},
};
use std::{any::Any, rc::Rc, task::Poll};

/// What a test may see and do beside a rank's fabric.
#[derive(Debug)]
pub struct Seat {
    job: Rc<Job>,
    me: Rank,
    pub(crate) under_way: InFlightTable<Operation>,
}

/// Own cells, given back on drop.
#[derive(Debug)]
struct Registered {
    job: Rc<Job>,
    me: Rank,
    key: RegionKey,
}

impl Drop for Registered {
    fn drop(&mut self) {
        self.job.regions().free(self.me, self.key);
    }
}

impl Seat {
    pub(crate) fn new(job: Rc<Job>, me: Rank) -> Self {
        Seat { job, me, under_way: InFlightTable::default() }
    }

    /// That of the rank whose fabric this is.
    ///
    /// # Panics
    /// If it is not what a job under loom has handed to a program.
    pub fn of(fabric: &Fabric) -> &Seat {
        let provider: &dyn Any = fabric.provider();
        let Some(modelled) = provider.downcast_ref::<Modelled>() else { panic!("{fabric:?} is not one under loom") };
        modelled
    }

    /// The mutation "looks after its own only": the rank of `fabric`, which does not carry out what was armed with another handle of it.
    #[must_use]
    pub fn apart(fabric: &Fabric) -> Fabric {
        let seat = Seat::of(fabric);
        Modelled::among(&seat.job, seat.me, fabric.facts().clone())
    }

    pub(crate) fn me(&self) -> Rank {
        self.me
    }

    /// The job, for what only a test may see.
    pub fn job(&self) -> &Job {
        &self.job
    }

    /// Local regions that `make` allocates are data, of which loom reports every race. They take part in no atomic, and nobody waits for them.
    pub fn watched<T>(&self, make: impl FnOnce() -> T) -> T {
        self.job.regions().watch(true);
        let made = make();
        self.job.regions().watch(false);
        made
    }

    /// The order of an access, unless a mutation relaxes it.
    pub(crate) fn order(&self, access: Access, order: Ordering) -> Ordering {
        if (self.job.config.relaxed)(access) { Relaxed } else { order }
    }

    pub(crate) fn region(&self, key: RegionKey, len: usize) -> Region {
        let registered = Registered { job: self.job.clone(), me: self.me, key };
        Region::new(key, len, None, OneThread::new(registered))
    }

    /// The first cell of a place in a region that is still there.
    pub(crate) fn cell(&self, place: &Place) -> Result<usize> {
        self.job.regions().cell(place.addr())
    }

    /// The slot says that it has begun, and which put is the last to wait for, if there is one.
    pub(crate) fn flush(&self, slot: &mut Slot, target: Option<Rank>) -> Poll<Result<()>> {
        if slot.is_empty() {
            let ranks = self.job.config.ranks;
            if let Some(rank) = target.filter(|rank| rank.index() >= ranks) {
                return Poll::Ready(Err(FabricError::NoSuchRank { rank, ranks }));
            }
            slot.0 = [1, self.job.begin_flush(self.me, target), 0, 0];
        }
        if slot.0[1] > 0 && self.job.poll_delivered(self.me, slot.0[1]).is_pending() {
            return Poll::Pending;
        }
        *slot = Slot::default();
        self.job.covered(self.me);
        Poll::Ready(Ok(()))
    }
}
