//! The machine below: shared memory between processes, or a simulator in virtual time.

#![allow(unsafe_code)]

use core::ptr::NonNull;
use onesided::Backend;
use rdma_fabric::{
    Fabric, FabricError, Rank, Region,
    barrier::BarrierUnit,
    control_queue::{Queue, QueueSpec},
};
use tofu2_shm::{
    QueueMachine,
    nic::{Nic, ShareError},
};
use tofu2_stepped::SteppedRank;

/// What the rank of this process runs on.
#[derive(Debug)]
pub(crate) enum Machine {
    Shared { fabric: Fabric, nic: Nic },
    Virtual(SteppedRank),
}

impl Machine {
    /// Attaches the process.
    ///
    /// # Errors
    /// A text with the reason.
    pub(crate) fn attach() -> Result<Self, String> {
        let stepped = SteppedRank::from_env().map_err(|error| error.to_string())?;
        if let Some(rank) = stepped {
            return Ok(Machine::Virtual(rank));
        }
        let fabric = Backend::Cluster.attach().map_err(|error| error.to_string())?;
        let nic = Nic::of(&fabric).ok_or("the ranks do not share memory")?;
        nic.become_node(QueueMachine::TOFUD).map_err(|error| error.to_string())?;
        Ok(Machine::Shared { fabric, nic })
    }

    pub(crate) fn rank(&self) -> Rank {
        match self {
            Machine::Shared { fabric, .. } => fabric.rank(),
            Machine::Virtual(rank) => rank.rank(),
        }
    }

    pub(crate) fn ranks(&self) -> usize {
        match self {
            Machine::Shared { fabric, .. } => fabric.ranks(),
            Machine::Virtual(rank) => rank.ranks(),
        }
    }

    pub(crate) fn gates(&self) -> Option<&dyn BarrierUnit> {
        match self {
            Machine::Shared { fabric, .. } => fabric.provider().gates(),
            Machine::Virtual(rank) => Some(rank),
        }
    }

    /// Opens a queue, as context `context` of its CQ if that is given.
    ///
    /// # Errors
    /// As [`Nic::open`] and [`SteppedRank::open`].
    pub(crate) fn open(&self, spec: QueueSpec, context: Option<u8>) -> Result<Box<dyn Queue>, FabricError> {
        match self {
            Machine::Shared { nic, .. } => nic.open(spec, context),
            Machine::Virtual(rank) => rank.open(spec, context),
        }
    }

    /// Returns memory of the program as a region, for [`Queue::register`].
    ///
    /// # Errors
    /// [`ShareError`].
    ///
    /// # Safety
    /// As [`Nic::share`].
    pub(crate) unsafe fn share(&self, start: NonNull<u8>, len: usize) -> Result<Region, ShareError> {
        match self {
            // SAFETY: the caller's promise.
            Machine::Shared { nic, .. } => unsafe { nic.share(start, len) },
            Machine::Virtual(rank) => Ok(rank.memory(start, len)),
        }
    }
}
