//! The results of the runs of one case.

use crate::statistics::{greatest, least, median};
use repro::workloads::locks::{EXCLUSIVE, Latencies, RankRecord, SHARED, Workload, WriterShare};
use serde::{Deserialize, Serialize};

/// The parameters of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockCase {
    /// The workload.
    pub(crate) workload: Workload,
    /// The share of writers, per 1000 acquisitions.
    pub(crate) writers: WriterShare,
    /// The number of contending ranks.
    pub(crate) ranks: usize,
    /// The lock.
    pub(crate) lock: String,
}

/// The distribution of several values of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Spread {
    /// The median; of an even number of values, the upper of the two middle ones.
    pub(crate) median: f64,
    /// The smallest.
    pub(crate) min: f64,
    /// The largest.
    pub(crate) max: f64,
}

impl Spread {
    /// Returns `None` if there are no values.
    pub(crate) fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let values: Vec<f64> = values.into_iter().collect();
        let (min, max) = (least(values.iter().copied())?, greatest(values.iter().copied())?);
        Some(Spread { median: median(values)?, min, max })
    }
}

/// How evenly the ranks acquired the lock, by their completed acquisitions per second of their own
/// time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Fairness {
    /// Jain's index, the square of the sum divided by the number times the sum of squares: 1 if all
    /// are equal, 1/n if one rank has all acquisitions.
    pub(crate) jain: f64,
    /// The rate of the fastest rank divided by that of the slowest; `None` if a rank had no
    /// acquisition.
    pub(crate) max_over_min: Option<f64>,
    /// The number of ranks without any acquisition.
    pub(crate) starved: usize,
}

impl Fairness {
    /// Returns the fairness among these ranks.
    pub(crate) fn of(records: &[RankRecord]) -> Self {
        let rates: Vec<f64> = records.iter().map(RankRecord::rate).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        let jain = if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 };
        let most = greatest(rates.iter().copied());
        let least = least(rates.iter().copied()).filter(|&least| least > 0.0);
        let starved = records.iter().filter(|record| record.all() == 0).count();
        Fairness { jain, max_over_min: most.zip(least).map(|(most, least)| most / least), starved }
    }
}

/// A distribution in nanoseconds: exact below 256, accurate to 1 % above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Quantiles {
    /// The number of samples.
    pub(crate) samples: u64,
    /// The mean.
    pub(crate) mean_ns: f64,
    /// The median.
    pub(crate) p50_ns: u64,
    /// The 99th percentile.
    pub(crate) p99_ns: u64,
    /// The 99.9th percentile.
    pub(crate) p999_ns: u64,
    /// The maximum.
    pub(crate) longest_ns: u64,
}

impl Quantiles {
    /// Returns `None` if there are no samples.
    pub(crate) fn of(latencies: &Latencies) -> Option<Self> {
        Some(Quantiles {
            samples: latencies.len(),
            mean_ns: latencies.mean_ns()?,
            p50_ns: latencies.quantile_ns(0.5)?,
            p99_ns: latencies.quantile_ns(0.99)?,
            p999_ns: latencies.quantile_ns(0.999)?,
            longest_ns: latencies.quantile_ns(1.0)?,
        })
    }
}

/// The times of acquisitions and releases. Kinds of acquisition that did not occur are `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(crate) struct Waits {
    /// Time to acquire.
    pub(crate) acquire: Option<Quantiles>,
    /// Time to acquire and to release.
    pub(crate) pair: Option<Quantiles>,
    /// Time to acquire in shared mode.
    pub(crate) readers: Option<Quantiles>,
    /// Time to acquire in exclusive mode.
    pub(crate) writers: Option<Quantiles>,
}

impl Waits {
    /// Returns the times of all ranks together.
    pub(crate) fn of<'a>(records: impl IntoIterator<Item = &'a RankRecord>) -> Self {
        let (mut acquire, mut pair) = ([Latencies::default(), Latencies::default()], Latencies::default());
        for record in records {
            acquire[SHARED].add(&record.acquire[SHARED]);
            acquire[EXCLUSIVE].add(&record.acquire[EXCLUSIVE]);
            record.pair.iter().for_each(|of_kind| pair.add(of_kind));
        }
        let [readers, writers] = [SHARED, EXCLUSIVE].map(|kind| Quantiles::of(&acquire[kind]));
        let [mut all, exclusive] = acquire;
        all.add(&exclusive);
        Waits { acquire: Quantiles::of(&all), pair: Quantiles::of(&pair), readers, writers }
    }
}

/// Results that only a simulated job provides.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Simulation {
    /// Equal for equal program, platform and seed.
    pub(crate) trace_hash: u64,
    /// The number of events.
    pub(crate) events: u64,
    /// Atomics per completed acquisition. Atomics of cancelled attempts, and the few of set-up and
    /// check, are included.
    pub(crate) atomics_per_acquisition: f64,
}

/// A case and its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct LockRow {
    /// The case.
    #[serde(flatten)]
    pub(crate) case: LockCase,
    /// The number of repetitions for the throughput.
    pub(crate) repetitions: usize,
    /// Completed acquisitions of all ranks per second of the slowest rank's time, over the
    /// repetitions.
    pub(crate) throughput: Spread,
    /// The fairness of the repetition with the median of Jain's index.
    pub(crate) fairness: Fairness,
    /// The times of all timed repetitions.
    pub(crate) waits: Waits,
    /// The time limit expired before a rank had finished its work.
    pub(crate) cut: bool,
    /// The one-way latency of a flag between ranks 0 and 1 immediately before the repetitions, in
    /// nanoseconds, as their median: it shows the placement of the cores. Absent in virtual time.
    pub(crate) ping_pong_ns: Option<f64>,
    /// Absent in wall-clock time.
    pub(crate) simulation: Option<Simulation>,
}

impl LockRow {
    /// Returns the row for the records of each repetition: `repetitions` determine the throughput,
    /// `timed` the times. (They differ if reading the clock takes time.) `None` if there is no
    /// repetition.
    pub(crate) fn of(case: LockCase, repetitions: &[Vec<RankRecord>], timed: &[Vec<RankRecord>]) -> Option<Self> {
        let mut fairness: Vec<Fairness> = repetitions.iter().map(|records| Fairness::of(records)).collect();
        fairness.sort_by(|a, b| a.jain.total_cmp(&b.jain));
        Some(LockRow {
            case,
            repetitions: repetitions.len(),
            throughput: Spread::of(repetitions.iter().map(|records| throughput(records)))?,
            fairness: *fairness.get(fairness.len() / 2)?,
            waits: Waits::of(timed.iter().flatten()),
            cut: repetitions.iter().flatten().any(|record| record.gave_up),
            ping_pong_ns: None,
            simulation: None,
        })
    }
}

fn throughput(records: &[RankRecord]) -> f64 {
    let slowest = records.iter().map(|record| record.elapsed).max().unwrap_or(0);
    let all: u64 = records.iter().map(RankRecord::all).sum();
    if slowest == 0 { 0.0 } else { all as f64 / (slowest as f64 * 1e-12) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns records of ranks with these numbers of acquisitions, completed in a microsecond
    /// each.
    fn ranks(completed: &[u64]) -> Vec<RankRecord> {
        let rank = |&all| RankRecord { completed: [all, 0], elapsed: 1_000_000, ..RankRecord::default() };
        completed.iter().map(rank).collect()
    }

    #[test]
    fn jains_index_of_known_shares() {
        let of = |completed: &[u64]| Fairness::of(&ranks(completed));
        assert_eq!(of(&[5, 5, 5, 5]), Fairness { jain: 1.0, max_over_min: Some(1.0), starved: 0 });
        assert_eq!(of(&[8, 0, 0, 0]), Fairness { jain: 0.25, max_over_min: None, starved: 3 });
        let uneven = of(&[1, 3]);
        assert!((uneven.jain - 0.8).abs() < 1e-12 && uneven.max_over_min == Some(3.0), "{uneven:?}");
        assert_eq!(of(&[0, 0]).jain, 0.0);
    }

    #[test]
    fn the_slowest_rank_counts_for_throughput() {
        let mut records = ranks(&[10, 10]);
        assert_eq!(throughput(&records), 20e6);
        records[1].elapsed *= 2;
        assert_eq!(throughput(&records), 10e6);
    }

    #[test]
    fn rows_take_the_repetition_in_the_middle() {
        let case = LockCase {
            workload: Workload::Ecsb,
            writers: WriterShare::per_mille(2),
            ranks: 2,
            lock: "some".to_owned(),
        };
        let row = LockRow::of(case.clone(), &[ranks(&[1, 1]), ranks(&[9, 0]), ranks(&[2, 4])], &[]).expect("a row");
        assert_eq!(row.throughput, Spread { median: 6e6, min: 2e6, max: 9e6 });
        assert!((row.fairness.jain - 0.9).abs() < 1e-12, "{row:?}");
        assert_eq!((row.waits, row.cut, row.repetitions), (Waits::default(), false, 3));
        assert_eq!(LockRow::of(case, &[], &[]), None);
    }
}
