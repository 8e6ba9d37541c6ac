//! The fabric's time: wall-clock on real providers, virtual on simulated ones.

use core::{fmt, ops, time::Duration};

/// A moment, in picoseconds since the job started.
///
/// 64 bits of picoseconds reach 213 days. Arithmetic saturates, so that "never" is [`Time::MAX`].
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Time(u64);

impl Time {
    /// The start of the job.
    pub const ZERO: Time = Time(0);
    /// The end of representable time.
    pub const MAX: Time = Time(u64::MAX);

    /// Returns the moment `ps` picoseconds after the start.
    #[inline]
    pub const fn from_picos(ps: u64) -> Self {
        Time(ps)
    }

    /// Returns the picoseconds since the start.
    #[inline]
    pub const fn as_picos(self) -> u64 {
        self.0
    }

    /// Returns the seconds since the start, for display.
    #[inline]
    pub fn as_secs_f64(self) -> f64 {
        self.0 as f64 * 1e-12
    }

    /// Returns the time from `earlier` to `self`, in picoseconds; 0 if `earlier` is later.
    #[inline]
    pub const fn picos_since(self, earlier: Time) -> u64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns the moment `ps` picoseconds later.
    #[inline]
    pub const fn plus_picos(self, ps: u64) -> Time {
        Time(self.0.saturating_add(ps))
    }
}

impl ops::Add<Duration> for Time {
    type Output = Time;
    #[inline]
    fn add(self, later: Duration) -> Time {
        let ps = later.as_nanos().saturating_mul(1000);
        Time(self.0.saturating_add(u64::try_from(ps).unwrap_or(u64::MAX)))
    }
}

impl ops::Sub for Time {
    type Output = Duration;
    /// Returns the difference, rounded down to nanoseconds; zero if `earlier` is later.
    #[inline]
    #[allow(clippy::suspicious_arithmetic_impl)] // picoseconds to nanoseconds
    fn sub(self, earlier: Time) -> Duration {
        Duration::from_nanos(self.picos_since(earlier) / 1000)
    }
}

impl fmt::Debug for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ps if ps < 1_000_000 => write!(f, "{} ns", ps as f64 / 1e3),
            ps if ps < 1_000_000_000 => write!(f, "{} us", ps as f64 / 1e6),
            ps if ps < 1_000_000_000_000 => write!(f, "{} ms", ps as f64 / 1e9),
            ps => write!(f, "{} s", ps as f64 / 1e12),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_round_trip_and_saturate() {
        let t = Time::from_picos(268_600) + Duration::from_nanos(2);
        assert_eq!(t.as_picos(), 270_600);
        assert_eq!(t - Time::from_picos(600), Duration::from_nanos(270));
        assert_eq!(Time::ZERO - t, Duration::ZERO);
        assert_eq!(t + Duration::MAX, Time::MAX);
    }
}
