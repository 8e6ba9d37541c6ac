//! The limit of memory that registration pins.
//!
//! A driver of a NIC pins the pages of registered memory. Linux counts them per process (`VmPin` in
//! `/proc/self/status`) and compares their number with RLIMIT_MEMLOCK, which `ulimit -l` sets,
//! unless the process has CAP_IPC_LOCK (`ib_umem_get` in `drivers/infiniband/core/umem.c`).

use rustix::process::{Resource, getrlimit};
use std::{fs, io};

/// The number of CAP_IPC_LOCK, a bit of the process's capabilities (`linux/capability.h`).
const IPC_LOCK: u32 = 14;

/// Returns the number of bytes that this process may pin; `u64::MAX` if there is no limit.
pub(crate) fn limit() -> io::Result<u64> {
    let Some(limit) = getrlimit(Resource::Memlock).current else { return Ok(u64::MAX) };
    Ok(if has_ipc_lock(&status()?).ok_or_else(unreadable)? { u64::MAX } else { limit })
}

/// Returns the number of bytes that this process has pinned.
pub(crate) fn pinned() -> io::Result<u64> {
    pinned_bytes(&status()?).ok_or_else(unreadable)
}

fn status() -> io::Result<String> {
    fs::read_to_string("/proc/self/status")
}

fn unreadable() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "/proc/self/status has another form")
}

/// Returns the value of a line `NAME:\tVALUE`.
fn value<'a>(status: &'a str, name: &str) -> Option<&'a str> {
    let line = |line: &'a str| line.strip_prefix(name)?.strip_prefix(':');
    status.lines().find_map(line).map(str::trim)
}

fn pinned_bytes(status: &str) -> Option<u64> {
    value(status, "VmPin")?.strip_suffix(" kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
}

fn has_ipc_lock(status: &str) -> Option<bool> {
    u64::from_str_radix(value(status, "CapEff")?, 16).ok().map(|bits| bits >> IPC_LOCK & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    const STATUS: &str = "Name:\tcat\nVmLck:\t       8 kB\nVmPin:\t    1232 kB\nCapEff:\t00000000a80425fb\n";

    #[test]
    fn the_lines_of_the_kernel_are_read() {
        assert_eq!((pinned_bytes(STATUS), has_ipc_lock(STATUS)), (Some(1232 << 10), Some(false)));
        assert_eq!(has_ipc_lock("CapEff:\t0000000000004000\n"), Some(true));
        assert_eq!((pinned_bytes("VmPin:\t12\n"), pinned_bytes(""), has_ipc_lock("CapEff:\tx")), (None, None, None));
        assert!(limit().is_ok() && pinned().is_ok());
    }
}
