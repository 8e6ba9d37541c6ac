//! The state of this process between `acp_init` and `acp_finalize`.

use crate::{
    error::{CallError, Result},
    machine::Machine,
    memory::OwnMemory,
    middle,
};
use acp::Acp;
use core::{
    ffi::c_int,
    sync::atomic::{
        AtomicU8,
        Ordering::{Acquire, Release},
    },
};
use observe::ProcessRecord;
use rdma_fabric::Rank;
use std::sync::{Mutex, MutexGuard, OnceLock, TryLockError};

/// The state that calls of all threads share. It exists from the first `acp_init` to the end of the process, so
/// that a call that runs while another thread finalizes finds it.
#[derive(Debug)]
pub(crate) struct Library {
    pub(crate) acp: Acp,
    pub(crate) machine: Machine,
    /// The addresses in this process of its own memory.
    pub(crate) own: OwnMemory,
    /// The state of this library's own middle layer.
    pub(crate) middle: middle::State,
    /// The record of this process's operations, if the launcher requests one.
    pub(crate) record: Option<ProcessRecord>,
}

/// The calls that are possible.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(crate) enum Phase {
    /// Before `acp_init`.
    Fresh = 0,
    /// After `acp_init`.
    Running = 1,
    /// After `acp_finalize`.
    Finalized = 2,
}

static LIBRARY: OnceLock<Library> = OnceLock::new();
static PHASE: AtomicU8 = AtomicU8::new(Phase::Fresh as u8);
/// Held by calls that change the phase.
static CHANGING: Mutex<()> = Mutex::new(());

/// Returns the library.
///
/// # Errors
/// [`CallError::NotRunning`], [`CallError::Finalized`].
#[inline]
pub(crate) fn running() -> Result<&'static Library> {
    // Acquire: pairs with the release in `set_phase`.
    if PHASE.load(Acquire) == Phase::Running as u8
        && let Some(library) = LIBRARY.get()
    {
        return Ok(library);
    }
    Err(not_running())
}

#[cold]
fn not_running() -> CallError {
    if PHASE.load(Acquire) == Phase::Finalized as u8 { CallError::Finalized } else { CallError::NotRunning }
}

/// Returns the library if this process has ever been initialized.
pub(crate) fn started() -> Option<&'static Library> {
    LIBRARY.get()
}

/// Begins a call that changes the phase; there is one at a time.
///
/// # Errors
/// [`CallError::Changing`].
pub(crate) fn change() -> Result<MutexGuard<'static, ()>> {
    match CHANGING.try_lock() {
        Ok(guard) => Ok(guard),
        // The lock protects no data.
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(CallError::Changing),
    }
}

/// Lets calls use the library, or refuses them. The caller has begun a [`change`].
pub(crate) fn set_phase(phase: Phase) {
    PHASE.store(phase as u8, Release);
}

/// Stores the library, and returns it. Only the first call of a process has an effect.
pub(crate) fn store(library: Library) -> &'static Library {
    LIBRARY.get_or_init(|| library)
}

impl Library {
    /// Returns a rank given by the program.
    ///
    /// # Errors
    /// [`CallError::NoSuchRank`].
    #[inline]
    pub(crate) fn rank(&self, rank: c_int) -> Result<Rank> {
        let ranks = self.acp.ranks();
        let number = u32::try_from(rank).ok().filter(|&number| (number as usize) < ranks);
        number.map(Rank::new).ok_or(CallError::NoSuchRank { rank, ranks })
    }
}
