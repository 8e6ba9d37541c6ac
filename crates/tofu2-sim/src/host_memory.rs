//! How much memory this machine has left for this process. This is checked before a large
//! allocation, because the system promises more memory than it has and kills a process when the
//! promise falls due.
//!
//! The answer is an estimate. Other processes take and free memory meanwhile, so the system may
//! still kill a process for memory that fitted when it was checked.

/// Allocations below this size, in bytes, are not checked.
pub(crate) const LARGE: usize = 64 << 20;

/// Returns how many bytes are available, as far as the system tells: on the machine, in the control
/// group, and under this process's limits.
pub(crate) fn available() -> Option<u64> {
    [of_machine(), of_group(), of_limits()].into_iter().flatten().min()
}

/// Checks that `bytes` more are available; if not, returns how many are.
pub(crate) fn has(bytes: u64) -> Result<(), u64> {
    if bytes < LARGE as u64 {
        return Ok(());
    }
    match available() {
        Some(available) if bytes > available => Err(available),
        _ => Ok(()),
    }
}

/// Returns the number after `name` in a file of lines like `MemFree:  123 kB`, in bytes.
fn kilobytes(text: &str, name: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))?;
    line.split_whitespace().next()?.parse::<u64>().ok()?.checked_mul(1024)
}

fn of_machine() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    Some(kilobytes(&text, "MemAvailable")?.saturating_add(kilobytes(&text, "SwapFree").unwrap_or(0)))
}

/// Returns the bytes that are left to this process's control group (version 2).
fn of_group() -> Option<u64> {
    let groups = std::fs::read_to_string("/proc/self/cgroup").ok()?;
    let group = groups.lines().find_map(|line| line.strip_prefix("0::"))?;
    let number = |file: &str| {
        let text = std::fs::read_to_string(format!("/sys/fs/cgroup{}/{file}", group.trim_end_matches('/'))).ok()?;
        text.trim().parse::<u64>().ok()
    };
    Some(number("memory.max")?.saturating_sub(number("memory.current")?))
}

#[cfg(target_os = "linux")]
fn of_limits() -> Option<u64> {
    use rustix::process::{Resource, getrlimit};
    let text = std::fs::read_to_string("/proc/self/status").ok()?;
    let left = |resource, used| Some(getrlimit(resource).current?.saturating_sub(kilobytes(&text, used)?));
    [left(Resource::As, "VmSize"), left(Resource::Data, "VmData")].into_iter().flatten().min()
}

#[cfg(not(target_os = "linux"))]
fn of_limits() -> Option<u64> {
    None
}

#[cfg(all(test, target_os = "linux", not(miri)))]
mod tests {
    use super::*;

    #[test]
    fn a_machine_has_some_memory_and_not_all() {
        let available = available().expect("procfs");
        assert!(available > 1 << 20 && available < 1 << 50, "{available}");
        assert!(has(LARGE as u64 - 1).is_ok() && has(1 << 60).is_err_and(|left| left < 1 << 50));
        assert_eq!(kilobytes("MemTotal: 7 kB\nMemFree:      12 kB\n", "MemFree"), Some(12 << 10));
        assert_eq!(kilobytes("MemFreed: 1 kB", "MemFree"), None);
    }
}
