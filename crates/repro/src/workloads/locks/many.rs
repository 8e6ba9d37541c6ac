//! Contention for many locks, some of them more popular than others, by many clients: what those
//! who publish locks for disaggregated memory measure (ECSB for each lock).

use super::{
    super::Together,
    draws::{Draws, WriterShare},
    record::{EXCLUSIVE, Latencies, RankRecord, SHARED},
};
use core::time::Duration;
use rdma_fabric::{Fabric, ProgramResult, Rank, Time};
use rma_lock::{Guard, LockError, RmaLock};
use std::sync::{Mutex, PoisonError};

/// What all ranks want.
#[derive(Clone, Debug, PartialEq)]
pub struct Demand {
    /// Which lock, how often.
    pub popularity: Popularity,
    /// How many acquisitions are writers'.
    pub writers: WriterShare,
    /// Acquisitions of each rank.
    pub each: u32,
    /// Who has not done them within this time stops, and gives up what it waits for, if the lock
    /// can be given up.
    pub within: Duration,
    /// Of everything that is drawn.
    pub seed: u64,
    /// How they begin and end.
    pub together: Together,
}

/// How popular each of a number of locks is: Zipf's law, the n-th in proportion to n to the power of
/// minus the skew.
#[derive(Clone, Debug, PartialEq)]
pub struct Popularity {
    /// The share of each lock and those before it, of 2³².
    shares: Vec<u64>,
}

impl Popularity {
    /// Of so many locks, at least one; with a skew of 0 all are as popular.
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

/// How long acquisitions took, of all ranks of a simulated job: readers' and writers'. Ranks by the
/// hundred thousand can't have histograms of their own.
#[derive(Debug, Default)]
pub struct Waited(Mutex<[Latencies; 2]>);

impl Waited {
    fn record(&self, kind: usize, picos: u64) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)[kind].record_picos(picos);
    }

    /// Returns the readers' and the writers'.
    pub fn into_inner(self) -> [Latencies; 2] {
        self.0.into_inner().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Is one rank that wants locks `L`, and records in `waited` how long it waited for each.
///
/// Collective over the job. Homes are spread evenly over the
/// ranks, that of the first lock is drawn. There is nothing inside.
///
/// # Errors
/// What the lock or the fabric met.
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
    // Others look at this rank's memory until all are done.
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

/// Releases what was acquired; returns when it was.
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
