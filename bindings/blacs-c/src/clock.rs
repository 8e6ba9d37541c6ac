//! The clocks `dwalltime00` and `dcputime00`.

use crate::{library::enter, virtual_time};
use rustix::time::{ClockId, clock_gettime};

/// Returns the time of a monotonic clock in seconds; all processes of a machine share the clock. A rank
/// in virtual time has that time, which is 0 before its first call.
pub(crate) fn wall_time(_: &'static str) -> f64 {
    if virtual_time::is_here() {
        return enter().rank().map_or(0.0, |fabric| fabric.now().as_picos() as f64 / 1e12);
    }
    seconds(ClockId::Monotonic)
}

/// Returns the seconds of CPU time that this process has used.
pub(crate) fn cpu_time(_: &'static str) -> f64 {
    seconds(ClockId::ProcessCPUTime)
}

fn seconds(clock: ClockId) -> f64 {
    let now = clock_gettime(clock);
    now.tv_sec as f64 + now.tv_nsec as f64 / 1e9
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_clocks_advance() {
        let (wall, cpu) = (wall_time(""), cpu_time(""));
        while cpu_time("") < cpu + 1e-3 {}
        assert!(wall_time("") > wall);
    }
}
