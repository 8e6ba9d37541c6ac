//! Random choices derived from a seed.

use core::{fmt, str::FromStr, time::Duration};
use rand_chacha::{
    ChaCha8Rng,
    rand_core::{Rng, SeedableRng},
};
use rdma_fabric::Rank;
use serde::{Deserialize, Serialize};

/// The number of writers' acquisitions in 1000 (the literature's F_W).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct WriterShare(u32);

impl WriterShare {
    /// 0.2, 2, 5, 25 and 100 %.
    pub const PUBLISHED: [WriterShare; 5] =
        [WriterShare(2), WriterShare(20), WriterShare(50), WriterShare(250), WriterShare(1000)];

    /// Returns a share of `per_mille` in 1000; values above 1000 count as 1000.
    pub const fn per_mille(per_mille: u32) -> Self {
        WriterShare(if per_mille > 1000 { 1000 } else { per_mille })
    }

    /// Returns whether there are no readers.
    pub const fn is_all(self) -> bool {
        self.0 == 1000
    }
}

impl fmt::Display for WriterShare {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} %", f64::from(self.0) / 10.0)
    }
}

/// The text is not a valid share.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("a share of writers is a number of per cent, from 0 to 100, with at most one decimal")]
pub struct BadShare;

impl FromStr for WriterShare {
    type Err = BadShare;

    fn from_str(text: &str) -> Result<Self, BadShare> {
        let per_mille = text.trim_end_matches('%').trim().parse::<f64>().map_err(|_| BadShare)? * 10.0;
        let whole = per_mille.round();
        let is_one = (0.0..=1000.0).contains(&per_mille) && (per_mille - whole).abs() < 1e-6;
        if is_one { Ok(WriterShare(whole as u32)) } else { Err(BadShare) }
    }
}

/// The random choices of a rank, one number for each acquisition: a stream of ChaCha, a
/// counter-based generator, so that the n-th number is a function of seed, rank and n.
#[derive(Clone, Debug)]
pub struct Draws(ChaCha8Rng);

/// A stream that does not belong to any rank.
const JOB: u64 = u64::MAX;

impl Draws {
    /// Returns the choices of `rank`.
    pub fn new(seed: u64, rank: Rank) -> Self {
        Self::of_stream(seed, u64::from(rank.number()))
    }

    /// Returns the rank whose memory stores the lock and the protected data.
    pub fn home(seed: u64, ranks: usize) -> Rank {
        Rank::new(Self::of_stream(seed, JOB).next().of(ranks as u64) as u32)
    }

    fn of_stream(seed: u64, stream: u64) -> Self {
        let mut numbers = ChaCha8Rng::seed_from_u64(seed);
        numbers.set_stream(stream);
        Draws(numbers)
    }

    /// Returns the choices for the next acquisition.
    #[inline]
    #[allow(clippy::should_implement_trait, reason = "it never ends")]
    pub fn next(&mut self) -> Drawn {
        Drawn(self.0.next_u64())
    }
}

/// The random choices for one acquisition.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Drawn(u64);

impl Drawn {
    /// Returns whether it is a writer's acquisition.
    #[inline]
    pub fn writes(self, share: WriterShare) -> bool {
        (u64::from(self.0 as u32) * 1000) >> 32 < u64::from(share.0)
    }

    /// Returns a time from 1 to 4 µs.
    #[inline]
    pub fn wait(self) -> Duration {
        Duration::from_nanos(1000 + self.of(3001))
    }

    /// Returns a number less than `bound`, which is independent of whether the acquisition is a
    /// writer's.
    #[inline]
    pub fn of(self, bound: u64) -> u64 {
        ((u128::from(self.0 >> 32) * u128::from(bound)) >> 32) as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn first(seed: u64, rank: u32) -> Vec<Drawn> {
        let mut draws = Draws::new(seed, Rank::new(rank));
        (0..10_000).map(|_| draws.next()).collect()
    }

    #[test]
    fn ranks_and_seeds_differ_and_repeat() {
        assert_eq!(first(7, 3), first(7, 3));
        assert_ne!(first(7, 3), first(7, 4));
        assert_ne!(first(7, 3), first(8, 3));
    }

    #[test]
    fn shares_are_kept_to() {
        for share in WriterShare::PUBLISHED {
            let writers = first(1, 0).iter().filter(|drawn| drawn.writes(share)).count() as i64;
            assert!((writers - i64::from(share.0) * 10).abs() <= 150, "{share}: {writers} of 10000");
        }
        assert!(first(1, 0).iter().all(|drawn| drawn.writes(WriterShare::per_mille(1000))));
        assert!(!first(1, 0).iter().any(|drawn| drawn.writes(WriterShare::per_mille(0))));
    }

    #[test]
    fn waits_fill_their_range() {
        let waits: Vec<_> = first(1, 0).into_iter().map(Drawn::wait).collect();
        assert!(waits.iter().all(|wait| (1000..=4000).contains(&wait.as_nanos())));
        let mean = waits.iter().sum::<Duration>().as_nanos() / 10_000;
        assert!((2450..2550).contains(&mean), "{mean}");
    }

    #[test]
    fn homes_are_ranks_and_vary() {
        let homes: std::collections::BTreeSet<_> = (0..100).map(|seed| Draws::home(seed, 4)).collect();
        assert_eq!(homes.into_iter().map(Rank::index).collect::<Vec<_>>(), [0, 1, 2, 3]);
    }

    #[test]
    fn shares_read_and_write_as_per_cent() {
        let read: Vec<_> = ["0.2", "2", "5%", "25 %", "100"].iter().map(|text| text.parse()).collect();
        assert_eq!(read, WriterShare::PUBLISHED.map(Ok));
        assert_eq!(WriterShare::PUBLISHED.map(|share| share.to_string()), ["0.2 %", "2 %", "5 %", "25 %", "100 %"]);
        for wrong in ["", "x", "-1", "101", "0.25"] {
            assert_eq!(wrong.parse::<WriterShare>(), Err(BadShare), "{wrong}");
        }
    }
}
