//! The layout of a lock's file.
//!
//! ```text
//! | header | slot of rank 0 | … | slot of the last rank | the lock's part of rank 0 | … | last part |
//! ```
//! The header and the slots are words that are only accessed as atomics, the parts only through
//! [`rdma_fabric::access`]. So no byte is ever accessed in both ways.
//!
//! Rank 0 is not a process: its part holds the lock's own words, its *home*, which therefore
//! outlives every process. The next ranks are processes. The last ones are *ghosts*, which never do
//! anything, and die one after the other to make room ([`crate::join`]).

use rma_lock::{Lock, locks::RecoverableLock, locks::Recovery};

/// The number of processes that may have a lock open at a time.
pub const PROCESSES: usize = 127;
/// The number of ranks that can be declared dead to open an epoch although no process has died.
pub(crate) const GHOSTS: usize = 14;
/// The number of all ranks.
pub(crate) const RANKS: usize = 1 + PROCESSES + GHOSTS;
/// The first ghost.
pub(crate) const FIRST_GHOST: usize = 1 + PROCESSES;

/// The numbers of epochs and deaths for which a generation of the lock has room. A generation is
/// replaced long before it reaches them.
pub(crate) const RECOVERY: Recovery = Recovery { epochs: 24, deaths: 64 };

/// Defines words by name and offset in bytes.
macro_rules! words {
    ($($(#[$doc:meta])* $name:ident: $at:expr;)*) => {
        $($(#[$doc])* pub(crate) const $name: usize = $at;)*
    };
}

words! {
    /// [`MAGIC_VALUE`], written last.
    MAGIC: 0;
    /// [`SHAPE_VALUE`].
    SHAPE: 8;
    /// The PID namespace of the process IDs in this file.
    NAMESPACE: 16;
    /// The first of two words: the ID of the boot in which the process IDs are valid.
    BOOT: 24;
    /// [`crate::session::Gate`].
    GATE: 40;
    /// The process that tore the protected data and either is no longer in a slot or panicked; 0 if
    /// there is none.
    TORN_BY: 48;
    /// The number of slots that are dead. Never decreases.
    DEATHS: 56;
    /// The time of the last check that processes are alive, in ns of the system's monotonic clock.
    /// In a separate cache line.
    LOOKED: 128;
}

/// The size of the header in bytes.
const HEADER: usize = 4096;
/// The size of a slot in bytes.
pub(crate) const SLOT: usize = 128;

words! {
    /// In a slot: the state of the rank ([`crate::slots::State`]).
    STATE: 0;
    /// In a slot: the start time of its process, in the system's ticks.
    STARTED: 8;
    /// In a slot: [`ALIVE`] until the rank has died.
    LIVE: 16;
    /// In a slot, 4 bytes: the rank's doorbell.
    DOORBELL: 24;
    /// In a slot, in a separate cache line: the number of calls of the process that hold the lock
    /// or are about to.
    HOLDS: 64;
    /// In a slot: 1 while the process may leave the protected data half-written.
    WRITES: 72;
}

/// The generation of the single region of each rank, while the rank has not died.
pub(crate) const ALIVE: u32 = 1;

/// The value of [`MAGIC`]: name and version of this layout.
pub(crate) const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"1s-lock\x01");
/// The value of [`SHAPE`]: further parameters on which all processes must agree.
pub(crate) const SHAPE_VALUE: u64 = (RANKS as u64) << 48 | (RECOVERY.epochs as u64) << 32 | RECOVERY.deaths as u64;

/// Returns the offset of a rank's slot.
pub(crate) const fn slot(rank: usize) -> usize {
    HEADER + rank * SLOT
}

/// The offset of the lock's parts.
pub(crate) const PARTS: usize = slot(RANKS);
const _: () = assert!(PARTS.is_multiple_of(SLOT));

/// Returns the size of the lock's part at each rank, in bytes.
pub(crate) fn part_bytes() -> usize {
    <RecoverableLock as Lock>::bytes(&RECOVERY, RANKS).next_multiple_of(SLOT)
}

/// Returns the length of the file in bytes, a multiple of the page size.
pub(crate) fn file_bytes() -> usize {
    (PARTS + RANKS * part_bytes()).next_multiple_of(65_536)
}
