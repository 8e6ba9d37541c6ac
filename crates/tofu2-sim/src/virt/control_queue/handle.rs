//! The queue as its rank holds it.

use super::super::provider::{Keys, Me, VirtRank};
use rdma_fabric::{
    Deps, FabricError, Rank, Refused, Region, Result,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueLimits, QueueSpec, Stadd},
    provider::{Ended, OneThread, Queue, Queues, Side, Slot},
};
use std::{
    cell::RefMut,
    fmt,
    task::{Context, Poll},
};

/// An open control queue in virtual time. Dropping it closes it.
pub(super) struct Open {
    pub(super) me: Me,
    pub(super) slot: u32,
    generation: u32,
    id: QueueId,
    spec: QueueSpec,
}

/// An open control queue that only its rank's thread may use.
struct VirtQueue(OneThread<Open>);

impl<K: Keys> Queues for VirtRank<K> {
    fn limits(&self) -> QueueLimits {
        let me = &*self.me;
        let core = me.world.core();
        core.queues.limits(&core.machine, me.rank)
    }

    fn open(&self, mut spec: QueueSpec) -> Result<Box<dyn Queue>> {
        let me = &*self.me;
        let (slot, generation, id) = me.world.core().open_queue(me.rank, &spec)?;
        (spec.engine, spec.number) = (Some(id.engine()), Some(id.number()));
        Ok(Box::new(VirtQueue(OneThread::new(Open { me: me.clone(), slot, generation, id, spec }))))
    }
}

impl Open {
    /// The machine, if the queue is open: the job closes what a rank leaves behind when it ends.
    pub(super) fn core(&self) -> Result<RefMut<'_, super::super::core::Core>, QueueError> {
        let core = self.me.world.core();
        if core.queues.is_open(self.slot, self.generation) {
            Ok(core)
        } else {
            Err(QueueError::NotOpen { queue: self.id })
        }
    }

    /// Refuses regions of others, and those without a key.
    fn own(&self, region: &Region) -> Result<()> {
        if self.me.world.core().memory.is_locked(region.key()) {
            return Err(FabricError::Locked { rank: Rank::new(self.me.rank), region: region.key() });
        }
        if self.me.owns(region) {
            Ok(())
        } else {
            Err(FabricError::Unsupported { feature: &"registering another rank's region on a queue" })
        }
    }

    fn register(&self, region: &Region) -> Result<Stadd> {
        self.own(region)?;
        let mut core = self.core()?;
        let limit = core.machine.timing.queues.automatic_tags;
        let stadd = core.queues.space_of(self.slot).register(region.key(), region.len() as u64, limit);
        stadd.ok_or_else(|| QueueError::TooManyTags { queue: self.id, limit }.into())
    }

    fn register_fixed(&self, region: &Region, tag: u8) -> Result<Stadd> {
        self.own(region)?;
        let mut core = self.core()?;
        let tags = core.machine.timing.queues.fixed_tags;
        if u32::from(tag) >= tags {
            let (value, limit) = (tag.into(), u64::from(tags.saturating_sub(1)));
            return Err(QueueError::Limit { queue: self.id, what: "the fixed tag", value, limit }.into());
        }
        let stadd = core.queues.space_of(self.slot).register_fixed(region.key(), region.len() as u64, tag);
        stadd.ok_or_else(|| QueueError::TagInUse { queue: self.id, tag }.into())
    }

    fn closed(&self) -> Option<u64> {
        let mut core = self.core().ok()?;
        Some(core.close_queue(self.slot))
    }
}

impl Drop for Open {
    fn drop(&mut self) {
        self.closed();
    }
}

impl Queue for VirtQueue {
    fn id(&self) -> QueueId {
        self.0.id
    }

    fn spec(&self) -> QueueSpec {
        self.0.spec
    }

    fn pointers(&self) -> Pointers {
        let open = &*self.0;
        open.core().map_or(Pointers { read: 0, write: 0, scheduled: 0 }, |core| core.queues.pointers(open.slot))
    }

    fn register(&self, region: &Region, fixed: Option<u8>) -> Result<Stadd> {
        match fixed {
            None => self.0.register(region),
            Some(tag) => self.0.register_fixed(region, tag),
        }
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        let open = &*self.0;
        match open.core()?.queues.space_of(open.slot).set_read_only(at, read_only) {
            true => Ok(()),
            false => Err(QueueError::NoSuchTag { queue: open.id, stadd: at }.into()),
        }
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        let open = &*self.0;
        match open.core()?.queues.space_of(open.slot).deregister(at) {
            true => Ok(()),
            false => Err(QueueError::NoSuchTag { queue: open.id, stadd: at }.into()),
        }
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let open = &*self.0;
        let mut core = match open.core() {
            Ok(core) => core,
            Err(error) => return (0, Err(Refused::Failed(error.into(), ()))),
        };
        for (posted, posting) in postings.iter().enumerate() {
            if let Err(refused) = core.post_command(open.slot, posting, None) {
                return (posted, Err(refused));
            }
        }
        (postings.len(), Ok(()))
    }

    fn poll_post(&self, slot: &mut Slot, posting: &Posting, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_post(slot, posting, deps, cx)
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        let open = &*self.0;
        let mut core = open.core()?;
        let now = core.now_of(open.me.rank);
        Ok(core.queues.get_mut(open.slot).poll_tcq(now)?)
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        let open = &*self.0;
        Ok(open.core()?.queues.get_mut(open.slot).poll_mrq()?)
    }

    fn poll_wait(&self, slot: &mut Slot, side: Side, deps: Deps<'_>, cx: &mut Context<'_>) -> Poll<Result<()>> {
        self.0.poll_wait(slot, side, deps, cx)
    }

    fn end_wait(&self, slot: &mut Slot, _: Option<Side>, _: Ended) {
        self.0.end_wait(slot);
    }

    fn close(self: Box<Self>) -> Result<u64> {
        let open = &*self.0;
        let unreported = open.core()?.queues.unreported(open.slot);
        let left = open.closed();
        unreported.map_or(Ok(left.unwrap_or(0)), |error| Err(error.into()))
    }
}

impl fmt::Debug for VirtQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({:?}, {} slots)", self.0.id, self.0.spec.mode, self.0.spec.depth)
    }
}
