//! A rank's side: requests to the simulator.

mod gates;
mod queue;

use crate::{
    JOB_VARIABLE, VERSION,
    wire::{Channel, Received, Reply, Request, Wire},
};
use queue::SteppedQueue;
use rdma_fabric::{
    Existing, FabricError, Rank, Region, RegionKey, Result,
    control_queue::{Queue, QueueSpec},
};
use rustix::{
    fd::FromRawFd as _,
    io::{FdFlags, fcntl_setfd},
    process::{Signal, set_parent_process_death_signal},
};
use std::{
    env, io,
    os::unix::net::UnixStream,
    ptr::NonNull,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicU32, Ordering::Relaxed},
    },
};
use tofu2_shm::VIRTUAL_JOB;

/// This process's rank of a job in virtual time.
#[derive(Clone, Debug)]
pub struct SteppedRank(Arc<Link>);

/// The connection to the simulator.
#[derive(Debug)]
struct Link {
    rank: Rank,
    ranks: usize,
    channel: Mutex<Channel>,
    /// 1 + the number of a rank that was lost, or 0.
    lost: AtomicU32,
}

/// Memory of this process that a queue may register.
#[derive(Debug)]
struct OwnMemory {
    start: u64,
    len: usize,
}

impl SteppedRank {
    /// Returns the rank that a [`Launcher`](crate::Launcher) made this process; `None` if none did. At
    /// most once in a process.
    ///
    /// # Errors
    /// [`FabricError::Setting`] for a value of [`JOB_VARIABLE`] of another version, or a descriptor that
    /// is not open.
    ///
    /// # Safety
    /// No other code of the process uses the descriptor that the variable names.
    #[allow(unsafe_code)]
    pub unsafe fn from_env() -> Result<Option<Self>> {
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
        // SAFETY: the descriptor is this call's alone, by the caller's promise. One that is not open
        // makes every call on it an error.
        let stream = unsafe { UnixStream::from_raw_fd(file) };
        // A launcher that is killed cannot end its ranks. If it has ended already, the first call fails.
        set_parent_process_death_signal(Some(Signal::KILL)).map_err(|_| wrong())?;
        // Programs that the rank starts must not keep the connection open.
        fcntl_setfd(&stream, FdFlags::CLOEXEC).map_err(|_| wrong())?;
        let channel = Mutex::new(Channel::new(stream));
        let link = Link { rank: Rank::new(rank), ranks: ranks as usize, channel, lost: AtomicU32::new(0) };
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
        self.0.lost.load(Relaxed).checked_sub(1).map(Rank::new)
    }

    /// Opens a queue as [`rdma_fabric::control_queue::Queues::open`] does, as context `context` of its
    /// CQ if that is given. Without a number, a session queue takes CQ 1, 2 or 3 and an exclusive queue
    /// CQ 4 to 10.
    ///
    /// # Errors
    /// As [`rdma_fabric::control_queue::Queues::open`], and [`FabricError::System`] if the simulator has
    /// ended.
    pub fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>> {
        let (number, id) = self.0.call(&Request::Open { spec, context })?;
        Ok(Box::new(SteppedQueue::new(self.0.clone(), number, id, spec)))
    }

    /// Returns `len` bytes of the process from `start` on, for [`Queue::register`]. They stay where they
    /// are. An access of the network to bytes that are not mapped ends the job.
    pub fn memory(&self, start: NonNull<u8>, len: usize) -> Region {
        // The key has no meaning here: queues know the memory by their tags.
        let key = RegionKey { index: 0, generation: 0 };
        Region::new(key, len, Some(Existing::Direct), OwnMemory { start: start.addr().get() as u64, len })
    }
}

impl Link {
    /// Sends a request and receives its reply, whose type it determines.
    fn call<T: Wire>(&self, request: &Request) -> Result<T> {
        let mut channel = self.channel.lock().unwrap_or_else(PoisonError::into_inner);
        let failed = |error: io::Error| FabricError::System {
            call: &"reach the simulator",
            errno: error.raw_os_error().unwrap_or(0),
        };
        channel.send(request).map_err(failed)?;
        let Reply { lost, outcome } = match channel.receive().map_err(failed)? {
            Received::Message(reply) => reply,
            Received::Nothing | Received::Closed => {
                return Err(FabricError::System { call: &"reach the simulator, which has ended", errno: 0 });
            }
        };
        if let Some(lost) = lost {
            self.lost.store(lost.number() + 1, Relaxed);
        }
        outcome
    }
}
