//! What a rank runs on, besides its fabric: memory that it shares with the others, or a simulator in
//! virtual time.

#![allow(unsafe_code)]

use crate::error::{CallError, Result};
use acp::Acp;
use core::{
    ptr::NonNull,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};
use onesided::block_on_short;
use rdma_fabric::{Fabric, Region};
use tofu2_shm::nic::Nic;
use tofu2_stepped::SteppedRank;

/// The machine of this process's rank.
#[derive(Debug)]
pub(crate) enum Machine {
    Shared(Nic),
    Virtual {
        rank: SteppedRank,
        fabric: Fabric,
        /// Calls in a row by which the program may be waiting.
        misses: AtomicU32,
    },
}

impl Machine {
    /// Returns the machine of a rank, by its bare fabric.
    ///
    /// # Errors
    /// [`CallError::NotShared`].
    pub(crate) fn of(fabric: &Fabric) -> Result<Self> {
        match SteppedRank::of(fabric) {
            Some(rank) => Ok(Machine::Virtual { rank, fabric: fabric.clone(), misses: AtomicU32::new(0) }),
            None => Nic::of(fabric).map(Machine::Shared).ok_or(CallError::NotShared),
        }
    }

    /// Registers memory of the program.
    ///
    /// # Errors
    /// [`CallError::Share`], [`CallError::Fabric`].
    ///
    /// # Safety
    /// As [`Nic::share`].
    pub(crate) unsafe fn share(&self, start: NonNull<u8>, len: usize) -> Result<Region> {
        match self {
            // SAFETY: the caller's promise.
            Machine::Shared(nic) => Ok(unsafe { nic.share(start, len) }?),
            // SAFETY: the caller's promise.
            Machine::Virtual { fabric, .. } => Ok(unsafe { SteppedRank::share(fabric, start, len) }?),
        }
    }

    /// Notes a call that a program does not repeat in order to wait.
    #[inline]
    pub(crate) fn acts(&self) {
        if let Machine::Virtual { misses, .. } = self {
            misses.store(0, Relaxed);
        }
    }

    /// Lets virtual time pass for a call that programs repeat in order to wait, unless it has found
    /// something and is the first of its kind; serves other ranks meanwhile. Returns whether time has passed.
    #[inline]
    pub(crate) fn repeats(&self, acp: &Acp, has_found: bool) -> bool {
        let Machine::Virtual { rank, misses, .. } = self else { return false };
        let misses = misses.fetch_add(1, Relaxed).saturating_add(1);
        if has_found && misses == 1 {
            return false;
        }
        block_on_short(acp.while_serving(rank.pause(misses)));
        true
    }
}
