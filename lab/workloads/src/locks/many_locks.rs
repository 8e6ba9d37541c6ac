//! Contention of many clients for many locks, some of which are more popular than others: the usual
//! measurement for locks for disaggregated memory (ECSB for each lock).

use super::{
    super::Together,
    draws::{Draws, WriterShare},
    record::{EXCLUSIVE, Latencies, RankRecord, SHARED},
};
use core::time::Duration;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{Guard, LockError, RmaLock};
use std::sync::{Mutex, PoisonError};

/// The parameters of all ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// The frequency of each lock.
    pub popularity: Popularity,
    /// The share of writers.
    pub writers: WriterShare,
    /// The number of acquisitions of each rank.
    pub each: u32,
    /// A rank that has not completed them within this time stops, and gives up its pending
    /// acquisition, if the lock supports that.
    pub within: Duration,
    /// Seed of all random choices.
    pub seed: u64,
    /// The common beginning and end.
    pub together: Together,
}

/// The popularity of each of a number of locks: Zipf's law, the n-th in proportion to n to the
/// power of minus the skew.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// The cumulative share of each lock and those before it, of 2³².
    shares: Vec<u64>,
}

impl Popularity {
    /// Returns the popularity of `locks` locks, at least one; with a skew of 0 all are equally
    /// popular.
    pub fn zipf(locks: u32, skew: f64) -> Self {
        let weight = |n: u32| f64::from(n).powf(-skew);
        let all: f64 = (1..=locks.max(1)).map(weight).sum();
        let mut sum = 0.0;
        let shares = (1..=locks.max(1)).map(|n| {
            sum += weight(n);
            (sum / all * 2f64.powi(32)).round() as u64
        });
        Popularity { shares: shares.collect() }
    }

    /// Returns the number of locks.
    pub fn locks(&self) -> usize {
        self.shares.len()
    }

    /// Returns the lock for a number drawn below 2³².
    fn lock(&self, drawn: u64) -> usize {
        self.shares.partition_point(|&share| share <= drawn).min(self.shares.len() - 1)
    }
}

/// The times of acquisitions of all ranks of a simulated job, for readers and writers. With
/// hundreds of thousands of ranks, separate histograms would take too much memory.
#[derive(Debug, Default)]
pub struct Waited(Mutex<[Latencies; 2]>);

impl Waited {
    fn record(&self, kind: usize, picos: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[kind].record_picos(picos);
    }

    /// Returns the times of readers and of writers.
    pub fn into_inner(self) -> [Latencies; 2] {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Executes one rank that acquires locks `L`, and records its waiting times in `waited`.
///
/// Collective over the job. Homes are distributed evenly over the ranks; that of the first lock is
/// chosen at random. The critical sections are empty.
///
/// # Errors
/// Errors of the lock and the fabric.
pub async fn contend_for_many<L: RmaLock>(
    fabric: &Fabric,
    demand: &Demand,
    options: L::Options,
    waited: &Waited,
) -> ProgramResult<RankRecord> {
    let (first, ranks) = (Draws::home(demand.seed, fabric.ranks()).index(), fabric.ranks());
    let homes = demand.popularity.locks();
    let mut locks = Vec::with_capacity(homes);
    for lock in 0..homes {
        let home = Rank::new(((first + lock * ranks / homes) % ranks) as u32);
        locks.push(L::symmetric_with(fabric, home, options.clone()).await?);
    }
    let inside = demand.together.enter(fabric).await?;
    let record = acquisitions(fabric, demand, &locks, waited).await?;
    // Other ranks access this rank's memory until all have finished.
    inside.stay().await?;
    Ok(record)
}

async fn acquisitions<L: RmaLock>(
    fabric: &Fabric,
    demand: &Demand,
    locks: &[L],
    waited: &Waited,
) -> ProgramResult<RankRecord> {
    let mut draws = Draws::new(demand.seed, fabric.rank());
    let mut record = RankRecord::default();
    let begun = fabric.now();
    let limit = begun + demand.within;
    for _ in 0..demand.each {
        let drawn = draws.next();
        let lock = &locks[demand.popularity.lock(drawn.of(1 << 32))];
        let (kind, asked) = (if drawn.writes(demand.writers) { EXCLUSIVE } else { SHARED }, fabric.now());
        let outcome = match kind {
            EXCLUSIVE => in_and_out(fabric, lock.write_before(limit).await).await,
            _ => in_and_out(fabric, lock.read_before(limit).await).await,
        };
        match outcome {
            Ok(inside) => waited.record(kind, inside.picos_since(asked)),
            Err(LockError::TimedOut) => {
                record.gave_up = true;
                break;
            }
            Err(error) => return Err(error.into()),
        }
        record.completed[kind] += 1;
    }
    record.elapsed = fabric.now().picos_since(begun);
    Ok(record)
}

/// Releases an acquired lock; returns the time of the acquisition.
async fn in_and_out<G: Guard>(fabric: &Fabric, acquired: Result<G, LockError>) -> Result<Time, LockError> {
    let guard = acquired?;
    let inside = fabric.now();
    guard.release().await?;
    Ok(inside)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_lock_is_the_most_popular() {
        let drawn = |popularity: &Popularity| {
            let mut draws = Draws::new(1, Rank::new(3));
            let mut of_lock = vec![0u32; popularity.locks()];
            (0..20_000).for_each(|_| of_lock[popularity.lock(draws.next().of(1 << 32))] += 1);
            of_lock
        };
        let even = drawn(&Popularity::zipf(4, 0.0));
        assert!(even.iter().all(|&drawn| (4700..5300).contains(&drawn)), "{even:?}");
        // 12 : 6 : 4 : 3 of 25.
        let uneven = drawn(&Popularity::zipf(4, 1.0));
        for (drawn, expected) in uneven.iter().zip([9600, 4800, 3200, 2400]) {
            assert!(drawn.abs_diff(expected) < 300, "{uneven:?}");
        }
        assert_eq!(Popularity::zipf(1, 0.99).lock(u64::from(u32::MAX)), 0);
        assert_eq!(Popularity::zipf(0, 0.99).locks(), 1);
    }
}
