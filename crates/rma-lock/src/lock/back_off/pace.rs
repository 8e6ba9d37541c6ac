//! The sleep of a rank between attempts.

use core::time::Duration;
use rdma_fabric::Rank;

/// The number of attempts of a rank to acquire a taken lock, and the delays between them.
///
/// After its n-th attempt a rank sleeps for between half and the whole of `first` · 2ⁿ⁻¹, and no
/// longer than for `first` · 2^`doublings`. The point in that range depends only on `seed`, the
/// rank and n, so that ranks that collided once spread out, and runs are reproducible. Ranks may
/// have different values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BackOff {
    /// The longest duration of the first sleep. A good choice is the time that one pair of atomics
    /// at the home takes: the default is 2 µs, as on FX100 (2.3 µs for a lock and unlock, MPI RMA
    /// lock synchronisation on FX100, section 5). In wall-clock time a sleep takes at least the
    /// minimum time of the system.
    pub first: Duration,
    /// The number of times that the sleep doubles: 6 by default. More doublings reduce the load of
    /// the home, fewer shorten the time for which a free lock stays idle.
    pub doublings: u32,
    /// The number of attempts of one acquisition, after which it returns
    /// [`crate::LockError::Contended`]; unlimited (`u32::MAX`) by default.
    pub attempts: u32,
    /// The seed of the random part of each sleep.
    pub seed: u64,
}

impl Default for BackOff {
    fn default() -> Self {
        BackOff { first: Duration::from_micros(2), doublings: 6, attempts: u32::MAX, seed: 0 }
    }
}

impl BackOff {
    /// Returns the sleep of `rank` after `attempts` attempts, 1 or more.
    pub(super) fn sleep(&self, rank: Rank, attempts: u32) -> Duration {
        let doublings = attempts.saturating_sub(1).min(self.doublings);
        let most = 1u32.checked_shl(doublings).map_or(Duration::MAX, |times| self.first.saturating_mul(times));
        let most = u64::try_from(most.as_nanos()).unwrap_or(u64::MAX);
        let half = most / 2;
        let dice = mixed(mixed(self.seed ^ u64::from(rank.number())) ^ u64::from(attempts));
        let spread = (u128::from(half) * u128::from(dice)) >> 64;
        Duration::from_nanos(most - half + spread as u64)
    }
}

/// Steele, Lea and Flood's SplitMix64.
fn mixed(seed: u64) -> u64 {
    let z = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sleeps_double_spread_and_end() {
        let pace = BackOff { doublings: 3, ..BackOff::default() };
        for rank in (0..64).map(Rank::new) {
            for attempts in 1..10 {
                let most = pace.first * (1 << (attempts - 1).min(3));
                let sleep = pace.sleep(rank, attempts);
                assert!(most / 2 <= sleep && sleep <= most, "{rank}, {attempts}: {sleep:?} of {most:?}");
            }
        }
        let sleeps: std::collections::BTreeSet<_> = (0..64).map(|rank| pace.sleep(Rank::new(rank), 4)).collect();
        assert!(sleeps.len() > 60, "{} different sleeps of 64 ranks", sleeps.len());
        assert_eq!(pace.sleep(Rank::new(5), 2), pace.sleep(Rank::new(5), 2));
    }

    #[test]
    fn the_longest_sleeps_do_not_overflow() {
        let pace = BackOff { first: Duration::MAX, doublings: u32::MAX, ..BackOff::default() };
        assert!(pace.sleep(Rank::new(0), u32::MAX) >= Duration::from_secs(1));
    }
}
