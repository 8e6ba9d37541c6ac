//! The resources that are left on this machine for this process: memory, address space, processes,
//! descriptors.
//!
//! A job, an allocation and a simulation compare their needs with it before they take anything,
//! because the system promises more memory than it has and kills a process when it cannot keep the
//! promise. The answer is an estimate: other processes allocate and free memory in the meantime.
//! Each amount comes with the name of the limit that sets it.
//!
//! Every probe has an answer. If `/proc/meminfo` cannot be read, it is the free memory of
//! `sysinfo(2)`. A control group whose hierarchy is not mounted is invisible to its processes and
//! sets no limit here. A limit whose file exists but cannot be read leaves nothing. On systems
//! other than Linux, nothing is checked.

#[cfg(all(target_os = "linux", not(miri)))]
mod control_groups;
#[cfg(all(target_os = "linux", not(miri)))]
mod system;

#[cfg(all(target_os = "linux", not(miri)))]
pub use system::System;

use std::borrow::Cow;

/// Memory is compared with the available amount each time that a rank, or a simulation, has taken
/// this many more bytes.
pub const STEP: usize = 1 << 20;

/// An amount that a limit leaves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Left {
    /// The amount left.
    pub amount: u64,
    /// The limit's name.
    pub limit: Cow<'static, str>,
}

/// Returns the number of bytes of memory left: on the machine and in this process's control groups.
pub fn memory() -> Left {
    #[cfg(all(target_os = "linux", not(miri)))]
    return System::here().memory();
    #[cfg(not(all(target_os = "linux", not(miri))))]
    Left { amount: u64::MAX, limit: "a system that is not asked".into() }
}

/// Returns the number of bytes left that this process can map and touch by itself: those of
/// [`memory`], within the process's own limits.
pub fn private_memory() -> Left {
    #[cfg(all(target_os = "linux", not(miri)))]
    return System::here().private_memory();
    #[cfg(not(all(target_os = "linux", not(miri))))]
    memory()
}

/// Checks that `left` is enough for `needed`.
pub fn check(needed: u64, left: Left) -> Result<(), Left> {
    if needed > left.amount { Err(left) } else { Ok(()) }
}
