//! The handles by which ranks hold their queues, and the waits for queues.

use super::{
    super::{
        core::Core,
        provider::{Keys, Me, VirtRank},
        ranks::{QueueReport, Watched},
    },
    tags::Space,
};
use rdma_fabric::{
    Deps, FabricError, Rank, Refused, Region, Result,
    control_queue::{Completion, MrqNotice, Pointers, Posting, QueueError, QueueId, QueueLimits, QueueSpec, Stadd},
    provider::{Ended, OneThread, Queue, QueueSide, Queues, WaitState},
};
use std::{
    cell::RefMut,
    fmt, mem,
    task::{Context, Poll},
};

/// The state of a wait between polls.
struct WaitMemory<'a> {
    /// The number of the registered wait, plus 1.
    wait: &'a mut u64,
    /// 1 if the wait seemed hopeless at its last check.
    warned: &'a mut u64,
    /// The ticket in the line of waiters for room, plus 1.
    ticket: &'a mut u64,
    /// The time at which the rank will be woken, plus 1.
    timer: &'a mut u64,
}

impl<'a> WaitMemory<'a> {
    fn of(wait_state: &'a mut WaitState) -> Self {
        let WaitState([wait, warned, ticket, timer]) = wait_state;
        WaitMemory { wait, warned, ticket, timer }
    }
}

/// An open control queue in virtual time. Dropping it closes the queue.
struct Open {
    me: Me,
    slot: u32,
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

    fn open(&self, spec: QueueSpec) -> Result<Box<dyn Queue>> {
        open(&self.me, spec, None)
    }
}

/// Opens a queue of a rank, as context `context` of its CQ if that is given.
pub(crate) fn open(me: &Me, mut spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>> {
    let (slot, generation, id) = me.world.core().open_queue(me.rank, &spec, context)?;
    (spec.engine, spec.number) = (Some(id.engine()), Some(id.number()));
    Ok(Box::new(VirtQueue(OneThread::new(Open { me: me.clone(), slot, generation, id, spec }))))
}

impl Open {
    /// Borrows the machine, if the queue is open: when a rank ends, the job closes the queues that
    /// it leaves behind.
    fn core(&self) -> Result<RefMut<'_, Core>, QueueError> {
        let core = self.me.world.core();
        if core.queues.is_open(self.slot, self.generation) { Ok(core) } else { Err(QueueError::NotOpen(self.id)) }
    }

    /// Rejects other ranks' regions, and protected regions.
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

    /// Registers the wait, unless it can't continue. It fails with `PeersLeft` only at the second
    /// check: other parts of the same task may be about to post.
    fn advance(
        &self,
        core: &mut Core,
        lane: u32,
        memory: &mut WaitMemory<'_>,
        want: QueueReport,
        deps: Deps<'_>,
    ) -> Result<()> {
        match self.me.advance(core, lane, memory.wait, Watched::Queue(self.slot, want), deps) {
            Err(FabricError::PeersLeft) if mem::replace(memory.warned, 1) == 0 => {
                let now = core.clock.now();
                core.clock.wake_at(lane, now);
                Ok(())
            }
            Ok(()) => {
                *memory.warned = 0;
                Ok(())
            }
            error => error,
        }
    }

    /// Changes the registration under an address's tag, if the tag is in use.
    fn change_tag(&self, at: Stadd, change: impl FnOnce(&mut Space) -> bool) -> Result<()> {
        let known = change(self.core()?.queues.space_of(self.slot));
        if known { Ok(()) } else { Err(QueueError::NoSuchTag { queue: self.id, stadd: at }.into()) }
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
        let open = &*self.0;
        open.own(region)?;
        let mut core = open.core()?;
        let (automatic, tags) = (core.machine.timing.queues.automatic_tags, core.machine.timing.queues.fixed_tags);
        let (key, len, space) = (region.key(), region.len() as u64, core.queues.space_of(open.slot));
        let queue = open.id;
        Ok(match fixed {
            None => space.register(key, len, automatic).ok_or(QueueError::TooManyTags { queue, limit: automatic })?,
            Some(tag) if u32::from(tag) >= tags => {
                let (value, limit) = (tag.into(), u64::from(tags.saturating_sub(1)));
                return Err(QueueError::Limit { queue, what: "the fixed tag", value, limit }.into());
            }
            Some(tag) => space.register_fixed(key, len, tag).ok_or(QueueError::TagInUse { queue, tag })?,
        })
    }

    fn set_read_only(&self, at: Stadd, read_only: bool) -> Result<()> {
        self.0.change_tag(at, |space| space.set_read_only(at, read_only))
    }

    fn deregister(&self, at: Stadd) -> Result<()> {
        self.0.change_tag(at, |space| space.deregister(at))
    }

    fn try_post(&self, postings: &[Posting]) -> (usize, Result<(), Refused<()>>) {
        let open = &*self.0;
        let lane = open.me.lane();
        let mut core = match open.core() {
            Ok(core) => core,
            Err(error) => return (0, Err(Refused::Failed(error.into(), ()))),
        };
        for (posted, posting) in postings.iter().enumerate() {
            if let Err(refused) = core.post_command(open.slot, posting, None, lane) {
                return (posted, Err(refused));
            }
        }
        (postings.len(), Ok(()))
    }

    fn poll_post(
        &self,
        wait_state: &mut WaitState,
        posting: &Posting,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let open = &*self.0;
        let mut memory = WaitMemory::of(wait_state);
        let lane = open.me.lane();
        let mut core = open.core()?;
        match core.post_command(open.slot, posting, memory.ticket.checked_sub(1), lane) {
            Ok(()) => return Poll::Ready(Ok(())),
            Err(Refused::Failed(error, ())) => return Poll::Ready(Err(error)),
            Err(Refused::Full(())) => {}
        }
        if *memory.ticket == 0 {
            let ticket = core.ranks.next_ticket();
            core.queues.get_mut(open.slot).line.push_back(ticket);
            *memory.ticket = ticket + 1;
        }
        match open.advance(&mut core, lane, &mut memory, QueueReport::Room, deps) {
            // A job's only rank must drain its queues itself; if it doesn't, that is reported as a
            // deadlock.
            Err(FabricError::PeersLeft) if core.ranks.len() == 1 => {}
            gone_on => gone_on?,
        }
        drop(core);
        open.me.world.listen(lane, cx);
        Poll::Pending
    }

    fn poll_tcq(&self) -> Result<Option<Completion>> {
        let open = &*self.0;
        let lane = open.me.lane();
        let mut core = open.core()?;
        let now = core.now_of(lane);
        Ok(core.queues.get_mut(open.slot).poll_tcq(now)?)
    }

    fn poll_mrq(&self) -> Result<Option<MrqNotice>> {
        let open = &*self.0;
        Ok(open.core()?.queues.get_mut(open.slot).poll_mrq()?)
    }

    fn poll_wait(
        &self,
        wait_state: &mut WaitState,
        side: QueueSide,
        deps: Deps<'_>,
        cx: &mut Context<'_>,
    ) -> Poll<Result<()>> {
        let open = &*self.0;
        let mut memory = WaitMemory::of(wait_state);
        let lane = open.me.lane();
        let mut core = open.core()?;
        let want = match side {
            QueueSide::Completion => QueueReport::Completion,
            QueueSide::Notice => QueueReport::Notice,
        };
        match core.queues.get(open.slot).completion_at().filter(|_| side == QueueSide::Completion) {
            // The completion will become visible no matter what happens to the peers.
            Some(at) => {
                let until = at.saturating_add(1);
                if mem::replace(memory.timer, until) != until {
                    core.clock.wake_at(lane, at);
                }
            }
            None => open.advance(&mut core, lane, &mut memory, want, deps)?,
        }
        drop(core);
        open.me.world.listen(lane, cx);
        Poll::Pending
    }

    fn end_wait(&self, wait_state: &mut WaitState, _: Option<QueueSide>, _: Ended) {
        let open = &*self.0;
        let memory = WaitMemory::of(wait_state);
        if let Some(ticket) = memory.ticket.checked_sub(1)
            && let Ok(mut core) = open.core()
        {
            core.queues.get_mut(open.slot).line.retain(|other| *other != ticket);
            // The next in line may find room.
            core.ranks.wake_all_of(open.me.rank);
        }
        open.me.unwatch(&mut open.me.world.core(), memory.wait);
        *wait_state = WaitState::default();
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
