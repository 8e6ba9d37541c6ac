//! The queue as its rank holds it.

use super::{
    super::{fabric::VirtFabric, region::Region},
    waits,
};
use rdma_fabric::{
    ControlQueue, Deps, Fabric as _, FabricError, Refused, Region as _, Result, SessionFabric,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueLimits, QueueSpec, Stadd},
};
use std::{cell::RefMut, fmt, future::Future, rc::Rc};

/// An open control queue in virtual time. Dropping it closes it.
pub struct Queue {
    pub(super) fabric: VirtFabric,
    pub(super) slot: u32,
    generation: u32,
    id: QueueId,
    spec: QueueSpec,
}

impl SessionFabric for VirtFabric {
    type Queue = Queue;

    fn queue_limits(&self) -> QueueLimits {
        self.world.core().queue_limits(self.rank)
    }

    fn open_queue(&self, mut spec: QueueSpec) -> Result<Queue> {
        let (slot, generation, id) = self.world.core().open_queue(self.rank, &spec)?;
        (spec.engine, spec.number) = (Some(id.engine()), Some(id.number()));
        Ok(Queue { fabric: self.clone(), slot, generation, id, spec })
    }
}

impl Queue {
    /// The machine, if the queue is open: the job closes what a rank leaves behind when it ends.
    pub(super) fn core(&self) -> Result<RefMut<'_, super::super::core::Core>, QueueError> {
        let core = self.fabric.world.core();
        if core.queues.is_open(self.slot, self.generation) {
            Ok(core)
        } else {
            Err(QueueError::NotOpen { queue: self.id })
        }
    }

    /// Refuses regions of others, and those without a key.
    fn own(&self, region: &Region) -> Result<()> {
        if self.fabric.world.core().memory.is_locked(region.key()) {
            return Err(FabricError::Locked { rank: self.fabric.rank(), region: region.key() });
        }
        if region.is_of(&self.fabric.world, self.fabric.rank) {
            Ok(())
        } else {
            Err(FabricError::Unsupported { feature: "registering another rank's region on a queue" })
        }
    }

    fn closed(&self) -> Option<u64> {
        let mut core = self.core().ok()?;
        Some(core.close_queue(self.slot))
    }
}

impl ControlQueue for Queue {
    type Fabric = VirtFabric;

    fn id(&self) -> QueueId {
        self.id
    }

    fn spec(&self) -> QueueSpec {
        self.spec
    }

    fn register(&self, region: &Region) -> Result<Stadd> {
        self.own(region)?;
        let mut core = self.core()?;
        let limit = core.timing.queues.automatic_tags;
        let stadd = core.queues.space_of(self.slot).register(region.key(), region.len() as u64, limit);
        stadd.ok_or(FabricError::Queue(QueueError::TooManyTags { queue: self.id, limit }))
    }

    fn register_fixed(&self, region: &Region, tag: u8) -> Result<Stadd> {
        self.own(region)?;
        let mut core = self.core()?;
        let tags = core.timing.queues.fixed_tags;
        if u32::from(tag) >= tags {
            let (value, limit) = (tag.into(), u64::from(tags.saturating_sub(1)));
            return Err(QueueError::Limit { queue: self.id, what: "the fixed tag", value, limit }.into());
        }
        let stadd = core.queues.space_of(self.slot).register_fixed(region.key(), region.len() as u64, tag);
        stadd.ok_or(FabricError::Queue(QueueError::TagInUse { queue: self.id, tag }))
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        match self.core()?.queues.space_of(self.slot).set_read_only(at, read_only) {
            true => Ok(()),
            false => Err(QueueError::NoSuchTag { queue: self.id, stadd: at }.into()),
        }
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        match self.core()?.queues.space_of(self.slot).deregister(at) {
            true => Ok(()),
            false => Err(QueueError::NoSuchTag { queue: self.id, stadd: at }.into()),
        }
    }

    fn try_post(&self, posting: Posting) -> Result<(), Refused<()>> {
        let mut core = self.core().map_err(|error| Refused::Failed(error.into(), ()))?;
        core.post_command(self.slot, &posting, None)
    }

    fn post(&self, posting: Posting, deps: Deps<'_>) -> impl Future<Output = Result<()>> {
        waits::post(self, posting, deps)
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        Ok(self.core()?.poll_tcq(self.slot)?)
    }

    fn next_completion(&self, deps: Deps<'_>) -> impl Future<Output = Result<Completion>> {
        waits::completion(self, deps)
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        Ok(self.core()?.poll_mrq(self.slot)?)
    }

    fn next_notice(&self, deps: Deps<'_>) -> impl Future<Output = Result<MrqNotice>> {
        waits::notice(self, deps)
    }

    fn pointers(&self) -> Pointers {
        self.core().map_or(Pointers { read: 0, write: 0, scheduled: 0 }, |core| core.queues.pointers(self.slot))
    }

    fn close(self) -> Result<u64> {
        let trouble = self.core()?.queues.unreported(self.slot);
        let left = self.closed();
        trouble.map_or(Ok(left.unwrap_or(0)), |error| Err(error.into()))
    }
}

impl Drop for Queue {
    fn drop(&mut self) {
        self.closed();
    }
}

impl fmt::Debug for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {} slots)", self.id, self.spec.mode, self.spec.depth)
    }
}

impl Region {
    fn is_of(&self, world: &Rc<super::super::world::World>, rank: u32) -> bool {
        Rc::ptr_eq(self.world(), world) && self.rank() == rank
    }
}
