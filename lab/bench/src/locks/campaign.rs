//! Jobs of processes (or threads) that contend, one for each number of ranks. A case is a workload and a share of
//! writers.

use super::{
    contestant::Contestant,
    rank::{JobPlan, Recorded},
    row::{LockCase, LockRow, Spread},
};
use crate::outside::job::{self, Provider, Size};
use repro::{
    progress::Progress,
    workloads::locks::{Workload, WriterShare},
};
use std::{error::Error, time::Duration};

/// The number of ranks from which on they share cores: repetitions then contain several time slices
/// of each.
const OVERSUBSCRIBED: u32 = 5;

/// The measurements to make: every combination.
#[derive(Clone, Debug)]
pub(super) struct Campaign {
    pub(super) workloads: Vec<Workload>,
    pub(super) writers: Vec<WriterShare>,
    pub(super) ranks: Vec<u32>,
    pub(super) locks: Vec<Contestant>,
    pub(super) repetitions: usize,
    pub(super) length: Duration,
    /// The length of a repetition if ranks share cores.
    pub(super) oversubscribed_length: Duration,
    pub(super) seed: u64,
    /// The cores; rank r runs on core r modulo their number.
    pub(super) cores: Vec<usize>,
}

/// Makes all measurements of the plan.
pub(super) fn run(plan: &Campaign, provider: Provider) -> Result<Vec<LockRow>, Box<dyn Error>> {
    let cases: Vec<_> =
        plan.workloads.iter().flat_map(|&workload| plan.writers.iter().map(move |&share| (workload, share))).collect();
    let names: Vec<String> = cases.iter().map(|(workload, share)| format!("{workload}, {share} writers")).collect();
    let mut progress = Progress::stderr();
    progress.expect(cases.len() * plan.ranks.len());
    let mut rows = Vec::new();
    for (job, &ranks) in plan.ranks.iter().enumerate() {
        let job_plan = JobPlan {
            cases: cases.clone(),
            locks: plan.locks.clone(),
            repetitions: plan.repetitions,
            length: if ranks < OVERSUBSCRIBED { plan.length } else { plan.oversubscribed_length },
            seed: plan.seed,
            cores: plan.cores.clone(),
        };
        progress.say(&format!("{ranks} ranks: {} cases", names.len()));
        let at = |case: u64| {
            Some((job * cases.len() + case as usize, format!("{ranks} ranks, {}", names.get(case as usize)?)))
        };
        let recorded = job::run(&job_plan, provider, Size::of(ranks as usize), &progress, at)?;
        rows.extend(job_plan.rows(&recorded));
    }
    progress.finish();
    Ok(rows)
}

impl JobPlan {
    /// Returns the rows of the records of every rank.
    fn rows(&self, recorded: &[Vec<Recorded>]) -> Vec<LockRow> {
        let mut rows = Vec::new();
        for (at, &(workload, writers)) in self.cases.iter().enumerate() {
            for (of, lock) in self.locks.iter().enumerate() {
                let of_ranks: Vec<_> = recorded.iter().map(|rank| &rank[at * self.locks.len() + of]).collect();
                let repetition = |n: usize| of_ranks.iter().map(|rank| rank.repetitions[n].clone()).collect::<Vec<_>>();
                let repetitions: Vec<_> = (0..self.repetitions).map(repetition).collect();
                let timed = [of_ranks.iter().map(|rank| rank.timed.clone()).collect()];
                let ping_pong = Spread::of(of_ranks[0].ping_pongs.iter().copied());
                let case = LockCase { workload, writers, ranks: recorded.len(), lock: lock.to_string() };
                let row = LockRow::of(case, &repetitions, &timed);
                rows.extend(row.map(|row| LockRow { ping_pong_ns: ping_pong.map(|all| all.median), ..row }));
            }
        }
        rows
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::outside::placement;
    use repro::peers::{Competitor, Peer};

    #[test]
    fn all_workloads_make_rows() {
        make_rows(&Workload::ALL, &all_contestants()[..2]);
    }

    #[test]
    fn all_contestants_make_rows() {
        make_rows(&Workload::ALL[..1], &all_contestants());
    }

    #[test]
    #[ignore = "long: weekly"]
    fn all_contestants_make_rows_in_all_workloads() {
        make_rows(&Workload::ALL, &all_contestants());
    }

    fn all_contestants() -> Vec<Contestant> {
        Contestant::all().chain(Peer::ALL.map(|peer| Contestant::Lock(Competitor::Peer(peer)))).collect()
    }

    fn make_rows(workloads: &[Workload], locks: &[Contestant]) {
        let plan = Campaign {
            workloads: workloads.to_vec(),
            writers: vec![WriterShare::per_mille(250)],
            ranks: vec![3],
            locks: locks.to_vec(),
            repetitions: 2,
            length: Duration::from_millis(2),
            oversubscribed_length: Duration::from_millis(2),
            seed: 1,
            cores: placement::allowed_cores().expect("cores"),
        };
        let rows = run(&plan, Provider::Threads).expect("a run");
        assert_eq!(rows.len(), plan.workloads.len() * plan.locks.len());
        for row in &rows {
            assert!(row.throughput.median > 0.0 && row.repetitions == 2, "{row:?}");
            assert!(row.waits.pair.is_some() && row.ping_pong_ns.is_some_and(|ns| ns > 0.0), "{row:?}");
            assert!(!row.cut && row.simulation.is_none(), "{row:?}");
        }
    }
}
