//! The runs in virtual time.

use super::row::{LockCase, LockRow, Simulation};
use repro::{
    ReproError, Shape,
    peers::{Competitor, contention},
    progress::Progress,
    simulate::{Setting, simulate},
    workloads::locks::{Run, RunLength, Workload, WriterShare, compared},
};
use std::time::Duration;
use tofu2_sim::virt::Platform;

/// Ranks per node, as in the lock paper's Fig. 8.
const PER_NODE: u32 = 32;

/// The jobs to run: every combination, on FX100 with 32 ranks per node, on a torus of 128 nodes
/// (2×4×16) with arbitration at every port.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct SimulatedPlan {
    /// The workloads.
    pub(super) workloads: Vec<Workload>,
    /// The shares of writers.
    pub(super) writers: Vec<WriterShare>,
    /// Numbers of ranks, at most 4096.
    pub(super) ranks: Vec<u32>,
    /// The locks.
    pub(super) locks: Vec<Competitor>,
    /// Acquisitions of all ranks together, shared evenly; each rank has at least 4.
    pub(super) acquisitions: u32,
    /// Virtual time after which ranks give up.
    pub(super) within: Duration,
    /// Seed of all random choices, and of the order of simultaneous events unless it is 0.
    pub(super) seed: u64,
}

impl SimulatedPlan {
    /// Returns every workload, share and lock, with 16 to 4096 ranks.
    pub(super) fn whole(seed: u64) -> Self {
        SimulatedPlan {
            workloads: Workload::ALL.to_vec(),
            writers: WriterShare::PUBLISHED.to_vec(),
            ranks: vec![16, 64, 256, 1024, 4096],
            locks: compared().map(Competitor::Ours).collect(),
            acquisitions: 16_384,
            within: Duration::from_millis(50),
            seed,
        }
    }

    /// Returns the same plan with a sixteenth of the acquisitions, on 16 and 64 ranks. It only
    /// shows that everything works.
    pub(super) fn quick(seed: u64) -> Self {
        let whole = Self::whole(seed);
        SimulatedPlan { ranks: vec![16, 64], acquisitions: 1024, within: Duration::from_millis(5), ..whole }
    }
}

/// The number of keys of each rank in DHT.
const KEYS: u32 = 8;

/// Simulates all jobs of the plan, in the order of its lists, with the lock changing fastest.
///
/// # Errors
/// [`ReproError::Job`] of the first job that failed, for example because a lock did not exclude.
pub(super) fn run(plan: &SimulatedPlan, progress: &mut Progress) -> Result<Vec<LockRow>, ReproError> {
    let mut cases = Vec::new();
    for &workload in &plan.workloads {
        for &ranks in &plan.ranks {
            for &writers in &plan.writers {
                cases.extend(plan.locks.iter().map(|&lock| (workload, ranks, writers, lock)));
            }
        }
    }
    progress.expect(cases.len());
    let mut rows = Vec::with_capacity(cases.len());
    for (workload, ranks, writers, lock) in cases {
        let each = (plan.acquisitions / ranks.max(1)).max(4);
        let length = RunLength::Operations { each, within: plan.within };
        let run = Run { workload, writers, length, timed: true, keys: KEYS, seed: plan.seed };
        let setting = Setting::routed(Platform::fx100(), ranks, PER_NODE, Shape::OF_128_NODES[0], plan.seed);
        let label = format!("{workload}, {ranks} ranks, {writers} writers, {lock}");
        let done = simulate(label, &setting, &async |fabric| contention(fabric, lock, run).await, progress)?;
        let completed: u64 = done.outs.iter().map(|record| record.all()).sum();
        let case = LockCase { workload, writers, ranks: ranks as usize, lock: lock.to_string() };
        let repetitions = [done.outs];
        let simulation = Simulation {
            trace_hash: done.job.trace_hash,
            events: done.job.cost.events,
            atomics_per_acquisition: done.job.atomics.unwrap_or(0) as f64 / completed.max(1) as f64,
        };
        let row = LockRow::of(case, &repetitions, &repetitions);
        rows.extend(row.map(|row| LockRow { simulation: Some(simulation), ..row }));
    }
    progress.finish();
    Ok(rows)
}

#[cfg(test)]
mod tests {
    use super::*;
    use rma_lock::locks::LockKind;

    fn small(seed: u64) -> SimulatedPlan {
        SimulatedPlan {
            ranks: vec![48],
            writers: vec![WriterShare::per_mille(250)],
            acquisitions: 200,
            ..SimulatedPlan::quick(seed)
        }
    }

    #[test]
    fn equal_plans_have_equal_rows_and_every_case_one() {
        let rows = run(&small(3), &mut Progress::silent()).expect("a run");
        assert_eq!(rows.len(), Workload::ALL.len() * compared().count());
        assert_eq!(run(&small(3), &mut Progress::silent()).expect("a run"), rows);
        let hash = |row: &LockRow| row.simulation.map(|simulation| simulation.trace_hash);
        let other = run(&small(4), &mut Progress::silent()).expect("a run");
        assert!(rows.iter().zip(&other).all(|(a, b)| hash(a) != hash(b)));
        for row in &rows {
            assert!(!row.cut && row.throughput.median > 0.0, "{row:?}");
            assert!(row.waits.pair.is_some_and(|pair| pair.samples == 48 * 4 && pair.p50_ns > 1000), "{row:?}");
        }
    }

    #[test]
    fn readers_of_the_queue_lock_need_two_atomics() {
        let plan = SimulatedPlan {
            workloads: vec![Workload::Ecsb],
            writers: vec![WriterShare::per_mille(0)],
            locks: vec![LockKind::ReaderPreference.into()],
            ..small(0)
        };
        let rows = run(&plan, &mut Progress::silent()).expect("a run");
        let atomics = rows[0].simulation.map(|simulation| simulation.atomics_per_acquisition);
        assert_eq!(atomics, Some(2.0));
    }
}
