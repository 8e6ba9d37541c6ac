//! What a simulation costs the machine it runs on.

use serde::{Deserialize, Serialize};

/// CPU time this process has used, in seconds. Wall time would tell about the neighbours.
#[cfg(unix)]
pub(crate) fn cpu_seconds() -> f64 {
    use rustix::time::{ClockId, clock_gettime};
    let t = clock_gettime(ClockId::ProcessCPUTime);
    t.tv_sec as f64 + t.tv_nsec as f64 * 1e-9
}

/// Time since the first call, in seconds: the next best where CPU time is not to be had in a portable way.
#[cfg(not(unix))]
pub(crate) fn cpu_seconds() -> f64 {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed().as_secs_f64()
}

/// The most memory this process ever had resident, in bytes; `None` where the system does not tell.
pub(crate) fn peak_resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    Some(kib * 1024)
}

/// One simulated job and what it cost.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Ranks simulated.
    pub ranks: u64,
    /// Events processed.
    pub events: u64,
    /// CPU seconds of this machine; elapsed seconds where the system is no Unix.
    pub cpu_seconds: f64,
    /// Simulator memory per rank, in bytes, as the simulator counts it.
    pub bytes_per_rank: u64,
    /// Growth of the process's peak resident memory per rank, in bytes; 0 if an earlier job had needed as
    /// much. `None` where the system does not tell.
    pub resident_bytes_per_rank: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_time_grows_with_work_and_only_forward() {
        let before = cpu_seconds();
        let mut x = 1u64;
        while cpu_seconds() - before < 0.002 {
            x = std::hint::black_box(x.wrapping_mul(6364136223846793005).wrapping_add(1));
        }
        assert!(cpu_seconds() > before);
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn peak_memory_sees_a_large_allocation() {
        let before = peak_resident_bytes().expect("Linux tells");
        let block = std::hint::black_box(vec![1u8; 64 << 20]);
        assert!(peak_resident_bytes().expect("Linux tells") >= before.max(block.len() as u64));
    }
}
