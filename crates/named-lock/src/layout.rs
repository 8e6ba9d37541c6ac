//! The layout of a lock's file.
//!
//! ```text
//! | header | slot of rank 0 | … | slot of the last rank | the lock's part of rank 0 | … | last part |
//! ```
//! The header and the slots are words that are only accessed as atomics, the parts only through
//! [`rdma_fabric::access`]. So no byte is ever accessed in two ways.
//!
//! Rank 0 is nobody: its part holds the lock's own words, its *home*, which so outlives everybody.
//! The next ranks are processes. The last ones are *ghosts*, which never do anything, and die one
//! after the other to make room ([`crate::joining`]).

use rma_lock::{Lock, locks::RecoverableLock, locks::Recovery};

/// The number of processes that may have a lock open at a time.
pub const PROCESSES: usize = 127;
/// Ranks that die when an epoch is to be opened though nobody has died.
pub(crate) const GHOSTS: usize = 14;
/// All ranks.
pub(crate) const RANKS: usize = 1 + PROCESSES + GHOSTS;
/// The first ghost.
pub(crate) const FIRST_GHOST: usize = 1 + PROCESSES;

/// How many epochs and deaths a generation of the lock has room for. It is replaced long before.
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
    /// The name space of the processes' numbers.
    NAMESPACE: 16;
    /// The first of two words: which start of the machine the processes' numbers belong to.
    BOOT: 24;
    /// [`crate::session::Gate`].
    GATE: 40;
    /// The process that tore what the lock protects and is no longer in a slot, or panicked; 0 if
    /// there is none.
    TORN_BY: 48;
    /// The number of slots that are dead. Only grows.
    DEATHS: 56;
    /// When somebody last looked whether processes live: ns of the system's monotonic clock. On a
    /// line of its own.
    LOOKED: 128;
}

/// Bytes of the header.
const HEADER: usize = 4096;
/// Bytes of a slot.
pub(crate) const SLOT: usize = 128;

words! {
    /// In a slot: who is the rank ([`crate::slots::State`]).
    STATE: 0;
    /// In a slot: when its process was started, in the system's ticks.
    STARTED: 8;
    /// In a slot: [`ALIVE`] until the rank has died.
    LIVE: 16;
    /// In a slot, 4 bytes: the rank's doorbell.
    BELL: 24;
    /// In a slot, on a line of its own: how many calls of the process hold the lock or are about to.
    HOLDS: 64;
    /// In a slot: 1 while what the lock protects may be half-written by the process.
    WRITES: 72;
}

/// The generation of the one region of each rank, while the rank has not died.
pub(crate) const ALIVE: u32 = 1;

/// Value of [`MAGIC`]: name and version of this layout.
pub(crate) const MAGIC_VALUE: u64 = u64::from_le_bytes(*b"1s-lock\x01");
/// Value of [`SHAPE`]: what else both sides must agree on.
pub(crate) const SHAPE_VALUE: u64 = (RANKS as u64) << 48 | (RECOVERY.epochs as u64) << 32 | RECOVERY.deaths as u64;

/// Returns where a rank's slot begins.
pub(crate) const fn slot(rank: usize) -> usize {
    HEADER + rank * SLOT
}

/// Where the lock's parts begin.
pub(crate) const PARTS: usize = slot(RANKS);
const _: () = assert!(PARTS.is_multiple_of(SLOT));

/// Returns the bytes of the lock at each rank.
pub(crate) fn part_bytes() -> usize {
    <RecoverableLock as Lock>::bytes(&RECOVERY, RANKS).next_multiple_of(SLOT)
}

/// Returns the length of the file in bytes: whole pages.
pub(crate) fn file_bytes() -> usize {
    (PARTS + RANKS * part_bytes()).next_multiple_of(65_536)
}
