//! A rank's side: requests to the simulator.

mod deferred;
mod fabric;
mod gates;
mod link;
mod parking;
mod provider;
mod queue;
mod regions;

use crate::{
    JOB_VARIABLE, TURNS, VERSION,
    wire::{Channel, ParkUntil, Request},
};
use core::future::poll_fn;
use link::Link;
use queue::SteppedQueue;
use rdma_fabric::{
    Existing, FabricError, Program, ProgramResult, Rank, Region, RegionKey, Result,
    control_queue::{Queue, QueueSpec},
};
use rustix::{
    fd::FromRawFd as _,
    io::{FdFlags, fcntl_setfd},
    process::{Signal, set_parent_process_death_signal},
};
use std::{
    env,
    os::unix::net::UnixStream,
    ptr::NonNull,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    task::Poll,
};
use tofu2_shm::{VIRTUAL_JOB, block_on};

/// This process's rank of a job in virtual time.
#[derive(Clone, Debug)]
pub struct SteppedRank(Arc<Link>);

/// Returns whether a [`Launcher`](crate::Launcher) has made this process a rank.
pub fn is_rank() -> bool {
    env::var(JOB_VARIABLE).is_ok_and(|text| text.split(' ').next() == Some(VIRTUAL_JOB))
}

/// Memory of this process that a queue may register.
#[derive(Debug)]
struct OwnMemory {
    start: u64,
    len: usize,
}

impl SteppedRank {
    /// Returns the rank that a [`Launcher`](crate::Launcher) made this process; `None` if none did.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for a value of [`JOB_VARIABLE`] of another version, or a descriptor that
    /// is not open; [`FabricError::RankTaken`] if this was called before.
    #[allow(unsafe_code)]
    pub fn from_env() -> Result<Option<Self>> {
        static TAKEN: AtomicBool = AtomicBool::new(false);
        let Ok(text) = env::var(JOB_VARIABLE) else { return Ok(None) };
        let Some((VIRTUAL_JOB, numbers)) = text.split_once(' ') else { return Ok(None) };
        let wrong =
            || FabricError::setting(JOB_VARIABLE, format!("`{text}` is not that of `onesided run` of this version"));
        let numbers = numbers.strip_prefix(VERSION).ok_or_else(wrong)?;
        let number = |name: &str| {
            let found = numbers.split(' ').find_map(|part| part.strip_prefix(name)?.parse::<u32>().ok());
            found.ok_or_else(wrong)
        };
        let (rank, ranks, file) = (number("rank=")?, number("ranks=")?, number("file=")?);
        let file = i32::try_from(file).map_err(|_| wrong())?;
        if TAKEN.swap(true, Relaxed) {
            return Err(FabricError::RankTaken { rank: Rank::new(rank) });
        }
        // SAFETY: the launcher opened the descriptor for the rank alone, and named it to no other code of the
        // process; the first call takes it. One that is not open makes every call on it an error.
        let stream = unsafe { UnixStream::from_raw_fd(file) };
        // A launcher that is killed cannot end its ranks. If it has ended already, the first call fails.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|_| wrong())?;
        // Programs that the rank starts must not keep the connection open.
        fcntl_setfd(&stream, FdFlags::CLOEXEC).map_err(|_| wrong())?;
        let link = Link::new(Rank::new(rank), ranks as usize, Channel::new(stream));
        Ok(Some(SteppedRank(Arc::new(link))))
    }

    /// Returns the rank's number.
    pub fn rank(&self) -> Rank {
        self.0.rank
    }

    /// Returns the number of ranks of the job.
    pub fn ranks(&self) -> usize {
        self.0.ranks
    }

    /// Returns a rank that was lost according to the last reply, if any was.
    #[inline]
    pub fn lost(&self) -> Option<Rank> {
        self.0.lost()
    }

    /// Opens a queue as [`rdma_fabric::control_queue::Queues::open`] does, as context `context` of its
    /// CQ if that is given. Without a number, a session queue takes CQ 1, 2 or 3 and an exclusive queue
    /// CQ 4 to 10.
    ///
    /// # Errors
    /// As [`rdma_fabric::control_queue::Queues::open`], and [`FabricError::System`] if the simulator has
    /// ended.
    pub fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>> {
        self.open_queue(spec, context, true)
    }

    fn open_queue(&self, spec: QueueSpec, context: Option<u8>, of_library: bool) -> Result<Box<dyn Queue>> {
        let (number, id) = self.0.call(&Request::Open { spec, context, of_library })?;
        Ok(Box::new(SteppedQueue::new(self.0.clone(), number, id, spec)))
    }

    /// Returns `len` bytes of the process from `start` on, for [`Queue::register`]. They stay where they
    /// are. An access of the network to bytes that are not mapped ends the job.
    pub fn memory(&self, start: NonNull<u8>, len: usize) -> Region {
        // The key has no meaning here: queues know the memory by their tags.
        let key = RegionKey { index: 0, generation: 0 };
        Region::new(key, len, Some(Existing::Direct), OwnMemory { start: start.addr().get() as u64, len })
    }

    /// Runs a program as this rank.
    ///
    /// # Errors
    /// The program's; those of [`SteppedRank::fabric`].
    pub fn run<P: Program>(&self, program: &P) -> ProgramResult<P::Out> {
        let fabric = self.fabric()?;
        let ended = block_on(program.run(fabric));
        // What dropped futures have left is done before the rank ends.
        block_on(poll_fn(|cx| match parking::has_detached() && self.0.listen(cx).is_ok() {
            true => Poll::Pending,
            false => Poll::Ready(()),
        }));
        ended
    }

    /// Lets the virtual time pass that a call of a library takes that finds nothing, the `misses`-th in a
    /// row. From the third on, it also waits for whatever happens to the rank next, for at most 1 ms; after
    /// some thousands without a limit. For futures that [`tofu2_shm::block_on`] runs, and that make progress with
    /// other work of the rank in the meantime.
    pub fn pause(&self, misses: u32) -> impl Future<Output = ()> {
        let mut left =
            [Some(ParkUntil::Turn), (misses > TURNS).then_some(ParkUntil::News { misses })].into_iter().flatten();
        let mut parks = None;
        poll_fn(move |cx| {
            if parking::is_noop(cx) {
                return Poll::Pending;
            }
            let mut deferred = self.0.deferred();
            if parks != Some(deferred.parks()) {
                let Some(until) = left.next() else { return Poll::Ready(()) };
                parks = Some(deferred.parks());
                deferred.pause(until);
            }
            drop(deferred);
            // Without a thread that parks, no time passes.
            if self.0.listen(cx).is_ok() { Poll::Pending } else { Poll::Ready(()) }
        })
    }
}
