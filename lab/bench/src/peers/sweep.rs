//! The jobs of published locks and ours, and their results.

use crate::locks::row::{Fairness, Quantiles};
use core::{pin::Pin, time::Duration};
use rdma_fabric::{Fabric, ProgramResult, Time};
use repro::{
    ReproError,
    peers::{Competitor, Peer},
    progress::Progress,
    simulate::{BEGIN, Setting, simulate},
    with_peer,
    workloads::{
        Together,
        locks::{Demand, Latencies, Popularity, RankRecord, Waited, WriterShare, contend_for_many},
    },
};
use rma_lock::{RwLock, locks::LockKind};
use serde::{Deserialize, Serialize};
use tofu2_sim::virt::Platform;

/// Ranks per node, as in the lock paper's Fig. 8.
const PER_NODE: u32 = 32;

/// All ranks begin after the end of set-up, and stay until all have finished. (Barriers of that
/// many clients would dominate the simulation.)
const TOGETHER: Together = Together::Clock { start: BEGIN, end: Time::from_picos(3_600_000_000_000_000) };

/// A set of locks, and the distribution of accesses to them.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct Locks {
    /// The number of locks.
    pub(super) number: u32,
    /// The exponent of Zipf's law.
    pub(super) skew: f64,
}

/// The jobs to run: every combination, on FX100 with 32 ranks per node and a network without
/// contention in its routes.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SweepPlan {
    /// Numbers of clients, each of which is a rank.
    pub(super) clients: Vec<u32>,
    /// Sets of locks.
    pub(super) locks: Vec<Locks>,
    /// Shares of writers.
    pub(super) writers: Vec<WriterShare>,
    /// The compared locks.
    pub(super) competitors: Vec<Competitor>,
    /// Acquisitions of all clients together, shared evenly; each client has at least
    /// [`SweepPlan::LEAST`].
    pub(super) acquisitions: u32,
    /// Virtual time for each client; after its expiry the clients that are able to give up do so.
    pub(super) within_each: Duration,
    /// Seed of all random choices, and of the order of simultaneous events unless it is 0.
    pub(super) seed: u64,
}

impl SweepPlan {
    /// The minimum number of acquisitions of a client.
    pub(super) const LEAST: u32 = 2;

    /// Returns the plan whose results the documentation shows.
    pub(super) fn usual(seed: u64) -> Self {
        use LockKind::*;
        let ours = [ReaderPreference, Packed, Fair, BackOff, ByNode].map(Competitor::Ours);
        SweepPlan {
            clients: vec![16, 256, 4096, 65_536],
            locks: vec![Locks { number: 1, skew: 0.0 }, Locks { number: 64, skew: 0.99 }],
            writers: [50, 500, 1000].map(WriterShare::per_mille).to_vec(),
            competitors: Peer::ALL.map(Competitor::Peer).into_iter().chain(ours).collect(),
            acquisitions: 16_384,
            within_each: Duration::from_micros(100),
            seed,
        }
    }

    /// Returns the number of jobs.
    pub(super) fn jobs(&self) -> usize {
        self.locks.len() * self.clients.len() * self.writers.len() * self.competitors.len()
    }

    fn within(&self, clients: u32) -> Duration {
        (self.within_each * clients).max(Duration::from_millis(50))
    }
}

/// A case and its results.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SweepRow {
    /// The number of clients.
    pub(super) clients: u32,
    /// The locks.
    pub(super) locks: Locks,
    /// The share of writers, per 1000 acquisitions.
    pub(super) writers: WriterShare,
    /// The lock.
    pub(super) lock: Competitor,
    /// Completed acquisitions of all clients per second of the slowest client's time.
    pub(super) throughput: f64,
    /// How evenly the clients acquired the locks.
    pub(super) fairness: Fairness,
    /// The times of completed acquisitions; `None` if there were none.
    pub(super) acquire: Option<Quantiles>,
    /// The time limit expired before a client had finished its work.
    pub(super) cut: bool,
    /// Atomics and gets per completed acquisition, including those of set-up.
    pub(super) operations: [f64; 2],
    /// Equal for equal program, platform and seed.
    pub(super) trace_hash: u64,
    /// CPU seconds of the machine that ran the simulation.
    #[serde(skip)]
    pub(super) cpu_seconds: f64,
}

impl SweepRow {
    /// Returns whether the other row has the same case, possibly with another lock.
    pub(super) fn is_beside(&self, other: &SweepRow) -> bool {
        (self.clients, self.locks, self.writers) == (other.clients, other.locks, other.writers)
    }
}

/// Simulates all jobs of the plan, in the order of its lists, with the lock changing fastest.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed.
pub(super) fn run(plan: &SweepPlan, progress: &mut Progress) -> Result<Vec<SweepRow>, ReproError> {
    let mut cases = Vec::new();
    for &locks in &plan.locks {
        for &clients in &plan.clients {
            for &writers in &plan.writers {
                cases.extend(plan.competitors.iter().map(|&lock| (locks, clients, writers, lock)));
            }
        }
    }
    progress.expect(plan.jobs());
    let mut rows = Vec::with_capacity(cases.len());
    for (locks, clients, writers, lock) in cases {
        let demand = Demand {
            popularity: Popularity::zipf(locks.number, locks.skew),
            writers,
            each: (plan.acquisitions / clients.max(1)).max(SweepPlan::LEAST),
            within: plan.within(clients),
            seed: plan.seed,
            together: TOGETHER,
        };
        let setting = Setting::latency(Platform::fx100(), clients, PER_NODE.min(clients), plan.seed);
        let label = format!("{clients} clients, {} locks, {writers} writers, {lock}", locks.number);
        let waited = Waited::default();
        let client = async |fabric: Fabric| client(&fabric, lock, &demand, &waited).await;
        let done = simulate(label, &setting, &client, progress)?;
        let completed: u64 = done.outs.iter().map(RankRecord::all).sum();
        let slowest = done.outs.iter().map(|record| record.elapsed).max().unwrap_or(0);
        let each = |operations: Option<u64>| operations.unwrap_or(0) as f64 / completed.max(1) as f64;
        rows.push(SweepRow {
            clients,
            locks,
            writers,
            lock,
            throughput: completed as f64 / (slowest.max(1) as f64 * 1e-12),
            fairness: Fairness::of(&done.outs),
            acquire: Quantiles::of(&together(waited.into_inner())),
            cut: done.outs.iter().any(|record| record.gave_up),
            operations: [each(done.job.atomics), each(done.job.gets)],
            trace_hash: done.job.trace_hash,
            cpu_seconds: done.job.cost.cpu_seconds,
        });
    }
    Ok(rows)
}

fn together([mut all, exclusive]: [Latencies; 2]) -> Latencies {
    all.add(&exclusive);
    all
}

/// Returns one client's part: [`contend_for_many`], compiled here for every lock.
fn client<'a>(
    fabric: &'a Fabric,
    lock: Competitor,
    demand: &'a Demand,
    waited: &'a Waited,
) -> Pin<Box<dyn Future<Output = ProgramResult<RankRecord>> + 'a>> {
    match lock {
        Competitor::Ours(kind) => Box::pin(contend_for_many::<RwLock>(fabric, demand, kind.into(), waited)),
        Competitor::Peer(peer) => {
            with_peer!(peer, L, options => Box::pin(contend_for_many::<L>(fabric, demand, options, waited)))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{
        super::{
            plot,
            ratios::ratios,
            table::{markdown, terminal},
        },
        *,
    };

    fn small() -> SweepPlan {
        let usual = SweepPlan::usual(3);
        SweepPlan { clients: vec![40], acquisitions: 200, writers: usual.writers[1..].to_vec(), ..usual }
    }

    #[test]
    fn equal_plans_have_equal_rows_and_every_case_one() {
        let plan = small();
        let told =
            |rows: Vec<SweepRow>| rows.into_iter().map(|row| SweepRow { cpu_seconds: 0.0, ..row }).collect::<Vec<_>>();
        let rows = told(run(&plan, &mut Progress::silent()).expect("a run"));
        assert_eq!(rows.len(), plan.jobs());
        assert_eq!(told(run(&plan, &mut Progress::silent()).expect("a run")), rows);
        for row in &rows {
            assert!(!row.cut && row.throughput > 0.0 && row.fairness.starved == 0, "{row:?}");
            assert!(row.acquire.is_some_and(|all| all.samples == 200 && all.p99_ns >= all.p50_ns), "{row:?}");
        }
    }

    #[test]
    fn rows_become_tables_ratios_and_a_plot() {
        let rows = run(&small(), &mut Progress::silent()).expect("a run");
        let (page, claims) = (markdown(&rows), ratios(&rows));
        assert_eq!(page.lines().filter(|line| line.starts_with('|')).count(), rows.len() + 2, "{page}");
        assert!(terminal(&rows).contains("shift-lock") && claims.contains("43.37"), "{claims}");
        // Four cases, in two of which all acquisitions are exclusive.
        let cases = |pair: &str| claims.lines().find(|line| line.contains(pair)).map(|line| line.matches('×').count());
        assert_eq!((cases("dec-lock / spin"), cases("shift-lock / mcs")), (Some(4), Some(4)), "{claims}");
        let plot = plot(&rows).expect("a plot");
        assert!(plot.starts_with("<svg ") && plot.contains("xmlns") && plot.contains("dec-lock"), "{plot:.300}");
    }

    #[test]
    fn skew_makes_a_popular_lock_slower_than_many() {
        let of = |skew| {
            let locks = vec![Locks { number: 16, skew }];
            let competitors = vec![Competitor::Peer(Peer::Mcs)];
            let writers = vec![WriterShare::per_mille(1000)];
            let plan = SweepPlan { clients: vec![64], locks, writers, competitors, acquisitions: 1000, ..small() };
            run(&plan, &mut Progress::silent()).expect("a run")[0].throughput
        };
        assert!(of(0.0) > 1.2 * of(1.5), "{} {}", of(0.0), of(1.5));
    }
}
