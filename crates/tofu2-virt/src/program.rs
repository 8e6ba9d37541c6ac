//! Ranks whose programs run outside the simulator, for a crate that steps them: their memory, their
//! control queues with chosen contexts, and a wait for anything that concerns the rank.

use super::{
    control_queue,
    provider::{Me, VirtRank},
    ranks::Watched,
};
use core::{any::Any, fmt, future::poll_fn, task::Poll, time::Duration};
use rdma_fabric::{
    Fabric, Rank, Region, RegionKey, RemoteAddr, Result, Time,
    control_queue::{Queue, QueueSpec},
    provider::OneThread,
};

/// Memory that a rank registers and that the simulator does not store: a buffer of another process.
///
/// Every access lies inside the length with which it was registered. An access that fails must read as
/// zeros or write nothing; the implementation reports it by other means.
pub trait ProgramMemory: fmt::Debug {
    /// Copies the bytes from `at` on into `into`.
    fn read(&self, at: u64, into: &mut [u8]);
    /// Copies `from` to the bytes from `at` on.
    fn write(&self, at: u64, from: &[u8]);
}

/// A simulated rank, in more detail than the contract has.
pub struct ProgramRank(OneThread<Me>);

impl fmt::Debug for ProgramRank {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} in virtual time", Rank::new(self.0.rank))
    }
}

impl ProgramRank {
    /// Returns the rank of `fabric`; `None` if that is not the bare fabric of a simulated rank.
    pub fn of(fabric: &Fabric) -> Option<Self> {
        let provider: &dyn Any = fabric.provider();
        let VirtRank { me, .. } = provider.downcast_ref::<VirtRank>()?;
        Some(ProgramRank(OneThread::new((**me).clone())))
    }

    /// Registers `bytes` bytes of memory. Takes no virtual time.
    ///
    /// # Errors
    /// As [`Fabric::alloc`](rdma_fabric::Fabric::alloc).
    pub fn register(&self, memory: Box<dyn ProgramMemory>, bytes: usize) -> Result<Region> {
        self.0.register_program(memory, bytes)
    }

    /// Allocates `bytes` bytes as [`Fabric::alloc_symmetric`](rdma_fabric::Fabric::alloc_symmetric) does,
    /// in `memory`.
    ///
    /// # Errors
    /// As [`Fabric::alloc_symmetric`](rdma_fabric::Fabric::alloc_symmetric).
    pub fn register_symmetric(&self, memory: Box<dyn ProgramMemory>, bytes: usize) -> Result<Region> {
        self.0.join_program(memory, bytes)
    }

    /// Returns the length of a region in bytes.
    ///
    /// # Errors
    /// As [`Fabric::remote_span`](rdma_fabric::Fabric::remote_span) for a key that is not in use.
    pub fn region_len(&self, rank: Rank, region: RegionKey) -> Result<usize> {
        let core = self.0.world.core();
        core.locate(RemoteAddr { rank, region, offset: 0 }, 0, 1, |_| false)?;
        core.memory.region_len(rank, region)
    }

    /// Opens a queue as [`rdma_fabric::control_queue::Queues::open`] does, as context `context` of its
    /// CQ if that is given.
    ///
    /// # Errors
    /// As [`rdma_fabric::control_queue::Queues::open`].
    pub fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>> {
        control_queue::open(&self.0, spec, context)
    }

    /// Returns a rank that was lost, if any was.
    pub fn lost(&self) -> Option<Rank> {
        self.0.world.core().ranks.first_lost().map(Rank::new)
    }

    /// Returns the time of one turn of a program's polling loop.
    pub fn turn(&self) -> Duration {
        Duration::from_nanos(self.0.world.core().machine.timing.yield_ / 1000)
    }

    /// Waits until a report of one of the rank's queues arrives, the network writes to its memory, or
    /// a rank is lost; or until `until`, if that is given. May end early.
    pub fn news(&self, until: Option<Time>) -> impl Future<Output = ()> + use<> {
        let me = (*self.0).clone();
        let mut wait = NewsWait { me, id: None, until: u64::MAX };
        poll_fn(move |cx| {
            let NewsWait { me, id, until: end } = &mut wait;
            let lane = me.lane();
            let mut core = me.world.core();
            let now = core.now_of(lane);
            match *id {
                None => {
                    let queues = core.ranks.queues(me.rank).clone();
                    let visible = core.queues.next_completion(&queues, now).unwrap_or(u64::MAX);
                    *end = visible.min(until.map_or(u64::MAX, Time::as_picos));
                    if now >= *end {
                        return Poll::Ready(());
                    }
                    *id = Some((core.ranks.watch(lane, Watched::News), core.ranks.first_lost()));
                    if *end != u64::MAX {
                        core.clock.wake_at(lane, *end);
                    }
                }
                Some((id, lost)) => {
                    if now >= *end || core.ranks.is_notified(lane, id) || core.ranks.first_lost() != lost {
                        return Poll::Ready(());
                    }
                }
            }
            drop(core);
            me.world.listen(lane, cx);
            Poll::Pending
        })
    }
}

/// A wait for news. Dropping it ends the wait.
struct NewsWait {
    me: Me,
    /// The number of the registered wait, and the rank that was lost before.
    id: Option<(u32, Option<u32>)>,
    /// In picoseconds.
    until: u64,
}

impl Drop for NewsWait {
    fn drop(&mut self) {
        if let Some((id, _)) = self.id {
            self.me.world.core().ranks.unwatch(self.me.lane(), id);
        }
    }
}
