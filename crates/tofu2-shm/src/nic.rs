//! The network interface of a rank, in more detail than the contract has: for bindings whose programs
//! know the hardware. Linux only.

use crate::{
    QueueMachine,
    endpoint::Endpoint,
    queues::{
        executor::Executor,
        format::descriptor::{self, Descriptor},
    },
};
use core::ptr::NonNull;
use rdma_fabric::{
    Deps, Fabric, FabricError, Rank, Region, Result,
    control_queue::{Posting, Queue, QueueMode, QueueSpec},
};

pub use crate::memory::program::ShareError;

/// The network interface of a rank whose process shares a memory file with the other ranks.
#[derive(Clone, Debug)]
pub struct Nic(Endpoint);

impl Nic {
    /// Returns the interface of `fabric`'s rank; `None` if that is not a rank over shared memory.
    pub fn of(fabric: &Fabric) -> Option<Self> {
        Endpoint::of(fabric).cloned().map(Nic)
    }

    /// Makes the rank a node of its own, whose control queues are those of `machine`: it shares them
    /// with no other rank. Before it opens any.
    ///
    /// # Errors
    /// [`FabricError::Unsupported`] if the rank has opened a queue, or is a node with another machine.
    pub fn become_node(&self, machine: QueueMachine) -> Result<()> {
        let refused = FabricError::Unsupported { feature: &"another machine after queues were opened" };
        self.0.own_queues().have_own(machine).then_some(()).ok_or(refused)
    }

    /// Opens a queue as [`rdma_fabric::control_queue::Queues::open`] does, as context `context` of its
    /// CQ if that is given. A command of a queue that is not in session mode is refused as if there
    /// were no room ([`rdma_fabric::Refused::Full`]) while the message receive queue of its target is
    /// full: a NIC's peer is not descheduled, a process is. The commands of a session queue are
    /// executed by a thread of their own if no call does it.
    ///
    /// # Errors
    /// As [`rdma_fabric::control_queue::Queues::open`].
    pub fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>> {
        if spec.mode == QueueMode::Session {
            self.0.start_progress()?;
        }
        Ok(Box::new(self.0.open_queue(spec, context)?.patient()))
    }

    /// Registers `len` bytes of the program's memory from `start` on: its own arrays, blocks of
    /// `malloc`, the stack. Its pages are replaced by pages that all ranks share, with the same bytes
    /// at the same addresses, so that other ranks reach them like allocated memory, with atomics. They
    /// stay shared when the region ends. A child that the process forks later shares these pages with
    /// it, instead of receiving a copy.
    ///
    /// If the process has other threads, those that write to a page while it is being replaced wait;
    /// a handler of SIGSEGV, installed then, makes them.
    ///
    /// # Errors
    /// [`ShareError`]; [`FabricError::Unsupported`] for a rank in private memory.
    ///
    /// # Safety
    /// Until the region ends, the bytes stay mapped, and the program expects other ranks to read and
    /// write them.
    #[allow(unsafe_code)]
    pub unsafe fn share(&self, start: NonNull<u8>, len: usize) -> Result<Region, ShareError> {
        // SAFETY: the caller's promise.
        unsafe { self.0.share(start, len) }
    }

    /// Returns the first rank found that is lost, if any is.
    pub fn lost(&self) -> Option<Rank> {
        match self.0.job().outlook(self.0.me(), &Deps::All) {
            Err(FabricError::PeerLost { rank } | FabricError::Aborted { rank, .. }) => Some(rank),
            _ => None,
        }
    }

    /// Returns a number that changes whenever the state of any rank of the job does.
    #[inline]
    pub fn changes(&self) -> u64 {
        let Executor { job, .. } = self.0.executor();
        job.control.changes()
    }

    /// Returns whether the job has more ranks than CPUs.
    pub fn is_oversubscribed(&self) -> bool {
        self.0.job().oversubscribed
    }
}

/// Bytes of a slot of a transmit order queue.
pub const SLOT_BYTES: usize = 32;

/// Encodes one command of `posting`, which has one block, as the slots of a transmit order queue.
/// [`Posting::tag`] is not part of them.
pub fn encode(posting: &Posting) -> ([u64; 4], Option<[u64; 4]>) {
    let Descriptor { first, second } = descriptor::encode(posting);
    (first, second)
}

/// Returns the number of slots of the command that starts with `first`; `None` if no command does.
pub fn slots(first: &[u64; 4]) -> Option<u64> {
    descriptor::slots(first)
}

/// Inverts [`encode`]; `None` for slots that it never returns.
pub fn decode(first: [u64; 4], second: Option<[u64; 4]>) -> Option<Posting> {
    descriptor::decode(&Descriptor { first, second })
}
