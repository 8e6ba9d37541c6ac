//! Figures of the [workloads of the locks' literature](crate::workloads::locks): what the runs of
//! one case amount to, in tables and as data, and the runs in virtual time.
//!
//! The runs on wall clock are `cargo xtask bench-locks`, which uses the same rows and tables. They
//! are no part of a reproduction: no published value is recorded to compare them with.

pub mod peers;
mod simulated;
mod table;

pub use simulated::{SimulatedPlan, run};
pub use table::{markdown, terminal};

use crate::workloads::locks::{EXCLUSIVE, Latencies, RankRecord, SHARED, Workload, WriterShare};
use serde::{Deserialize, Serialize};

/// What was run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockCase {
    /// Its workload.
    pub workload: Workload,
    /// Writers, of 1000 acquisitions.
    pub writers: WriterShare,
    /// Ranks that contend.
    pub ranks: usize,
    /// What for.
    pub lock: String,
}

/// Several values of one figure.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// The middle one; the upper of two.
    pub median: f64,
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

impl Spread {
    /// `None` of no values.
    pub fn of(values: impl IntoIterator<Item = f64>) -> Option<Self> {
        let mut values: Vec<f64> = values.into_iter().collect();
        values.sort_by(f64::total_cmp);
        Some(Spread { median: *values.get(values.len() / 2)?, min: *values.first()?, max: *values.last()? })
    }
}

/// How evenly ranks got in, by their completed acquisitions a second of their own time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Fairness {
    /// Jain's index, the square of the sum by the number times the sum of squares: 1 if all are
    /// equal, 1/n if one has it all.
    pub jain: f64,
    /// The fastest rank by the slowest; `None` if a rank got nothing.
    pub max_over_min: Option<f64>,
    /// Ranks that got nothing.
    pub starved: usize,
}

impl Fairness {
    /// Of these ranks.
    pub fn of(records: &[RankRecord]) -> Self {
        let rates: Vec<f64> = records.iter().map(RankRecord::rate).collect();
        let (sum, squares) = (rates.iter().sum::<f64>(), rates.iter().map(|rate| rate * rate).sum::<f64>());
        let jain = if squares > 0.0 { sum * sum / (rates.len() as f64 * squares) } else { 0.0 };
        let most = rates.iter().copied().max_by(f64::total_cmp);
        let least = rates.iter().copied().min_by(f64::total_cmp).filter(|&least| least > 0.0);
        let starved = records.iter().filter(|record| record.all() == 0).count();
        Fairness { jain, max_over_min: most.zip(least).map(|(most, least)| most / least), starved }
    }
}

/// A distribution, in nanoseconds: exact below 256, to 1 % above.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// Of so many.
    pub samples: u64,
    /// Mean.
    pub mean_ns: f64,
    /// Median.
    pub p50_ns: u64,
    /// 99 of 100 took no longer.
    pub p99_ns: u64,
    /// 999 of 1000 took no longer.
    pub p999_ns: u64,
    /// The longest.
    pub longest_ns: u64,
}

impl Quantiles {
    /// `None` of nothing.
    pub fn of(latencies: &Latencies) -> Option<Self> {
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

/// How long it took to get in, and out again. A kind of acquisition that did not occur is `None`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Waits {
    /// To acquire.
    pub acquire: Option<Quantiles>,
    /// To acquire and to release.
    pub pair: Option<Quantiles>,
    /// To acquire shared.
    pub readers: Option<Quantiles>,
    /// To acquire exclusively.
    pub writers: Option<Quantiles>,
}

impl Waits {
    /// Of all ranks together.
    pub fn of<'a>(records: impl IntoIterator<Item = &'a RankRecord>) -> Self {
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

/// What only a simulated job can tell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    /// Equal for equal program, platform and seed.
    pub trace_hash: u64,
    /// Events.
    pub events: u64,
    /// Atomics by completed acquisitions. Attempts that were given up and the few of set-up and
    /// check count.
    pub atomics_per_acquisition: f64,
}

/// A case and its figures.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct LockRow {
    /// What was run.
    #[serde(flatten)]
    pub case: LockCase,
    /// How often, for the throughput.
    pub repetitions: usize,
    /// Completed acquisitions of all ranks a second of the slowest one's time, of each repetition.
    pub throughput: Spread,
    /// Of the repetition in the middle, by Jain's index.
    pub fairness: Fairness,
    /// Of all repetitions that were timed.
    pub waits: Waits,
    /// Time was over before a rank had done what it was to do.
    pub cut: bool,
    /// Nanoseconds one way of a flag between ranks 0 and 1 right before the repetitions, their
    /// median: where the cores were. Absent in virtual time.
    pub ping_pong_ns: Option<f64>,
    /// Absent on wall clock.
    pub simulation: Option<Simulation>,
}

impl LockRow {
    /// From the records of each repetition: of those that tell the throughput, and of those that
    /// were timed. (They are different ones where looking at the clock takes time.) `None` if there
    /// is no repetition.
    pub fn of(case: LockCase, repetitions: &[Vec<RankRecord>], timed: &[Vec<RankRecord>]) -> Option<Self> {
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

    /// Ranks that completed so much in a microsecond each.
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
