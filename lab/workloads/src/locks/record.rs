//! The results of one rank in a run.

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

/// The index of readers.
pub const SHARED: usize = 0;
/// The index of writers.
pub const EXCLUSIVE: usize = 1;

/// Latencies in nanoseconds, exact below 256 ns and accurate to 1 % above.
///
/// A histogram, which is allocated with the first latency: unused ones cost nothing, even for a
/// thousand ranks.
#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(from = "Counts", into = "Counts")]
pub struct Latencies(Option<Box<Histogram<u32>>>);

impl core::fmt::Debug for Latencies {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        write!(f, "Latencies({} of {:?} ns)", self.len(), self.mean_ns())
    }
}

/// The serialized form: pairs of an approximate latency in nanoseconds and its count.
#[derive(Serialize, Deserialize)]
#[serde(transparent)]
struct Counts(Vec<(u64, u32)>);

impl From<Latencies> for Counts {
    fn from(latencies: Latencies) -> Self {
        let recorded = latencies.0.iter().flat_map(|all| all.iter_recorded());
        Counts(recorded.map(|at| (at.value_iterated_to(), at.count_at_value())).collect())
    }
}

impl From<Counts> for Latencies {
    fn from(counts: Counts) -> Self {
        let mut latencies = Latencies::default();
        counts.0.into_iter().for_each(|(ns, count)| latencies.record_many(ns, count));
        latencies
    }
}

/// The number of significant digits of a latency.
const DIGITS: u8 = 2;

impl Latencies {
    #[inline]
    pub(super) fn record_picos(&mut self, ps: u64) {
        self.record_many(ps / 1000, 1);
    }

    fn record_many(&mut self, ns: u64, count: u32) {
        let all = self.0.get_or_insert_with(|| Box::new(empty()));
        // It grows as needed.
        let _ = all.record_n(ns, count);
    }

    /// Adds the latencies of another histogram.
    pub fn add(&mut self, other: &Latencies) {
        if let Some(other) = &other.0 {
            // It grows as needed.
            let _ = self.0.get_or_insert_with(|| Box::new(empty())).add(&**other);
        }
    }

    /// Returns the number of latencies.
    pub fn len(&self) -> u64 {
        self.0.as_ref().map_or(0, |all| all.len())
    }

    /// Returns whether there are no latencies.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the mean in nanoseconds, if there are any latencies.
    pub fn mean_ns(&self) -> Option<f64> {
        self.any().map(|all| all.mean())
    }

    /// Returns the quantile of `part`, in nanoseconds; `None` if there are no latencies.
    pub fn quantile_ns(&self, part: f64) -> Option<u64> {
        self.any().map(|all| all.value_at_quantile(part))
    }

    fn any(&self) -> Option<&Histogram<u32>> {
        self.0.as_deref().filter(|all| !all.is_empty())
    }
}

fn empty() -> Histogram<u32> {
    Histogram::new(DIGITS).expect("two digits are among those that a histogram can have")
}

/// The results of one rank in a run. Arrays are indexed by [`SHARED`] and [`EXCLUSIVE`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RankRecord {
    /// The number of completed acquisitions.
    pub completed: [u64; 2],
    /// The time from the beginning of the first one to the end of the last one, in picoseconds.
    pub elapsed: u64,
    /// An acquisition was given up because the run's time limit had expired.
    pub gave_up: bool,
    /// The times of acquisitions, if they were measured.
    pub acquire: [Latencies; 2],
    /// The times of acquisition and release together, without the critical section.
    pub pair: [Latencies; 2],
}

impl RankRecord {
    /// Returns the number of completed acquisitions per second.
    pub fn rate(&self) -> f64 {
        if self.elapsed == 0 { 0.0 } else { self.all() as f64 / (self.elapsed as f64 * 1e-12) }
    }

    /// Returns the number of completed acquisitions of both kinds.
    pub fn all(&self) -> u64 {
        self.completed.iter().sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn short_latencies_are_exact_and_long_ones_to_a_per_cent() {
        let mut latencies = Latencies::default();
        assert_eq!((latencies.mean_ns(), latencies.quantile_ns(0.5), latencies.len()), (None, None, 0));
        for ns in [20, 21, 255, 1_000_000] {
            latencies.record_picos(ns * 1000 + 999);
        }
        assert_eq!([0.25, 0.5, 0.75].map(|part| latencies.quantile_ns(part)), [Some(20), Some(21), Some(255)]);
        let most = latencies.quantile_ns(1.0).unwrap_or(0);
        assert!((990_000..1_010_000).contains(&most), "{most}");
    }

    #[test]
    fn records_survive_the_way_to_another_process() {
        let mut record = RankRecord { completed: [3, 1], elapsed: 2_000_000, ..RankRecord::default() };
        for ns in [30, 31, 31, 123_456_789] {
            record.acquire[SHARED].record_picos(ns * 1000);
        }
        let text = serde_json::to_string(&record).expect("JSON");
        let back: RankRecord = serde_json::from_str(&text).expect("the same");
        assert_eq!(back.acquire[SHARED].len(), 4);
        assert_eq!(back.acquire[SHARED].quantile_ns(1.0), record.acquire[SHARED].quantile_ns(1.0));
        assert_eq!(serde_json::to_string(&back).expect("JSON"), text);
        assert_eq!(back.rate(), 2e6);
    }

    #[test]
    fn latencies_add_up() {
        let (mut a, mut b) = (Latencies::default(), Latencies::default());
        a.record_picos(10_000);
        b.record_picos(30_000);
        a.add(&b);
        a.add(&Latencies::default());
        assert_eq!((a.len(), a.mean_ns(), a.quantile_ns(1.0)), (2, Some(20.0), Some(30)));
    }
}
